"""From a model to its outputs: greedy search, beam search and sampling over any model of the protocol."""
