"""Word, PowerPoint and OpenDocument."""
