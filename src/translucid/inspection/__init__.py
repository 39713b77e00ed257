"""Looking inside: attention maps, words, alignments."""

PICTURES = (".png", ".svg", ".pdf")
"""What pictures are saved as."""
ENDINGS = (*PICTURES, ".html", ".json", ".npz")
"""What the attention of a translation is saved as."""
