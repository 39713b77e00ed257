"""Sentences with *usted* in place of *tú*."""

import pytest

from translucid.corpora.phrasebook import Phrase
from translucid.corpora.phrasebook.formality import as_formal
from translucid.corpora.phrasebook.word_labels import SentenceLabels

CASES = [
    # source, target with the words of the second person after `*`, formal target
    ("You drink tea when you are tired.", "*Bebes té cuando *estás cansado.", "Bebe té cuando está cansado."),
    ("Do you like soccer?", "¿*Te:indirect gusta el fútbol?", "¿Le gusta el fútbol?"),
    ("You go to bed late.", "*Te *acuestas tarde.", "Se acuesta tarde."),
    ("They love you.", "*Te quieren.", "Lo quieren."),
    ("I have to help you.", "Tengo que ayudarte.", "Tengo que ayudarlo."),
    ("He can give you a letter.", "Puede darte una carta.", "Puede darle una carta."),
    ("You want to get up.", "*Quieres levantarte.", "Quiere levantarse."),
    ("Play soccer!", "¡*Juega al fútbol!", "¡Juegue al fútbol!"),
    ("Go to the beach.", "*Ve a la playa.", "Vaya a la playa."),
    ("Watch the movie.", "*Ve la película.", "Vea la película."),
    ("Your friends sing.", "*Tus amigos cantan.", "Sus amigos cantan."),
    ("He drinks tea.", "Bebe té.", "Bebe té."),
]


@pytest.mark.parametrize(("source", "marked", "formal"), CASES)
def test_each_word_that_addresses_the_reader_is_that_of_usted(source, marked, formal):
    words = marked.split()
    labels = []
    for word in words:
        role = {"role": "indirect object"} if ":indirect" in word else {}
        labels.append({"person": "second", "number": "singular", **role} if "*" in word else {})
    target = marked.replace("*", "").replace(":indirect", "")
    links = tuple((0, i) for i in range(len(words)))
    phrase = Phrase(source, target, links, SentenceLabels((), tuple(labels)))
    assert as_formal(phrase) == Phrase(source, formal, links)


def test_the_links_of_con_usted_are_those_of_its_words():
    labels = SentenceLabels((), ({}, {"person": "second", "number": "singular"}, {}))
    phrase = Phrase("I sing with you today.", "Canto contigo hoy.", ((0, 0), (1, 0), (2, 1), (3, 1), (4, 2)), labels)
    expected = (0, 0), (1, 0), (2, 1), (3, 2), (4, 3)
    assert as_formal(phrase)[1:3] == ("Canto con usted hoy.", expected)
