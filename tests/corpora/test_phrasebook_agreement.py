"""Thousands of generated sentences against rules of spelling and agreement that do not depend on the grammar."""

import re
from collections import Counter
from itertools import pairwise

import pytest

from translucid.corpora.phrasebook import Phrase, generate

MASCULINE = """
    hombre niño médico profesor vecino amigo padre hermano hijo abuelo perro gato caballo pájaro pan arroz pescado
    queso pollo chocolate huevo bocadillo pastel café té zumo fútbol tenis baloncesto béisbol voleibol golf piano
    violín arte libro periódico cuento mensaje partido programa coche teléfono ordenador vestido sombrero abrigo
    regalo paraguas reloj lápiz mapa zapato billete parque mercado museo hospital restaurante teatro aeropuerto
    banco pueblo jardín hotel trabajo estómago brazo deporte
"""
FEMININE = """
    mujer niña madre hermana hija abuela sopa carne ensalada fruta manzana naranja leche guitarra historia música
    literatura geografía naturaleza carta revista película canción bicicleta camisa mesa silla bolsa caja flor
    lámpara llave foto puerta ventana casa cocina oficina playa escuela tienda biblioteca estación ciudad
    universidad iglesia cabeza espalda garganta pierna
"""
DETERMINERS = {
    "m": "el un este ese nuestro", "f": "la una esta esa nuestra",
    "ms": "los unos estos esos nuestros muchos algunos cuántos",
    "fs": "las unas estas esas nuestras muchas algunas cuántas",
}  # fmt: skip
KIND = {word: kind for kind, words in DETERMINERS.items() for word in words.split()}
COLOURS = {"roj", "blanc", "negr", "amarill", "pequeñ", "nuev", "viej", "car", "barat", "bonit"}
MARKS = ".,?!¿¡"


def nouns() -> dict[str, str]:
    """Return the gender and number of every noun form: m, f, ms, fs."""
    forms = {}
    for gender, words in (("m", MASCULINE), ("f", FEMININE)):
        for noun in words.split():
            forms[noun] = gender
            stem = re.sub("[óíé](?=n$)", lambda m: {"ó": "o", "í": "i", "é": "e"}[m[0]], noun)
            plural = noun + "s" if noun[-1] in "aeoé" else "lápices" if noun == "lápiz" else stem + "es"
            forms[plural] = gender + "s"
    forms["paraguas"] = "m?"
    return forms


@pytest.fixture(scope="module")
def phrases() -> list[Phrase]:
    return list(generate(5000, seed=11)) + list(generate(150, seed=12, min_words=25))


def bare(text: str) -> list[str]:
    return [word.strip(MARKS).lower() for word in text.split()]


def test_determiners_and_nouns_agree(phrases):
    forms, counts = nouns(), Counter()
    for phrase in phrases:
        spanish = bare(phrase.target)
        for determiner, noun, after in zip(spanish, spanish[1:], spanish[2:] + ["", ""], strict=False):
            if determiner in ("buen", "gran") or determiner not in KIND or noun in ("agua", "paraguas"):
                continue
            if noun in ("buen", "buena", "buenos", "buenas", "gran", "grandes"):
                noun = after
            if noun in forms:
                counts[noun] += 1
                assert KIND[determiner] == forms[noun], phrase.target
    assert sum(counts.values()) > 4400 and len(counts) > 150


def test_adjectives_agree_with_the_noun_before_them(phrases):
    forms, count = nouns(), 0
    endings = {"o": "m", "a": "f", "os": "ms", "as": "fs"}
    for phrase in phrases:
        spanish = phrase.target.split()
        for noun, adjective in pairwise(spanish):
            match = re.fullmatch(r"(\w+?)(os|as|o|a)", adjective.strip(MARKS))
            if noun.lower() in forms and noun.lower() != "paraguas" and match and match[1] in COLOURS:
                count += 1
                assert endings[match[2]] == forms[noun.lower()], phrase.target
    assert count > 80


def test_gustar_agrees_with_what_is_liked(phrases):
    counts = Counter()
    for phrase in phrases:
        for match in re.finditer(r"\b(gusta|encanta|interesa)(n?) (\S+) ([^,.?!]*)", phrase.target):
            verb_plural, first, rest = bool(match[2]), match[3].strip(MARKS), match[4]
            counts[verb_plural] += 1
            if first in ("los", "las", "estos", "estas", "esos", "esas", "sus", "tus"):
                assert verb_plural, phrase.target
            elif re.search(r"[aei]r(me|te|se|nos)?$", first):
                assert not verb_plural, phrase.target
            elif re.fullmatch(r"\w+ [ye] (el|la|los|las) \w+", rest):
                assert verb_plural, phrase.target
            elif verb_plural:  # several things
                assert re.search(r"\b[ye]\b", rest) or "," in phrase.target, phrase.target
    assert min(counts.values()) > 200


