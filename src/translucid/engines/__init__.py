"""What searches for translations, behind one door: our own search and CTranslate2; choosing between them."""

ALLOWED = 0.2
"""BLEU, or chrF where BLEU can't tell, that a faster way to translate may lose, and an exported model."""
