"""Several senses of a term: by domain, by example, and what stays as it was."""

import json

import numpy as np
import pytest
import torch

from translucid import Translator
from translucid.cli.main import run
from translucid.engines.sense_choice import SenseChooser
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.terminology.glossary import Term
from translucid.terminology.matching import TermList, term_list

BANK = [
    Term("bank", "banco", domain="finance", example="Money is in the bank."),
    Term("bank", "caja", domain="finance", example="Money is in the bank."),
    Term("bank", "orilla", domain="river", example="We sat on the bank and fished."),
    Term("bank", "banca", domain="games"),
]


def targets(terms, text="We went to the bank."):
    (match,) = terms.matches(text)
    return match.targets


def test_a_domain_narrows():
    listed = [*BANK, Term("key", "llave"), Term("key", "tecla", domain="Computing; Games"), Term("fish", "pez")]
    games = term_list(listed, (None, None), False, domain="games")
    assert (
        targets(games) == ("banca",) and targets(games, "A key.") == ("tecla",) and targets(games, "Fish") == ("pez",)
    )
    river = term_list(listed, (None, None), False, domain="River")
    assert targets(river) == ("orilla",) and targets(river, "A key.") == ("llave",)
    law = [*listed, Term("right", "derecho", domain="law")]
    assert term_list(law, (None, None), False, domain="river").matches("Turn right.") == []
    with pytest.raises(UserError, match=r"no term of the domain 'law'.*finance, river, games, Computing"):
        term_list(listed, (None, None), False, domain="law")


def test_without_a_choice_the_first_sense_with_its_alternatives_is_used():
    (match,) = TermList(BANK).matches("We went to the bank.")
    assert match.targets == ("banco", "caja") and match.sense.why == "first" and match.sense.domain == "finance"
    # Without conditions, all targets are alternatives, as before.
    plain = TermList([Term("bank", "banco"), Term("bank", "orilla", "noun")])
    (match,) = plain.matches("We went to the bank.")
    assert match.targets == ("banco", "orilla") and match.sense is None and not plain.has_conditions
    (use,) = plain.uses([match], "Vamos a la orilla.")
    assert use.record() == {"source": "bank", "target": "banco", "outcome": "used"}


def test_the_sense_with_the_most_similar_example_is_chosen(small_run):
    translator = Translator.load(small_run, engine="torch")
    terms = [
        Term("book", "libro", example="I like the book and soccer."),
        Term("book", "reservar", example="She is happy to go to the book beach."),
    ]
    text = "The book is here and I like music."
    (match,) = translator.with_terms(terms).terms.matches(text)

    def state(sentence, word):
        """The oracle: the mean of the encoder's states of the pieces outside of a word of one or more pieces."""
        (ids,) = translator.tokenizer.encode_source([sentence])
        (until,) = translator.tokenizer.encode_source([sentence[: sentence.index(word) + len(word)]])
        (before,) = translator.tokenizer.encode_source([sentence[: sentence.index(word)].rstrip()])
        with torch.no_grad():
            states = translator.model.encode(torch.tensor([[*ids, SPECIAL.end]])).states[0].double().numpy()
        rows = [row for index, row in enumerate(states[:-1]) if not len(before) <= index < len(until)]
        return sum(rows) / len(rows)

    def cosine(a, b):
        return a @ b / np.sqrt((a @ a) * (b @ b))

    expected = [cosine(state(text, "book"), state(term.example, "book")) for term in terms]
    best = int(np.argmax(expected))
    assert match.targets == (terms[best].target,) and match.sense.why == "example"
    assert match.sense.similarity == pytest.approx(expected[best], abs=1e-4)
    (other,) = match.sense.others
    assert other.target == terms[1 - best].target and other.similarity == pytest.approx(expected[1 - best], abs=1e-4)
    # The order of the list does not matter, and neither does a batch.
    reordered = translator.with_terms(terms[::-1]).terms
    assert reordered.matches(text)[0].targets == match.targets
    # A text of the term alone has nothing to compare.
    assert translator.with_terms(terms).terms.matches("Book")[0].sense.why == "first"
    for term in terms:  # each example chooses its own sense
        (match,) = reordered.matches(term.example)
        assert match.targets == (term.target,) and match.sense.similarity == pytest.approx(1, abs=1e-4)


def test_a_term_with_another_form_in_its_example_and_long_texts():
    class Engine:
        device = torch.device("cpu")

        class model:  # noqa: N801
            @staticmethod
            def encode(ids):
                return type("Memory", (), {"states": torch.nn.functional.one_hot(ids, 300).float()})

    class Tokenizer:
        source_opening = ()

        @staticmethod
        def encode_source(texts):
            return [[ord(character) for character in text.replace(" ", "")] for text in texts]

    chooser = SenseChooser(Engine, Tokenizer, longest=8)
    senses = [[Term("ab", "x", example="abs cdefghijkl")], [Term("ab", "y", example="ab uvw")], [Term("ab", "z")]]
    number, sense = chooser(senses, "ab cde", (0, 2))
    assert number == 0 and [other.target for other in sense.others] == ["y"]
    # The example has another form, which counts; of its letters, the first seven: a b s c d e f.
    assert sense.similarity == pytest.approx(3 / np.sqrt(3 * 7), abs=1e-4)


def test_the_choice_is_shown(small_run, tmp_path, capfd):
    file = tmp_path / "terms.tsv"
    rows = ["source\ttarget\tdomain\texample", "book\tdoctora\tlaw\tI like the book."]
    file.write_text("\n".join([*rows, "book\tmusica\tart\tShe has a book too.\n"]))
    arguments = ["translate", str(small_run), "I like the book.", "--terms", str(file), "--format", "jsonl"]
    assert run(arguments) == 0
    (term,) = json.loads(capfd.readouterr().out)["terms"]
    assert (term["target"], term["sense"]["why"], term["sense"]["domain"]) == ("doctora", "example", "law")
    assert term["sense"]["example"] == "I like the book." and term["sense"]["others"][0]["target"] == "musica"
    assert run([*arguments, "--domain", "art"]) == 0
    (term,) = json.loads(capfd.readouterr().out)["terms"]
    assert term["target"] == "musica" and "sense" not in term
    assert run([*arguments, "--domain", "music"]) == 2
    assert "There are: law, art." in capfd.readouterr().err
    assert run(["translate", str(small_run), "A", "--domain", "art"]) == 2
    assert "--domain is for --terms" in capfd.readouterr().err
