"""Names that a model has never learned: it reads a usual name in their place, and the name is put back."""

import itertools

import pytest

from translucid.api.translator import Translator
from translucid.data.placeholders import Masked, NameStandIn
from translucid.data.text_pipeline import TextPipeline
from translucid.decoding.hypothesis import Hypothesis
from translucid.engines.name_stand_ins import USUAL_NOUNS, NameStandIns
from translucid.ground.special import SPECIAL
from translucid.terminology.matching import TermList
from translucid.terminology.term import terms_of

NAMES = [("Acme Cloud",), ("Ferblat",), ("soccer", "balompié")]


@pytest.fixture(scope="module")
def tokenizer(small_run):
    return Translator.load(small_run, engine="torch").tokenizer


def searched(tokenizer, text, translate, terms=NAMES, forced=None, language="es"):
    """Return what comes of a text, as it is shown, and all that the model has read.

    `translate` is the model; `forced` gets for each further search whether it has to write the stand-ins.
    """
    read = []

    def search(texts):
        found = []
        for pieces in texts:
            found.append([])
            for piece in pieces:
                if piece.ids:
                    read.append(tokenizer.decode_source(piece.ids))
                    (tokens,) = tokenizer.encode_target([translate(read[-1])])
                    found[-1].append([Hypothesis(tokens, -1.0, -1.0)])
        return found

    def search_again(more):
        if forced is not None:
            forced.append(bool(more))
        return search

    pieces = TextPipeline(tokenizer, 99, "en").pieces([text], split=True)
    (pieces,), (found,) = NameStandIns(tokenizer, TermList(terms_of(terms)), language).search(
        pieces, search, search_again
    )
    hypotheses = iter(found)
    shown = []
    for piece in pieces:
        written = piece.text
        if piece.ids:
            written = piece.masked.unmask(tokenizer.decode(next(hypotheses)[0].tokens))
        shown.append(written)
    return shown, read


def test_a_usual_name_stands_in_and_the_name_is_put_back(tokenizer):
    (shown,), (read,) = searched(tokenizer, "I see Acme Cloud, and Acme Cloud sees Ferblat.", lambda text: text)
    assert shown == "I see Acme Cloud, and Acme Cloud sees Ferblat."
    assert "Acme" not in read and "Ferblat" not in read
    one = read.split(",")[0].removeprefix("I see ")
    assert read.count(one) == 2 and not read.endswith(f"sees {one}.")


@pytest.mark.parametrize(("pieces", "stays"), [(1, True), (2, True), (3, False)])
def test_a_name_of_few_pieces_needs_no_stand_in(tokenizer, pieces, stays):
    syllables = ["Ba", "Do", "Ka", "La", "Mi", "No", "Ra", "So", "Ta", "be", "ca", "do", "la", "mi", "no", "ra", "ta"]
    words = ["".join(each) for length in (1, 2, 3) for each in itertools.product(syllables, repeat=length)]
    counts = zip(words, tokenizer.encode_source(words), strict=True)
    opening = len(tokenizer.source_opening)
    name = next(word for word, ids in counts if len(ids) - opening == pieces and SPECIAL.unknown not in ids)
    _, (read,) = searched(tokenizer, f"I see {name} here.", lambda text: text, [(name,)])
    assert (read == f"I see {name} here.") is stays


def test_a_name_that_is_lost_or_doubled_is_tried_in_other_ways_and_then_as_it_is(tokenizer):
    forced = []
    (shown,), read = searched(tokenizer, "I see Ferblat.", lambda text: "Veo Ferblat.", forced=forced)
    first, noun, *others, again, last = (text.removeprefix("I see ").rstrip(".") for text in read)
    assert first == again and len({first, noun, *others, last}) == 6 and noun.islower()
    assert forced == [False, False, False, False, True, False]
    assert last == "Ferblat" and shown == "Veo Ferblat."


def test_a_name_too_many_is_kept_where_nothing_better_was_found(tokenizer):
    (shown,), read = searched(tokenizer, "I see Ferblat.", lambda text: f"{text} {text}")
    assert shown == "I see Ferblat. I see Ferblat." and "I see Ferblat." not in read


def test_a_noun_has_a_capital_where_a_sentence_begins(tokenizer):
    def noun_only(text):
        return text if text.split()[0].casefold() in USUAL_NOUNS else "Canta."

    (shown,), read = searched(tokenizer, "Ferblat sings.", noun_only)
    assert shown == "Ferblat sings." and len(read) == 2 and read[-1][0].isupper()


