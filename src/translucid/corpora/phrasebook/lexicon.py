"""The nouns, adjectives and names of the phrasebook, grouped by meaning: people eat food and go to places."""

from __future__ import annotations

from typing import NamedTuple

from translucid.corpora import english_plural, table


class Noun(NamedTuple):
    """A noun in both languages."""

    singular: str
    plural: str
    spanish: str
    spanish_plural: str
    feminine: bool
    preposition: str = "in"
    """The English preposition of place: in the park, at the beach. In Spanish it is always `en`."""
    article: bool = True
    """False if English has no article after `to`: to school."""
    topic: str = ""
    """Its field of meaning: food, places."""


class Adjective(NamedTuple):
    """An adjective; `spanish` is indexed by `feminine + 2 * plural`."""

    english: str
    spanish: tuple[str, str, str, str]
    precedes_noun: bool = False
    """True if it precedes the noun in Spanish."""


def spanish_plural(singular: str) -> str:
    """Return the regular Spanish plural: casas, flores, lápices, jardines, paraguas."""
    if singular[-1] in "aeiouéáó":
        return singular + "s"
    if singular[-1] == "z":
        return singular[:-1] + "ces"
    if singular.endswith(("as", "es", "is")):
        return singular
    for accented, plain in (("ó", "o"), ("í", "i"), ("é", "e")):
        if singular[-2] == accented:
            return singular[:-2] + plain + singular[-1] + "es"
    return singular + "es"


def read_nouns() -> dict[str, Noun]:
    """Read the nouns by their English singular; the file has only irregular English plurals."""
    nouns = {}
    for row in table("phrasebook/nouns.tsv"):
        english, spanish = row["english"], row["spanish"]
        plurals = row["plural"] or english_plural(english), spanish_plural(spanish)
        preposition, article = row["preposition"] or "in", not row["article"]
        feminine = row["gender"] == "f"
        nouns[english] = Noun(english, plurals[0], spanish, plurals[1], feminine, preposition, article, row["topic"])
    return nouns


NOUNS = read_nouns()


def nouns(names: str) -> tuple[Noun, ...]:
    """Return the nouns of these names."""
    return tuple(NOUNS[name] for name in names.split())


def pairs(lines: str) -> tuple[tuple[str, str], ...]:
    """Read `english spanish`, separated by `;`."""
    parsed = []
    for line in lines.split(";"):
        english, spanish = line.split()
        parsed.append((english, spanish))
    return tuple(parsed)


def adjectives(lines: str) -> tuple[Adjective, ...]:
    """Read `english spanish`, separated by `;`. Adjectives in -o have four forms, others differ only in the plural."""
    parsed = []
    for english, spanish in pairs(lines):
        feminine = spanish[:-1] + "a" if spanish.endswith("o") else spanish
        parsed.append(Adjective(english, (spanish, feminine, spanish_plural(spanish), spanish_plural(feminine))))
    return tuple(parsed)


MEN = nouns("man boy doctor teacher neighbor")
WOMEN = nouns("woman girl")
PEOPLE = MEN + WOMEN
FAMILY = nouns("mother father brother sister son daughter grandmother grandfather friend teacher neighbor")
PARENTS = NOUNS["parents"]
ANIMALS = nouns("dog cat horse bird")

