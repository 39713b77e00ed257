"""Image files and their pixels."""
