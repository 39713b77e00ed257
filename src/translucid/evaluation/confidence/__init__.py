"""Quality estimation: features of a translation without a reference, and the fitted probability that it is good."""
