"""The engines that search for translations, PyTorch and CTranslate2, behind one interface; their choice and tuning."""

ALLOWED = 0.2
"""The loss of BLEU, or of chrF where BLEU is too low to tell, that a faster way or an exported model may have."""
