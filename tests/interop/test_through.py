"""In imported models, the language token is never treated as a word."""

import json
from dataclasses import replace

import pytest
import torch

from tests.probes.foreign import SHORT, many_languages_folder, marian_folder, sentences
from translucid.api.translator import Translator
from translucid.decoding.decoding_options import SearchRequest
from translucid.decoding.search import TorchEngine, continuations
from translucid.decoding.shortlist import read_shortlist
from translucid.engines.tuned import Tuned, save_tuned
from translucid.engines.tuning import all_configurations, learn_links, seen_pieces
from translucid.ground.special import SPECIAL
from translucid.inspection.explain import Case, explain
from translucid.inspection.inspected import Inspected, viewer_record
from translucid.interop.importing import import_model

TEXT, TARGET = "I like soccer", "me gusta el fútbol"
TEXTS = [*sentences()[0][:12]]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """An imported M2M100, with language tokens in the source and in the target."""
    folder = tmp_path_factory.mktemp("through")
    many_languages_folder(folder / "theirs", end=1.0)
    import_model(folder / "theirs", folder / "run", source_language="en", target_language="es")
    return folder / "run"


@pytest.fixture(scope="module")
def m2m(run):
    return Translator.load(run, "cpu", "torch")


@pytest.fixture(scope="module")
def marian(tmp_path_factory):
    """An imported MarianMT model, with the target language's token in the source."""
    folder = tmp_path_factory.mktemp("through")
    marian_folder(folder / "theirs", languages=("es", "pt"))
    import_model(folder / "theirs", folder / "run", target_language="pt")
    return Translator.load(folder / "run", "cpu", "torch")


@pytest.fixture(params=["m2m", "marian"])
def translator(request):
    return request.getfixturevalue(request.param)


def test_words_are_those_of_the_text_and_attention_to_the_language_has_a_column(translator):
    (inspected,) = translator.inspector.inspect([(TEXT, TARGET)])
    words = inspected.words()
    language = "__en__" if inspected.opening[1] else ">>pt<<"
    assert words.source == [language, *TEXT.split(), "</s>"]
    assert words.target == [*TARGET.split(), "</s>"]
    torch.testing.assert_close(words.weights.sum(1), torch.ones(5))
    opening_length = inspected.opening[1]
    first = next(after for _, _, after in inspected.target_spans)
    torch.testing.assert_close(words.weights[0, 0], inspected.cross()[opening_length:first, 0].mean())
    assert len(inspected.word_log_probs()) == 5
    assert sum(inspected.word_log_probs()) == pytest.approx(sum(inspected.log_probs[opening_length:]))
    reloaded = Inspected.from_json(json.loads(json.dumps(inspected.to_json())))
    assert reloaded.words().source == words.source and reloaded.opening == inspected.opening
    record = viewer_record(inspected)
    assert (record["source"], record["target"]) == (words.source, words.target)
    assert len(record["probabilities"]) == len(record["target"])


def test_contributions_of_an_imported_model_sum_to_1(translator):
    (inspected,) = translator.inspector.inspect([(TEXT, TARGET)], contributions=True)
    source = inspected.words(inspected.cross(method="contributions"))
    prefix = inspected.prefix_words()
    torch.testing.assert_close(source.weights.sum(1) + prefix.weights.sum(1), torch.ones(5))
    assert source.source == inspected.words().source
    assert prefix.target == source.target and prefix.source[prefix.opening :] == TARGET.split()
    expected = source.weights.sum(1).tolist()
    assert inspected.source_contributions() == pytest.approx(expected)


@pytest.mark.parametrize("both", [True, False])
@pytest.mark.parametrize("shift", [True, False])
def test_links_are_between_words_also_where_the_language_is_looked_at_most(translator, both, shift):
    from translucid.evaluation.alignment_error import AlignmentOptions
    from translucid.inspection.alignment import read_alignment

    options = AlignmentOptions(both=both, shift=shift)
    inspected = translator.inspector.inspect([(TEXT, TARGET)])[0]
    maps = {name: weights.clone() for name, weights in inspected.maps.items()}
    for name, weights in maps.items():
        if name.endswith("cross"):
            weights[..., 0] += 5
    for candidate in (
        inspected,
        Inspected(inspected.source, inspected.target, maps, inspected.log_probs, inspected.opening),
    ):
        links = read_alignment(candidate, options)
        if not both:
            assert {target for _, target in links} == {0, 1, 2, 3}
        assert links and all(0 <= source < 3 and 0 <= target < 4 for source, target in links)
    for translation in translator.translate(TEXTS, split=False, **SHORT):
        sources, targets = len(translation.source.split()), len(translation.text.split())
        assert all(0 <= s < sources and 0 <= t < max(targets, 1) for s, t in translation.alignment)


