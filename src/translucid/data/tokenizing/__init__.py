"""SentencePiece vocabularies: learning, encoding, decoding, extending."""
