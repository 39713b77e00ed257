"""How good translations are: BLEU, chrF and TER by sacreBLEU, over all sentences and by length."""
