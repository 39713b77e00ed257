"""Measurements of a translator on test sets: scores, contrastive pairs, the importance of heads."""