ENDINGS = {"we": ".*(mos|nos)", "they": ".*n|les|se", "you": ".*(s|ste)|te|ve|da|contigo"}


def test_pronouns_fix_the_person_of_the_verb_they_link_to(phrases):
    counts = Counter()
    for phrase in phrases:
        english, spanish = bare(phrase.source), bare(phrase.target)
        for position, word in enumerate(english):
            object_perhaps = word == "you" and (position == 0 or english[position - 1] not in ("do", "when", "if"))
            if word in ENDINGS and not object_perhaps:
                linked = [spanish[t] for s, t in phrase.alignment if s == position]
                counts[word] += 1
                assert linked and all(re.fullmatch(ENDINGS[word], verb) for verb in linked), (phrase, linked)
    assert min(counts.values()) > 50


def test_what_spelling_forbids_does_not_occur(phrases):
    for phrase in phrases:
        spanish = " " + phrase.target.lower().replace("¿", "") + " "
        assert " a el " not in spanish and " de el " not in spanish
        assert not re.search(r" y h?i(?!e|a)", spanish), phrase.target
        assert not re.search(r" o h?o", spanish), phrase.target
        assert " conmigo" in spanish or " con mí" not in spanish
        assert not re.search(r"\ba [aeiou](?!ni)\w+", phrase.source.replace("A ", "a ")), phrase.source
        assert "  " not in phrase.source + phrase.target and phrase.source.strip() == phrase.source


def test_marks_open_and_close(phrases):
    for phrase in phrases:
        for mark, opening in (("?", "¿"), ("!", "¡")):
            assert phrase.source.count(mark) == phrase.target.count(mark) == phrase.target.count(opening) <= 1
            assert phrase.source.endswith(mark) == phrase.target.endswith(mark) == (mark in phrase.source)
        assert phrase.target.lstrip("¿¡")[0].isupper() and phrase.source[0].isupper()
        assert (phrase.source[-1] == ".") == (phrase.target[-1] == ".")
        assert not phrase.target.startswith(("¿Hola,", "¿Buenos días,", "¿Buenas tardes,")), phrase.target


def test_nobody_meets_himself(phrases):
    clause = r"((?! and | that | while | because |,).)*"
    for phrase in phrases:
        assert not re.search(rf"\bI {clause} with me\b", phrase.source), phrase.source
        assert not re.search(rf"\b([A-Z]\w+) {clause} (with|to|for|helps?|sees?|calls?) \1\b", phrase.source), (
            phrase.source
        )
        assert not re.search(r"(?<!with )\b(\w+) and \1\b", phrase.source), phrase.source


def test_alignments_lie_within_the_sentence_and_are_sorted(phrases):
    for phrase in phrases:
        source, target = len(phrase.source.split()), len(phrase.target.split())
        assert list(phrase.alignment) == sorted(set(phrase.alignment))
        assert all(0 <= s < source and 0 <= t < target for s, t in phrase.alignment)


def test_every_word_is_linked(phrases):
    for phrase in phrases:
        linked_source = {s for s, _ in phrase.alignment}
        linked_target = {t for _, t in phrase.alignment}
        assert linked_target == set(range(len(phrase.target.split()))), phrase
        assert linked_source == set(range(len(phrase.source.split()))), phrase


def test_nouns_link_to_their_own_translation(phrases):
    pairs = {
        "soccer": "fútbol", "beach": "playa", "dog": "perro", "dogs": "perros", "letters": "cartas",
        "movie": "película", "umbrella": "paraguas", "kitchen": "cocina", "parents": "padres", "yesterday": "ayer", "because": "porque",
    }  # fmt: skip
    counts = Counter()
    for phrase in phrases:
        english, spanish = bare(phrase.source), bare(phrase.target)
        for position, word in enumerate(english):
            if word in pairs:
                counts[word] += 1
                assert pairs[word] in [spanish[t] for s, t in phrase.alignment if s == position], phrase
    assert counts.keys() == pairs.keys()


def test_the_vocabulary_is_small(phrases):
    english = {word for phrase in phrases for word in bare(phrase.source)}
    spanish = {word for phrase in phrases for word in bare(phrase.target)}
    assert 400 < len(english) < 600
    assert 700 < len(spanish) < 1150
