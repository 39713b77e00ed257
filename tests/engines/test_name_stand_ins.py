"""Unknown names: the model reads a common name in their place, and the name is restored in the translation."""

import itertools

import pytest

from bitext.protected_spans import StandIn
from translucid.api.translator import Translator
from translucid.data.placeholders import Masked
from translucid.data.text_pipeline import TextPipeline
from translucid.decoding.hypothesis import Hypothesis
from translucid.engines.name_stand_ins import USUAL_NOUNS, NameStandIns
from translucid.ground.special import SPECIAL
from translucid.terminology.glossary import terms_of
from translucid.terminology.matching import TermList

NAMES = [("Acme Cloud",), ("Ferblat",), ("soccer", "balompié")]


@pytest.fixture(scope="module")
def tokenizer(small_run):
    return Translator.load(small_run, engine="torch").tokenizer


def searched(tokenizer, text, translate, terms=NAMES, forced=None, language="es"):
    """Return the translated sentences of a text and all texts that the model has read.

    `translate` is the model; `forced` collects for each further search whether stand-ins are constraints.
    """
    model_texts = []

    def search(texts):
        nbest_lists = []
        for pieces in texts:
            nbest_lists.append([])
            for piece in pieces:
                if piece.ids:
                    model_texts.append(tokenizer.decode_source(piece.ids))
                    (tokens,) = tokenizer.encode_target([translate(model_texts[-1])])
                    nbest_lists[-1].append([Hypothesis(tokens, -1.0, -1.0)])
        return nbest_lists

    def search_again(constraints):
        if forced is not None:
            forced.append(bool(constraints))
        return search

    pieces = TextPipeline(tokenizer, 99, "en").pieces([text], split=True)
    (pieces,), (nbest_lists,) = NameStandIns(tokenizer, TermList(terms_of(terms)), language).search(
        pieces, search, search_again
    )
    hypotheses = iter(nbest_lists)
    sentences = []
    for piece in pieces:
        sentence = piece.text
        if piece.ids:
            sentence = piece.masked.unmask(tokenizer.decode(next(hypotheses)[0].tokens))
        sentences.append(sentence)
    return sentences, model_texts


def test_a_usual_name_stands_in_and_the_name_is_put_back(tokenizer):
    (sentence,), (model_text,) = searched(
        tokenizer, "I see Acme Cloud, and Acme Cloud sees Ferblat.", lambda text: text
    )
    assert sentence == "I see Acme Cloud, and Acme Cloud sees Ferblat."
    assert "Acme" not in model_text and "Ferblat" not in model_text
    stand_in = model_text.split(",")[0].removeprefix("I see ")
    assert model_text.count(stand_in) == 2 and not model_text.endswith(f"sees {stand_in}.")


@pytest.mark.parametrize(("pieces", "is_unchanged"), [(1, True), (2, True), (3, False)])
def test_a_name_of_few_pieces_needs_no_stand_in(tokenizer, pieces, is_unchanged):
    syllables = ["Ba", "Do", "Ka", "La", "Mi", "No", "Ra", "So", "Ta", "be", "ca", "do", "la", "mi", "no", "ra", "ta"]
    words = ["".join(parts) for length in (1, 2, 3) for parts in itertools.product(syllables, repeat=length)]
    counts = zip(words, tokenizer.encode_source(words), strict=True)
    opening = len(tokenizer.source_opening)
    name = next(word for word, ids in counts if len(ids) - opening == pieces and SPECIAL.unknown not in ids)
    _, (model_text,) = searched(tokenizer, f"I see {name} here.", lambda text: text, [(name,)])
    assert (model_text == f"I see {name} here.") is is_unchanged


def test_a_lost_or_doubled_name_is_tried_with_other_stand_ins_and_then_unchanged(tokenizer):
    forced = []
    (sentence,), model_texts = searched(tokenizer, "I see Ferblat.", lambda text: "Veo Ferblat.", forced=forced)
    first, noun, *others, repeated, last = (text.removeprefix("I see ").rstrip(".") for text in model_texts)
    assert first == repeated and len({first, noun, *others, last}) == 6 and noun.islower()
    assert forced == [False, False, False, False, True, False]
    assert last == "Ferblat" and sentence == "Veo Ferblat."


def test_a_name_too_many_is_kept_where_nothing_better_was_found(tokenizer):
    (sentence,), model_texts = searched(tokenizer, "I see Ferblat.", lambda text: f"{text} {text}")
    assert sentence == "I see Ferblat. I see Ferblat." and "I see Ferblat." not in model_texts


def test_a_noun_has_a_capital_where_a_sentence_begins(tokenizer):
    def noun_only(text):
        return text if text.split()[0].casefold() in USUAL_NOUNS else "Canta."

    (sentence,), model_texts = searched(tokenizer, "Ferblat sings.", noun_only)
    assert sentence == "Ferblat sings." and len(model_texts) == 2 and model_texts[-1][0].isupper()


