"""How good translations are: BLEU, chrF, chrF++ and TER by sacreBLEU, over all sentences and by length."""

from bitext.public_names import public_names

__getattr__, __dir__ = public_names(__name__)
