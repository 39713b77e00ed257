"""HTML, EPUB and Markdown."""
