"""How sure a translation is: figures seen without a reference, and the probability that it is good, fitted to them."""
