"""A run that begins as another one gets the pieces that its training asks for, and both engines use them."""

import pytest
import torch

from translucid import Translator
from translucid.api.segment_translator import shown_matches
from translucid.corpora.phrasebook import generate
from translucid.data.readers.corpus import Pair
from translucid.data.tokenizing.reserved import MATCH, PLACEHOLDERS, TERM
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.memory.recall import Recall
from translucid.memory.translation_memory import TranslationMemory
from translucid.runs.configuration import resolve
from translucid.runs.corpus_files import Corpora
from translucid.runs.run_folder import RunFolder
from translucid.runs.tensor_file import load_tensors

ASKED = {"data.placeholders=0.5": PLACEHOLDERS, "data.terms=0.5": TERM, "data.fuzzy_matches=50": (MATCH,)}
EVERY = frozenset((*PLACEHOLDERS, *TERM, MATCH))
PAIRS = [Pair(one.source, one.target) for one in generate(300, max_words=8)]
CORPORA = Corpora.of(PAIRS[:280], PAIRS[280:])


@pytest.fixture(scope="module")
def begun(train, small_run, tmp_path_factory):
    """One that learns next to nothing anew, so that the beginning is still to be seen."""
    folder = tmp_path_factory.mktemp("runs") / "begun"
    languages = "data.source_language=en", "data.target_language=es"
    limits = "training.max_steps=2", "training.learning_rate=1e-9"
    train(folder, f"training.begin_from={small_run}", *ASKED, *languages, *limits, data=CORPORA)
    return folder


def test_those_who_ask_get_their_pieces():
    assert resolve().data.reserved == ()
    for setting, pieces in ASKED.items():
        assert resolve(assignments=[setting]).data.reserved == tuple(pieces)
    assert {*resolve(assignments=[*ASKED]).data.reserved} == EVERY


def test_new_pieces_come_behind_the_others_and_begin_as_the_mean_of_all_but_special_ones(small_run, begun):
    before, now = RunFolder(small_run).tokenizer(), RunFolder(begun).tokenizer()
    assert {*now.source_pieces(range(before.source_size, now.source_size))} == EVERY
    assert now.source_pieces(range(before.source_size)) == before.source_pieces(range(before.source_size))
    assert now.encode_source([PAIRS[0].source]) == before.encode_source([PAIRS[0].source])
    first, then = (load_tensors(run / "model.safetensors")[0] for run in (small_run, begun))
    (row,) = now.encode_source(["⟦7⟧"])[0][-1:]
    for name in ("source_embedding.tokens.weight", "output.bias"):
        torch.testing.assert_close(then[name][: before.source_size], first[name], rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(then[name][row], first[name][len(SPECIAL) :].mean(0), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("settings", "kept"), [([], 0), (["data.placeholders=0.5"], 2)])
def test_weights_that_have_not_learned_new_pieces_are_not_kept(settings, kept, train, small_run, tmp_path):
    """So high a rate leaves nothing of what was learned before."""
    begins = f"training.begin_from={small_run}", "training.max_steps=2", "training.learning_rate=9", "training.warmup=1"
    told = train(tmp_path / "run", *begins, "training.patience=null", *settings, data=CORPORA)
    assert told.best_step == kept
    assert told.before is not None


def test_both_engines_use_them(begun, tmp_path):
    said, given = [], []
    with TranslationMemory.open(tmp_path / "m.memory", write=True) as memory:
        memory.add([Pair("She likes red cars.", "Le gustan los coches rojos.")], "")
        for engine in ("torch", "ctranslate2"):
            translator = Translator.load(begun, "cpu", engine)
            read = translator.engine.decode

            def noting(sentences, *more, read=read, translator=translator):
                given.extend(translator.tokenizer.source_pieces(ids) for ids in sentences)
                return read(sentences, *more)

            translator.engine.decode = noting
            shown = shown_matches(translator, Recall(memory)).translate("She likes blue cars.", beam=1)
            termed = translator.with_terms([("soccer", "fútbol")], mode="annotate").translate("I like soccer.", beam=1)
            hidden = translator.translate("I like %s.", beam=1)
            said.append([shown.text, termed.text, hidden.text])
    assert said[0] == said[1]
    assert not EVERY & {*"".join(said[0])} and "⟦" not in "".join(said[0])
    for near, term, placeholder in (given[:3], given[3:]):
        assert near.count(MATCH) == 1 and near[near.index(MATCH) + 1].startswith("▁")
        assert [piece for piece in term if piece in TERM] == [*TERM]
        assert placeholder.count("⟦1⟧") == 1


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_new_vocabulary_has_its_size_with_them(kind, train, tmp_path):
    given = [*ASKED, "data.source_language=en", "data.target_language=es", f"data.tokenizer.kind={kind}"]
    train(tmp_path / "new", *given, "data.tokenizer.vocabulary=300", "training.max_steps=1", data=CORPORA)
    tokenizer = RunFolder(tmp_path / "new").tokenizer()
    assert tokenizer.source_size == 300 and tokenizer.reserves(EVERY)


@pytest.mark.parametrize("setting", ASKED)
def test_an_adapter_can_not_get_them(setting, train, small_run, tmp_path):
    begins = f"training.begin_from={small_run}", "training.adapter_rank=2"
    languages = "data.source_language=en", "data.target_language=es"
    with pytest.raises(UserError, match=rf"lacks the pieces of {setting.partition('=')[0]}, and can't get any"):
        train(tmp_path / "run", *begins, setting, *languages, data=CORPORA)
    assert not (tmp_path / "run").exists()
