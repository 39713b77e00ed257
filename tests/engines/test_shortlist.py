"""Invalid shortlists are rejected before CTranslate2 reads them."""

import pytest

from bitext.pair import Pair
from translucid.corpora.phrasebook import generate
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions
from translucid.engines.ctranslate2.convert import save_ctranslate2
from translucid.ground.errors import UserError
from translucid.models.build import build_model
from translucid.models.model_options import TransformerOptions


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("\t▁the .\n▁the▁el\n", r"shortlist\.tsv:2: is not a piece, a tab and pieces"),
        ("▁the\t.\t.\n", r"shortlist\.tsv:1: is not a piece, a tab and pieces"),
        ("▁the\t. nonsense\n", r"shortlist\.tsv:1: 'nonsense' is no piece"),
        ("", "is empty"),
        ("\0", "NUL"),
    ],
)
def test_files_with_invalid_lines_are_refused(content, message, tmp_path):
    pairs = [Pair(p.source, p.target) for p in generate(100, max_words=8)]
    tokenizer = Tokenizer.learn(pairs, TokenizerOptions(vocabulary=200), seed=1)
    options = TransformerOptions(width=8, heads=2, feed_forward=8, encoder_layers=1, decoder_layers=1)
    model = build_model(options, tokenizer.source_size, tokenizer.target_size)
    (tmp_path / "shortlist.tsv").write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=message):
        save_ctranslate2(model, tokenizer, tmp_path / "converted", shortlist=tmp_path / "shortlist.tsv")
