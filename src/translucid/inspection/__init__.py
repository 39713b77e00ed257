"""Looking inside: attention maps, words, alignments."""
