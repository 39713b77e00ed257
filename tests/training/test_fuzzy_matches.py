"""Training with fuzzy matches, and translation with them."""

from dataclasses import replace

import pytest

from bitext.memory.translation_memory import Recall, TranslationMemory
from bitext.pair import Pair
from translucid import Translator
from translucid.api.segment_translator import shown_matches
from translucid.data.tokenizing.pieces import MATCH
from translucid.ground.console import Console
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.runs.configuration import resolve
from translucid.runs.corpus_files import Corpora
from translucid.training.extras.fuzzy_matches import FuzzyMatches
from translucid.training.steps import dataset_steps

QUIET = Console(quiet=True)
NAMES = "Ana", "Eva", "Luis", "Tom"
PAIRS = [Pair(f"{name} likes tea.", f"A {name} le gusta el té.") for name in NAMES]
CORPORA = Corpora([PAIRS, [Pair("Mia likes tea.", "A Mia le gusta el té.")]], PAIRS[:1], "digest")
CONFIGURATION = resolve(assignments=["data.fuzzy_matches=60", "data.train=[one.tsv]"])


def test_pairs_are_repeated_with_a_match():
    matched = FuzzyMatches(CONFIGURATION).corpora(CORPORA, QUIET)
    first, second = map(list, matched.train)
    assert first[:4] == PAIRS and second == CORPORA.train[1]
    assert [pair.target for pair in first[4:]] == [pair.target for pair in PAIRS]
    for pair in first[4:]:
        source, _, match = pair.source.partition(f"{MATCH} ")
        assert source in {p.source for p in PAIRS} and match in {p.target for p in PAIRS} - {pair.target}
    assert matched.digest != CORPORA.digest
    assert [*FuzzyMatches(CONFIGURATION).corpora(CORPORA, QUIET).train[0]] == first


def test_without_the_option_nothing_changes():
    assert not any(isinstance(step, FuzzyMatches) for step in dataset_steps(resolve()))
    configuration = resolve(assignments=["data.fuzzy_matches=99"])
    assert [*FuzzyMatches(configuration).corpora(CORPORA, QUIET).train[0]] == PAIRS


def test_unsupported_uses_are_refused():
    with pytest.raises(UserError, match="joint"):
        resolve(assignments=["data.fuzzy_matches=50", "data.tokenizer.joint=false"])
    with pytest.raises(UserError, match="for translators"):
        FuzzyMatches(resolve(preset="lm-lstm", assignments=["data.fuzzy_matches=50"])).corpora(CORPORA, QUIET)


class RecordingEngine:
    """An engine that records the sentences it decodes."""

    def __init__(self, engine):
        self.engine, self.decoded = engine, []
        self.name, self.device_type = engine.name, engine.device_type

    def decode(self, request):
        self.decoded += request.sentences
        return self.engine.decode(request)


@pytest.fixture
def run(train, tmp_path):
    train(tmp_path / "run", "data.fuzzy_matches=50", "training.max_steps=3", "training.validate_every=3")
    return tmp_path / "run"


def test_a_model_that_was_trained_so_is_shown_matches(run, tmp_path):
    translator = Translator.load(run, "cpu", "torch")
    recording_engine = RecordingEngine(translator.engine)
    translator = replace(translator, engine=recording_engine)
    separator = translator.tokenizer.encode_source([MATCH])[0][-1]
    assert translator.tokenizer.source_pieces([separator]) == [MATCH]
    with TranslationMemory.open(tmp_path / "m.memory", write=True) as memory:
        memory.add([Pair("She likes red cars.", "Le gustan los coches rojos.")], "")
        fuzzy_translator = shown_matches(translator, Recall(memory))
        texts = ["She likes blue cars.", "Nothing of that here."]
        translations = fuzzy_translator.translate(
            [*texts, " ".join(["She likes red blue green cars."] * 60)], split=True
        )
        with_match, without_match = recording_engine.decoded[:2]
        assert translator.tokenizer.decode_source(with_match[: with_match.index(separator)]) == texts[0]
        assert (
            translator.tokenizer.decode_source(with_match[with_match.index(separator) + 1 :])
            == "Le gustan los coches rojos."
        )
        assert separator not in without_match and with_match[-1] == without_match[-1] == SPECIAL.end
        assert translations[0].source == texts[0] and MATCH not in translations[0].text
        assert shown_matches(fuzzy_translator, Recall(memory)) is fuzzy_translator


def test_other_models_are_not_shown_matches(small_run, tmp_path):
    translator = Translator.load(small_run, "cpu", "torch")
    with TranslationMemory.open(tmp_path / "m.memory", write=True) as memory:
        assert shown_matches(translator, Recall(memory)) is translator
