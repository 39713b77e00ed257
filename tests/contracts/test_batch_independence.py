"""A translation does not depend on its batch, whatever the engine and the search are."""

import random
import shutil

import pytest

from translucid import Translator
from translucid.cli.main import run as command
from translucid.corpora.phrasebook import generate
from translucid.decoding.decoding_options import DecodingOptions
from translucid.engines.tuned import Tuned, load_tuned, save_tuned

LIMITS = {"max_length_ratio": 0.5, "max_length_extra": 3}


@pytest.fixture(scope="module")
def tuned(small_run, corpus, tmp_path_factory):
    """A run that was tuned with shortlists, and the text of a smaller shortlist."""
    run = shutil.copytree(small_run, tmp_path_factory.mktemp("tuned") / "run")
    files = ["--train", str(corpus / "train.tsv"), "--valid", str(corpus / "test.tsv")]
    assert command(["tune", "shortlists", str(run), *files, "--sentences", "2", "--allow", "100"]) == 0
    from translucid.engines.tuning import CPU, learn_links

    translator = Translator.load(run, engine="torch")
    pairs = [(p.source, p.target) for p in generate(60, max_words=8)]
    links = learn_links(translator.model, [pair.ids for pair in translator.pipeline.pairs(pairs)], CPU)
    return run, links.shortlist(translator.tokenizer, 6, 12)


@pytest.fixture(scope="module")
def sources():
    odd = ["Zoe sees the zebra.", "Quick brown foxes", "7 x 9", "A"]
    return odd + [pair.source for pair in generate(7, split="test", max_words=8)]


@pytest.mark.parametrize(
    ("engine", "considered", "beam"),
    [
        *(("torch", "small shortlist", 3), ("torch", "seen pieces", 1), ("torch", "all pieces", 3)),
        *(("ctranslate2", "small shortlist", 1), ("ctranslate2", "seen pieces", 3), ("ctranslate2", "all pieces", 1)),
    ],
)
def test_alone_in_batches_and_in_another_order(tuned, sources, engine, considered, beam):
    run, shortlist = tuned
    listed = shortlist if considered == "small shortlist" else shortlist.splitlines()[0] + "\n"
    save_tuned(run, Tuned(engine=engine, considered=considered), None if considered == "all pieces" else listed)
    translator = Translator.load(run)
    assert str(translator.engine) == f"{engine}, float32, {considered}"
    options = DecodingOptions(beam=beam, **LIMITS)
    translated_alone = [translator.translate(source, options) for source in sources]
    alone = [translation.text for translation in translated_alone]
    batched = translator.translate(sources, options)
    order = random.Random(1).sample(range(len(sources)), len(sources))
    shuffled = dict(zip(order, translator.translate([sources[i] for i in order], options), strict=True))
    assert [translation.text for translation in batched] == alone
    scores = [translation.score for translation in translated_alone]
    assert [translation.score for translation in batched] == pytest.approx(scores, abs=1e-4)
    assert [shuffled[i].text for i in range(len(sources))] == alone
    assert len({*alone}) > 5


def test_whatever_tuning_has_chosen(tuned, sources):
    run, _ = tuned
    assert load_tuned(run)
    for engine in ("auto", "torch", "ctranslate2"):
        translator = Translator.load(run, engine=engine)
        options = DecodingOptions(beam=3, **LIMITS)
        assert [translator.translate(source, options).text for source in sources] == [
            translation.text for translation in translator.translate(sources, options)
        ]


def test_words_that_the_shortlist_lacks_are_named(tuned):
    run, shortlist = tuned
    (run / "shortlist.tsv").write_text(shortlist)
    for engine in ("torch", "ctranslate2"):
        save_tuned(run, Tuned(engine=engine, considered="small shortlist"), shortlist)
        lines = [line.split("\t") for line in shortlist.splitlines()]
        translator = Translator.load(run)
        tokenizer = translator.tokenizer
        known = {source for source, targets in lines if targets != source}
        words = ["soccer", "beach", "hospital", "music", "zebra", "Zqvx"]
        pieces = [tokenizer.source_pieces(ids) for ids in tokenizer.encode_source(words)]
        missing = [word for word, word_pieces in zip(words, pieces, strict=True) if not known >= {*word_pieces}]
        assert "Zqvx" in missing
        source = f"I like {', '.join(words)}."
        warnings = translator.translate(source).warnings
        (message,) = [warning for warning in warnings if warning.startswith("shortlist: ")]
        assert all(word in message for word in missing[:5])
        assert not any(word in message for word in {*words} - {*missing})
        unlisted = Translator.load(run, engine="torch").translate(source).warnings
        if engine != "torch":
            assert not any(warning.startswith("shortlist: ") for warning in unlisted)
