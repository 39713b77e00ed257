"""Names that a model has never learned: it reads a usual name in their place, and the name is put back."""

import pytest

from translucid.data.cutting import Cutter
from translucid.data.placeholders import Hidden
from translucid.data.terms.matching import TermList
from translucid.data.terms.term import terms_of
from translucid.decoding.hypothesis import Hypothesis
from translucid.engines.name_stand_ins import ATTEMPTS, NameStandIns
from translucid.translator import Translator

NAMES = [("Acme Cloud",), ("Ferblat",), ("soccer", "balompié")]


@pytest.fixture(scope="module")
def tokenizer(small_run):
    return Translator.load(small_run, engine="torch").tokenizer


def searched(tokenizer, text, translate, terms=NAMES):
    """Return what comes of a text, as it is shown, and all that the model has read; `translate` is the model."""
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

    pieces = Cutter(tokenizer, 99, "en").pieces([text], split=True)
    (pieces,), (found,) = NameStandIns(tokenizer, TermList(terms_of(terms))).search(pieces, search)
    hypotheses = iter(found)
    shown = []
    for piece in pieces:
        written = piece.text
        if piece.ids:
            written = piece.hidden.shown(tokenizer.decode(next(hypotheses)[0].tokens))
        shown.append(written)
    return shown, read


def test_a_usual_name_stands_in_and_the_name_is_put_back(tokenizer):
    (shown,), (read,) = searched(tokenizer, "I see Acme Cloud, and Acme Cloud sees Ferblat.", lambda text: text)
    assert shown == "I see Acme Cloud, and Acme Cloud sees Ferblat."
    assert "Acme" not in read and "Ferblat" not in read
    one = read.split(",")[0].removeprefix("I see ")
    assert read.count(one) == 2 and not read.endswith(f"sees {one}.")


def test_a_name_that_is_lost_or_doubled_is_tried_with_another_and_then_as_it_is(tokenizer):
    names = []

    def loses(text):
        names.append(text.removeprefix("I see ").rstrip("."))
        return f"Veo {names[-1]} {names[-1]}."

    (shown,), read = searched(tokenizer, "I see Ferblat.", loses)
    assert len(set(names)) == len(names) == ATTEMPTS + 1
    assert read[-1] == "I see Ferblat." and shown == "Veo Ferblat Ferblat."


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
    hidden = Hidden("I see Ana", {}, (("Ana", "Acme Cloud"), ("Tom", "Ana Lyst")))
    assert hidden.shown("Veo a Ana, no a Anabel ni a Tom.") == "Veo a Acme Cloud, no a Anabel ni a Ana Lyst."
    assert hidden.sizes(["Veo", "Ana,", "Anabel"]) == [1, 2, 1]


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_a_translator_gives_the_name_with_letters_that_the_model_does_not_have(small_run, engine):
    """Alignments and uses are those of the name, whatever the model has read."""
    translator = Translator.load(small_run, engine=engine).with_terms([("Ќøž",), ("soccer", "balompié")])
    found = translator.translate("Ќøž")
    assert (found.text, [use.outcome for use in found.terms]) == ("Ќøž", ["used"])
    assert found.warnings == [] and found.alignment == [(0, 0)]
