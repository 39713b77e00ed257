"""The documents that a server translates: jobs, their files and their results."""