def test_an_explanation_leaves_the_language_where_it_is(translator):
    case = Case(translator.model, translator.pipeline, TEXT, TARGET)
    assert (case.source_words, case.target_words) == (TEXT.split(), TARGET.split())
    assert case.attention().shape == (4, 3)
    sources = []
    encode = translator.model.encode

    def spy(source, *arguments):
        sources.append(source)
        return encode(source, *arguments)

    translator.model.encode = spy
    try:
        case.log_probs(torch.tensor([[False, False, False], [True, False, True]]))
    finally:
        del translator.model.encode
    opening = list(translator.tokenizer.source_opening)
    empty_source = [i for i in sources[0][0].tolist() if i != SPECIAL.pad]
    assert empty_source == [*opening, SPECIAL.end]
    assert sources[0][1].tolist()[:1] == opening
    baseline, source = case.interpolation_path()
    same = (baseline == source).all(-1)[0]
    assert same[0] and same[-1] and not same[1:-1].any()
    for method in ("erasure", "lime", "gradients"):
        assert explain(case, method, samples=20).importance.shape == (4, 3)


def test_the_language_token_is_not_scored(m2m):
    (translation,) = m2m.translate([TEXT])
    ((*pieces, end),) = translation.token_log_probabilities
    hypothesis = translation.nbest[0].hypotheses[0]
    assert end[0] == "</s>" and len(pieces) == len(hypothesis.tokens) - 1
    assert sum(value for _, value in [*pieces, end]) == pytest.approx(hypothesis.log_probability, abs=1e-4)
    forced, _ = m2m.inspector.forced_scores([(TEXT, TARGET)])
    (inspected,) = m2m.inspector.inspect([(TEXT, TARGET)])
    assert forced.tokens == len(inspected.target) - 1


def test_doubts_count_the_tokens_of_the_text(m2m):
    """Eight source tokens and two target tokens are too short; one more on each side would pass."""
    tokenizer = m2m.tokenizer
    source_ids = [*tokenizer.source_opening, *range(40, 48)]
    target_ids = [*tokenizer.target_opening, 40, 41]
    about = m2m.quality.checks.about
    assert about("a b c d", source_ids, "x y", target_ids, 0.0) == ["too short: 2 words for 4"]
    assert about("a b c d", source_ids[:-1], "x y", target_ids, 0.0) == []
    assert about("a b c d", source_ids, "x y", [*target_ids, 42], 0.0) == []


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
@pytest.mark.parametrize("shortest", [1, 3])
def test_an_output_is_not_empty_though_its_language_is_a_token(tmp_path, engine, shortest):
    many_languages_folder(tmp_path / "theirs", end=9.0)  # a bias that would end outputs at once
    import_model(tmp_path / "theirs", tmp_path / "run", source_language="en", target_language="es")
    translator = Translator.load(tmp_path / "run", "cpu", engine)
    for beam in (1, 3):
        (translation,) = translator.translate([TEXT], beam=beam, min_length=shortest)
        assert len(translation.nbest[0].hypotheses[0].tokens) == 1 + shortest


def test_a_loop_is_scored_by_ctranslate2_as_by_us(run, m2m):
    """CTranslate2 searches again with the loop forbidden, and scores the new output."""
    their_translator = Translator.load(run, "cpu", "ctranslate2")
    options = {"beam": 2, "max_loops": 2, "max_length_ratio": 0.0, "max_length_extra": 5}
    for text in TEXTS[:6]:
        ours, theirs = (
            candidate.translate(text, **options).nbest[0].hypotheses[0] for candidate in (m2m, their_translator)
        )
        assert ours.tokens == theirs.tokens
        assert theirs.log_probability == pytest.approx(ours.log_probability, abs=2e-2)


def test_search_trees_and_continuations_begin_with_the_language(m2m):
    trace = m2m.inspector.trace(TEXT, 3)
    first = [node for node in trace.nodes if node.parent == 0]
    assert [(trace.name(node.token), node.log_prob) for node in first] == [("__es__", 0.0)]
    opening = m2m.tokenizer.target_opening
    source = torch.tensor([[*m2m.tokenizer.encode_source([TEXT])[0], SPECIAL.end]])
    hypotheses = continuations(m2m.model, source, opening, 4, m2m.configuration.decoding, prefix_length=1)
    assert all(
        hypothesis.tokens[:1] == opening and hypothesis.token_log_probabilities[0] == 0 for hypothesis in hypotheses
    )
    finished = [hypothesis for hypothesis in hypotheses if hypothesis.tokens == opening]
    assert all(len(hypothesis.token_log_probabilities) == 2 for hypothesis in finished)