def test_a_name_with_a_target_becomes_that_and_a_noun_does_not(tokenizer):
    terms = [("Acme Cloud", "Nube Acme"), ("quagga", "cuaga"), ("Ferblat", "pelota"), ("Quvix", "Cuvix", "name")]
    (sentence,), (model_text,) = searched(tokenizer, "I see Acme Cloud and Quvix.", lambda text: text, terms)
    assert sentence == "I see Nube Acme and Cuvix." and "Acme" not in model_text and "Quvix" not in model_text
    for text in ("I see a quagga.", "I see Ferblat."):
        assert searched(tokenizer, text, lambda text: text, terms)[1] == [text]


@pytest.mark.parametrize(
    ("language", "attempts"),
    [
        *(("ru", [True, False]), ("zh-Hans", [True, False]), ("ba", [True, False]), ("yue", [True, False])),
        *((None, None), ("sr-Latn", None)),
    ],
)
def test_no_time_is_lost_with_other_names_where_they_are_written_in_another_script(tokenizer, language, attempts):
    forced = []
    _, model_texts = searched(tokenizer, "I see Ferblat.", lambda text: "Canta.", forced=forced, language=language)
    assert forced == (attempts or [False, False, False, False, True, False])
    assert model_texts[-1] == "I see Ferblat."


def test_a_result_does_not_depend_on_other_sentences(tokenizer):
    def translate_some(text):
        return text if "beach" in text else "Canta."

    sentences = [
        "I see Ferblat.",
        "Ferblat is at the beach.",
        "I like Ferblat.",
        "She sees Ferblat.",
        "We see Ferblat.",
    ]
    expected = [searched(tokenizer, sentence, translate_some)[0][0] for sentence in sentences]
    assert searched(tokenizer, " ".join(sentences), translate_some)[0] == expected


def test_only_the_sentence_whose_name_is_lost_is_tried_again(tokenizer):
    lost = []

    def lose_once(text):
        if "beach" in text and not lost:
            lost.append(text)
            return "Nada."
        return text

    sentences, model_texts = searched(tokenizer, "I see Ferblat. Ferblat is at the beach. She sings.", lose_once)
    assert sentences == ["I see Ferblat.", "Ferblat is at the beach.", "She sings."]
    assert len(model_texts) == 4 and "beach" in model_texts[-1]


def test_a_text_of_nothing_but_names_is_not_for_the_model(tokenizer):
    assert searched(tokenizer, "Acme Cloud – Ferblat", str.upper) == (["Acme Cloud – Ferblat"], [])


def test_terms_with_targets_and_texts_without_names_stay_as_they_are(tokenizer):
    assert searched(tokenizer, "I like soccer.", lambda text: text)[1] == ["I like soccer."]


def test_what_stands_in_is_neither_in_the_text_nor_a_term(tokenizer):
    (first_text,) = searched(tokenizer, "I see Ferblat.", lambda text: text)[1]
    stand_in = first_text.removeprefix("I see ").rstrip(".")
    (model_text,) = searched(tokenizer, f"I see Ferblat and {stand_in}.", lambda text: text)[1]
    assert model_text.count(stand_in) == 1 and "Ferblat" not in model_text
    (model_text,) = searched(tokenizer, "I see Ferblat.", lambda text: text, [*NAMES, (stand_in, "Eva")])[1]
    assert stand_in not in model_text


@pytest.mark.parametrize("text", ["See {Ferblat} today.", "See www.Ferblat.example today."])
def test_a_name_within_a_placeholder_or_an_address_is_none(tokenizer, text):
    (model_text,) = searched(tokenizer, text, lambda text: text)[1]
    assert "Ferblat" in model_text


def test_names_are_put_back_as_whole_words_and_count_as_many_words():
    names = (
        StandIn("Ana", "Acme Cloud", "la Nube Acme", is_term=True),
        StandIn("golf", "Ferblat", "Ana Lyst", is_term=True),
    )
    masked = Masked("I see Ana", {}, names)
    assert masked.unmask("Golf: Ana, no a Anabel ni a golf.") == "Ana Lyst: la Nube Acme, no a Anabel ni a Ana Lyst."
    assert masked.sizes(["Veo", "Ana,", "Anabel"]) == [1, 3, 1]
    assert masked.sizes(["see", "Ana,", "golf"], in_source=True) == [1, 2, 1]


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_a_translator_gives_the_name_with_letters_that_the_model_does_not_have(small_run, engine):
    """Alignments and term uses refer to the name, not to its stand-in."""
    translator = Translator.load(small_run, engine=engine).with_terms([("Ќøž",), ("soccer", "balompié")])
    translation = translator.translate("Ќøž")
    assert (translation.text, [use.outcome for use in translation.terms]) == ("Ќøž", ["used"])
    assert translation.warnings == [] and translation.alignment == [(0, 0)]
