"""The letters of tensor shapes in every docstring and comment of this package.

===== =======================================================================
B     sentences in a batch
N     rows of a search: hypotheses, one or more for each sentence
K     hypotheses for one sentence, the width of the beam
S     source length in tokens (or what else is read)
T     target length in tokens
D     width of the model
H     attention heads; D = H * d
d     width of one head (`d_k` for queries and keys, `d_v` for values)
F     width of the feed-forward layer; in `circuits`, features of a sublayer
L     layers of a stack
V     size of the vocabulary
===== =======================================================================

Source tokens end with the end token; padding is on the right. Masks are boolean and True means "may look".
"""
