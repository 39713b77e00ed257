"""Fine-tuned runs get the reserved pieces of their settings, and both engines use them."""

import pytest
import torch

from bitext.memory.translation_memory import Recall, TranslationMemory
from bitext.pair import Pair
from bitext.protected_spans import PLACEHOLDERS
from translucid import Translator
from translucid.api.segment_translator import shown_matches
from translucid.corpora.phrasebook import generate
from translucid.data.tokenizing.pieces import MATCH, TERM
from translucid.ground.errors import UserError
from translucid.ground.special import FORMALITY, SPECIAL
from translucid.runs.configuration import resolve
from translucid.runs.corpus_files import Corpora
from translucid.runs.run_folder import RunFolder
from translucid.runs.tensor_file import load_tensors

TOKENS = tuple(FORMALITY.values())
RESERVED_BY_SETTING = {
    "data.placeholders=0.5": PLACEHOLDERS,
    "data.terms=0.5": TERM,
    "data.fuzzy_matches=50": (MATCH,),
    "data.formality=0.5": TOKENS,
}
ALL_PIECES = frozenset((*PLACEHOLDERS, *TERM, MATCH, *TOKENS))
PAIRS = [Pair(phrase.source, phrase.target) for phrase in generate(300, max_words=8)]
PAIRS[:2] = [Pair("You sing.", "Usted canta."), Pair("You sing?", "¿Cantas tú?")]
CORPORA = Corpora.of(PAIRS[:280], PAIRS[280:])


@pytest.fixture(scope="module")
def fine_tuned_run(train, small_run, tmp_path_factory):
    """Fine-tune with a tiny learning rate, which preserves the initial weights."""
    folder = tmp_path_factory.mktemp("runs") / "begun"
    languages = "data.source_language=en", "data.target_language=es"
    limits = "training.max_steps=2", "training.learning_rate=1e-9"
    train(folder, f"training.begin_from={small_run}", *RESERVED_BY_SETTING, *languages, *limits, data=CORPORA)
    return folder


def test_settings_add_their_reserved_pieces():
    assert resolve().data.reserved == ()
    for setting, pieces in RESERVED_BY_SETTING.items():
        assert resolve(assignments=[setting]).data.reserved == tuple(pieces)
    assert {*resolve(assignments=[*RESERVED_BY_SETTING]).data.reserved} == ALL_PIECES


def test_new_pieces_come_behind_the_others_and_begin_as_the_mean_of_all_but_special_ones(small_run, fine_tuned_run):
    before, after = RunFolder(small_run).tokenizer(), RunFolder(fine_tuned_run).tokenizer()
    assert {*after.source_pieces(range(before.source_size, after.source_size))} == ALL_PIECES
    assert after.source_pieces(range(before.source_size)) == before.source_pieces(range(before.source_size))
    assert after.encode_source([PAIRS[0].source]) == before.encode_source([PAIRS[0].source])
    initial, trained = (load_tensors(run / "model.safetensors")[0] for run in (small_run, fine_tuned_run))
    (row,) = after.encode_source(["⟦7⟧"])[0][-1:]
    for name in ("source_embedding.tokens.weight", "output.bias"):
        torch.testing.assert_close(trained[name][: before.source_size], initial[name], rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(trained[name][row], initial[name][len(SPECIAL) :].mean(0), rtol=1e-4, atol=1e-6)
    # With equal embeddings, the model would learn no difference between the two tokens of formality.
    embeddings = trained["source_embedding.tokens.weight"]
    formal, informal = (embeddings[after.source_id(token)] for token in TOKENS)
    torch.testing.assert_close((formal + informal) / 2, embeddings[row], rtol=1e-4, atol=1e-6)
    assert float((formal - informal).norm()) == pytest.approx(float(embeddings.norm(dim=1).mean()), rel=0.1)


@pytest.mark.parametrize(("settings", "kept_step"), [([], 0), (["data.placeholders=0.5"], 2)])
def test_weights_that_have_not_learned_new_pieces_are_not_kept(settings, kept_step, train, small_run, tmp_path):
    """The high learning rate destroys what was learned before."""
    initialization = (
        f"training.begin_from={small_run}",
        "training.max_steps=2",
        "training.learning_rate=9",
        "training.warmup=1",
        "decoding.max_length_ratio=1",
    )
    progress = train(tmp_path / "run", *initialization, "training.patience=null", *settings, data=CORPORA)
    assert progress.best_step == kept_step
    assert progress.before is not None


def test_both_engines_use_them(fine_tuned_run, tmp_path):
    translations, inputs = [], []
    with TranslationMemory.open(tmp_path / "m.memory", write=True) as memory:
        memory.add([Pair("She likes red cars.", "Le gustan los coches rojos.")], "")
        for engine in ("torch", "ctranslate2"):
            translator = Translator.load(fine_tuned_run, "cpu", engine)
            decode = translator.engine.decode

            def recording_decode(request, decode=decode, translator=translator):
                inputs.extend(translator.tokenizer.source_pieces(ids) for ids in request.sentences)
                return decode(request)

            translator.engine.decode = recording_decode
            fuzzy = shown_matches(translator, Recall(memory)).translate("She likes blue cars.", beam=1)
            annotated = translator.with_terms([("soccer", "fútbol")], mode="annotate").translate(
                "I like soccer.", beam=1
            )
            masked = translator.translate("I like %s.", beam=1)
            formal = translator.with_formality("formal").translate("I like %s.", beam=1)
            translations.append([fuzzy.text, annotated.text, masked.text, formal.text])
    assert translations[0] == translations[1]
    assert not ALL_PIECES & {*"".join(translations[0])} and "⟦" not in "".join(translations[0])
    for match, term, placeholder, formal in (inputs[:4], inputs[4:]):
        assert formal == [FORMALITY["formal"], *placeholder]
        assert match.count(MATCH) == 1 and match[match.index(MATCH) + 1].startswith("▁")
        assert [piece for piece in term if piece in TERM] == [*TERM]
        assert placeholder.count("⟦1⟧") == 1


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_new_vocabulary_has_its_size_with_them(kind, train, tmp_path):
    settings = [
        *RESERVED_BY_SETTING,
        "data.source_language=en",
        "data.target_language=es",
        f"data.tokenizer.kind={kind}",
    ]
    train(tmp_path / "new", *settings, "data.tokenizer.vocabulary=300", "training.max_steps=1", data=CORPORA)
    tokenizer = RunFolder(tmp_path / "new").tokenizer()
    assert tokenizer.source_size == 300 and tokenizer.reserves(ALL_PIECES)


@pytest.mark.parametrize("setting", RESERVED_BY_SETTING)
def test_an_adapter_can_not_get_them(setting, train, small_run, tmp_path):
    initialization = f"training.begin_from={small_run}", "training.adapter_rank=2"
    languages = "data.source_language=en", "data.target_language=es"
    with pytest.raises(UserError, match=rf"lacks the pieces of {setting.partition('=')[0]}, and can't get any"):
        train(tmp_path / "run", *initialization, setting, *languages, data=CORPORA)
    assert not (tmp_path / "run").exists()
