"""Greedy search, beam search, sampling and forced decoding for any sequence model."""