MASS_FOOD = nouns("bread rice soup fish meat cheese chicken salad fruit chocolate")
COUNT_FOOD = nouns("apple orange egg sandwich cake")
DRINKS = nouns("water coffee tea milk juice")
SERVED = nouns("rice soup fish meat chicken salad water coffee tea milk juice")
SPORTS = nouns("soccer tennis basketball baseball volleyball golf")
SPORT = NOUNS["sport"]
INSTRUMENTS = nouns("piano guitar violin")
SUBJECTS = nouns("history music art literature geography nature")
STUDIED = SUBJECTS[:5]
LANGUAGES = nouns("Spanish English French Italian")
READING = nouns("book newspaper letter magazine story")
WRITING = nouns("letter message story song book")
SHOWS = nouns("movie game program")
SONGS = nouns("song")
FLOWERS = nouns("flower")
THINGS = nouns(
    "car bicycle phone computer shirt dress hat coat table chair bag gift umbrella clock pencil map box flower lamp"
    " shoe"
)
SURFACES = nouns("table chair")
SMALL_THINGS = nouns("key ticket shoe umbrella bag phone book pencil photo map letter hat")
GIFTS = nouns("gift flower book letter photo map key")
OPENABLE = nouns("door window box store bag")
CLEANABLE = nouns("house kitchen table car window office")
HOUSE = NOUNS["house"]
BODY = nouns("head back stomach throat leg arm")
BODY_PAIRS = nouns("leg arm foot hand eye")

PLACES = nouns(
    "beach park school store market library museum hospital restaurant theater station airport bank office city village"
    " garden kitchen hotel university work church"
)
GO_PLACES = nouns(
    "beach park school store market library museum hospital restaurant theater station airport bank office city village"
    " hotel university work church"
)
EAT_PLACES = nouns("restaurant kitchen garden hotel park")
SHOP_PLACES = nouns("store market city")
READ_PLACES = nouns("library park garden")
STUDY_PLACES = nouns("library university school")
PLAY_PLACES = nouns("park beach school garden")
WORK_PLACES = nouns("bank hospital school museum restaurant office university library hotel store airport")
WALK_PLACES = nouns("park city garden")
TO_FIND = nouns("store market library museum hospital restaurant theater station airport bank office hotel university")
TOWNS = nouns("city village")
SIGHTS = nouns("museum city village university library garden church")
BUILDINGS = nouns("city village museum church library hotel school house")
COUNTRIES = nouns("Spain Mexico France Italy Madrid Paris")
NAMES = nouns("Ana Marta Elena Irene Carlos Pedro Luis Oscar")

COLORS = adjectives("red rojo; white blanco; black negro; yellow amarillo; blue azul; green verde")
SIZES = adjectives("big grande; small pequeño; new nuevo; old viejo")
VALUES = adjectives("expensive caro; cheap barato; beautiful bonito")
CONTENT = adjectives("interesting interesante; boring aburrido; long largo; difficult difícil; important importante")
GOOD = Adjective("good", ("buen", "buena", "buenos", "buenas"), precedes_noun=True)
GREAT = Adjective("great", ("gran", "gran", "grandes", "grandes"), precedes_noun=True)
GOOD_FOOD = adjectives("delicious delicioso; cold frío; hot caliente")
CHARACTER = adjectives(
    "tall alto; nice simpático; intelligent inteligente; strong fuerte; famous famoso; funny divertido"
)
YOUNG = Adjective("young", ("joven", "joven", "jóvenes", "jóvenes"))
STATES = adjectives(
    "tired cansado; happy contento; sad triste; sick enfermo; busy ocupado; angry enfadado; alone solo;"
    "nervous nervioso; ready listo"
)
CONDITIONS = adjectives("open abierto; closed cerrado; clean limpio; dirty sucio; broken roto; empty vacío; full lleno")
NEEDS = pairs("hungry hambre; thirsty sed; sleepy sueño; cold frío; hot calor; afraid miedo")
JOBS = (
    ("teacher", "profesor", "profesora"), ("doctor", "médico", "médica"), ("student", "estudiante", "estudiante"),
    ("engineer", "ingeniero", "ingeniera"), ("writer", "escritor", "escritora"), ("nurse", "enfermero", "enfermera"),
)  # fmt: skip
PERSON_ADJECTIVES = (*CHARACTER, YOUNG)
THING_ADJECTIVES = (*COLORS, *SIZES, *VALUES)
PLACE_ADJECTIVES = (*SIZES, VALUES[2])
NUMBERS = pairs(
    "two dos; three tres; four cuatro; five cinco; six seis; seven siete; eight ocho; nine nueve; ten diez;"
    "eleven once; twelve doce; twenty veinte; thirty treinta"
)