def test_each_piece_of_a_long_text_has_the_language_token(translator):
    text = " ".join(sentences()[0][:40]).replace(".", ",").replace("?", ",")
    translator = replace(translator, pipeline=replace(translator.pipeline, longest=40))
    translation = translator.translate(text, beam=1)
    opening = list(translator.tokenizer.source_opening)
    assert len(translation.parts) > 3
    assert all(piece.ids[:1] == opening and len(piece.ids) <= 40 for piece, _ in translation.parts)


LANGUAGES = ["__en__", "__es__"]


def shortlists(translator):
    """Return vocabularies by name: the target-side vocabulary of a text, and a shortlist by source words."""
    tokenizer = translator.tokenizer
    links = learn_links(
        translator.model, [pair.ids for pair in translator.pipeline.pairs([(TEXT, TARGET)])], torch.device("cpu")
    )
    return {
        "seen pieces": seen_pieces(tokenizer, [TARGET], None, LANGUAGES),
        "small shortlist": links.shortlist(tokenizer, 2, 3, LANGUAGES),
    }


@pytest.mark.parametrize("considered", ["seen pieces", "small shortlist"])
@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_a_shortlist_holds_for_its_languages_and_has_them_all(run, m2m, considered, engine):
    (run / "tuned.json").unlink(missing_ok=True)
    full_translator = Translator.load(run, "cpu", "torch")
    expected = [
        translation.nbest[0].hypotheses[0].tokens
        for translation in full_translator.between("es", "en").translate(TEXTS, beam=1, **SHORT)
    ]
    tuned = Tuned(engine=engine, considered=considered, languages=("en", "es"))
    save_tuned(run, tuned, shortlists(m2m)[considered])
    try:
        shortlist = read_shortlist(run / "shortlist.tsv", m2m.tokenizer)
        names = m2m.tokenizer.target_pieces(shortlist.always)
        assert {*LANGUAGES} <= {*names}
        narrow = Translator.load(run, "cpu")
        assert considered in str(narrow.engine)
        spanish = m2m.tokenizer.target_opening
        for translation in narrow.translate(TEXTS, beam=2, **SHORT):
            tokens = translation.nbest[0].hypotheses[0].tokens
            assert tokens[:1] == spanish
            if considered == "seen pieces":
                assert {*tokens} <= {*shortlist.always}
        reversed_translator = narrow.between("es", "en")
        assert "all pieces" in str(reversed_translator.engine)
        assert [
            translation.nbest[0].hypotheses[0].tokens
            for translation in reversed_translator.translate(TEXTS, beam=1, **SHORT)
        ] == expected
        assert "all pieces" in str(Translator.load(run, "cpu", source="es", target="en").engine)
    finally:
        (run / "tuned.json").unlink()
        (run / "shortlist.tsv").unlink()


def test_ctranslate2_gets_no_lists_by_words_with_a_target_prefix(m2m):
    lists = ["seen pieces", "small shortlist", "large shortlist"]
    configurations = all_configurations(m2m.model, lists, opened=True)
    assert {configuration.considered for configuration in configurations if configuration.engine == "ctranslate2"} == {
        "all pieces",
        "seen pieces",
    }
    assert {configuration.considered for configuration in configurations if configuration.engine == "torch"} == {
        "all pieces",
        *lists,
    }


def test_a_complete_shortlist_does_not_change_our_search(m2m, tmp_path):
    file = tmp_path / "list.tsv"
    names = [piece for piece in m2m.tokenizer.target_vocabulary[4:] if " " not in piece]
    file.write_text(f"\t{' '.join(names)}\n")
    engine = TorchEngine.of(m2m.model, m2m.tokenizer, torch.device("cpu"))
    ids = [[*ids, SPECIAL.end] for ids in m2m.tokenizer.encode_source(TEXTS)]
    options = m2m.configuration.decoding_with(SHORT)
    narrow = engine.restricted("seen pieces", file, m2m.tokenizer)
    assert [hypotheses[0].tokens for hypotheses in narrow.decode(SearchRequest(ids, options))] == [
        hypotheses[0].tokens for hypotheses in engine.decode(SearchRequest(ids, options))
    ]
