"""The classes for Python users: translators, captioners, generators, classifiers, embedders, and their results."""
