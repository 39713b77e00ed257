"""The HTTP routes of our own page: documents to edit, and inspection; `dialects` has those of other programs."""
