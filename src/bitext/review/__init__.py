"""Files for reviewers of translated documents: XLIFF 2.1, or a table in a Word document."""
