"""What a translator does with a memory: opens any corpus as one, and reads a near match beside the source."""
