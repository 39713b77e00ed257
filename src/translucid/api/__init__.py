"""What Python users import: translators, captioners, generators, classifiers, embedders, and their results."""
