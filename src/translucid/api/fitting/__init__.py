"""What is fitted to a trained run and saved in its folder: alignments, confidence, lenses, rankings."""