def test_a_name_with_a_target_becomes_that_and_a_noun_does_not(tokenizer):
    terms = [("Acme Cloud", "Nube Acme"), ("quagga", "cuaga"), ("Ferblat", "pelota"), ("Quvix", "Cuvix", "name")]
    (shown,), (read,) = searched(tokenizer, "I see Acme Cloud and Quvix.", lambda text: text, terms)
    assert shown == "I see Nube Acme and Cuvix." and "Acme" not in read and "Quvix" not in read
    for text in ("I see a quagga.", "I see Ferblat."):
        assert searched(tokenizer, text, lambda text: text, terms)[1] == [text]


@pytest.mark.parametrize(
    ("language", "tries"),
    [
        *(("ru", [True, False]), ("zh-Hans", [True, False]), ("ba", [True, False]), ("yue", [True, False])),
        *((None, None), ("sr-Latn", None)),
    ],
)
def test_no_time_is_lost_with_other_names_where_they_are_written_in_another_script(tokenizer, language, tries):
    forced = []
    _, read = searched(tokenizer, "I see Ferblat.", lambda text: "Canta.", forced=forced, language=language)
    assert forced == (tries or [False, False, False, False, True, False])
    assert read[-1] == "I see Ferblat."


def test_what_comes_of_a_sentence_does_not_depend_on_others(tokenizer):
    def seldom(text):
        return text if "beach" in text else "Canta."

    sentences = [
        "I see Ferblat.",
        "Ferblat is at the beach.",
        "I like Ferblat.",
        "She sees Ferblat.",
        "We see Ferblat.",
    ]
    alone = [searched(tokenizer, sentence, seldom)[0][0] for sentence in sentences]
    assert searched(tokenizer, " ".join(sentences), seldom)[0] == alone


def test_only_the_sentence_whose_name_is_lost_is_tried_again(tokenizer):
    first = []

    def loses_once(text):
        if "beach" in text and not first:
            first.append(text)
            return "Nada."
        return text

    shown, read = searched(tokenizer, "I see Ferblat. Ferblat is at the beach. She sings.", loses_once)
    assert shown == ["I see Ferblat.", "Ferblat is at the beach.", "She sings."]
    assert len(read) == 4 and "beach" in read[-1]


def test_a_text_of_nothing_but_names_is_not_for_the_model(tokenizer):
    assert searched(tokenizer, "Acme Cloud – Ferblat", str.upper) == (["Acme Cloud – Ferblat"], [])


def test_terms_with_targets_and_texts_without_names_stay_as_they_are(tokenizer):
    assert searched(tokenizer, "I like soccer.", lambda text: text)[1] == ["I like soccer."]


def test_what_stands_in_is_neither_in_the_text_nor_a_term(tokenizer):
    (read,) = searched(tokenizer, "I see Ferblat.", lambda text: text)[1]
    usual = read.removeprefix("I see ").rstrip(".")
    (other,) = searched(tokenizer, f"I see Ferblat and {usual}.", lambda text: text)[1]
    assert other.count(usual) == 1 and "Ferblat" not in other
    (other,) = searched(tokenizer, "I see Ferblat.", lambda text: text, [*NAMES, (usual, "Eva")])[1]
    assert usual not in other


@pytest.mark.parametrize("text", ["See {Ferblat} today.", "See www.Ferblat.example today."])
def test_a_name_within_a_placeholder_or_an_address_is_none(tokenizer, text):
    (read,) = searched(tokenizer, text, lambda text: text)[1]
    assert "Ferblat" in read


def test_names_are_put_back_as_whole_words_and_count_as_many_words():
    names = NameStandIn("Ana", "Acme Cloud", "la Nube Acme"), NameStandIn("golf", "Ferblat", "Ana Lyst")
    masked = Masked("I see Ana", {}, names)
    assert masked.unmask("Golf: Ana, no a Anabel ni a golf.") == "Ana Lyst: la Nube Acme, no a Anabel ni a Ana Lyst."
    assert masked.sizes(["Veo", "Ana,", "Anabel"]) == [1, 3, 1]
    assert masked.sizes(["see", "Ana,", "golf"], of_source=True) == [1, 2, 1]


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_a_translator_gives_the_name_with_letters_that_the_model_does_not_have(small_run, engine):
    """Alignments and uses are those of the name, whatever the model has read."""
    translator = Translator.load(small_run, engine=engine).with_terms([("Ќøž",), ("soccer", "balompié")])
    found = translator.translate("Ќøž")
    assert (found.text, [use.outcome for use in found.terms]) == ("Ќøž", ["used"])
    assert found.warnings == [] and found.alignment == [(0, 0)]
