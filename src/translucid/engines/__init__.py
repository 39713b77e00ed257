"""What searches for translations, behind one door: our own search and CTranslate2; choosing between them."""
