"""The nouns, adjectives and names of the phrasebook, grouped by meaning: people eat food and go to places."""

from __future__ import annotations

from typing import NamedTuple

from translucid.corpora import english_plural


class Noun(NamedTuple):
    """A noun in both languages."""

    singular: str
    plural: str
    spanish: str
    spanish_plural: str
    feminine: bool
    place: str = "in"
    """The English preposition of place: in the park, at the beach. In Spanish it is always `en`."""
    article: bool = True
    """False if English has no article after `to`: to school."""


class Adjective(NamedTuple):
    """An adjective; `spanish` is indexed by `feminine + 2 * plural`."""

    english: str
    spanish: tuple[str, str, str, str]
    before: bool = False
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


def nouns(lines: str) -> tuple[Noun, ...]:
    """Read `english spanish gender [preposition [bare]]`, separated by `;`. An irregular plural follows a slash."""
    parsed = []
    for line in lines.split(";"):
        english, spanish, gender, *rest = line.split()
        singular, _, plural = english.partition("/")
        parsed.append(
            Noun(
                singular,
                plural or english_plural(singular),
                spanish,
                spanish_plural(spanish),
                gender == "f",
                rest[0] if rest else "in",
                len(rest) < 2,
            )
        )
    return tuple(parsed)


def among(nouns: tuple[Noun, ...], names: str) -> tuple[Noun, ...]:
    """Return the nouns with one of these names, in their own order."""
    wanted = names.split()
    return tuple(noun for noun in nouns if noun.singular in wanted)


def adjectives(lines: str) -> tuple[Adjective, ...]:
    """Read `english spanish`, separated by `;`. Adjectives in -o have four forms, others differ only in the plural."""
    parsed = []
    for line in lines.split(";"):
        english, spanish = line.split()
        feminine = spanish[:-1] + "a" if spanish.endswith("o") else spanish
        parsed.append(Adjective(english, (spanish, feminine, spanish_plural(spanish), spanish_plural(feminine))))
    return tuple(parsed)


MEN = nouns("man/men hombre m; boy niño m; doctor médico m; teacher profesor m; neighbor vecino m")
WOMEN = nouns("woman/women mujer f; girl niña f")
PEOPLE = MEN + WOMEN
FAMILY = nouns(
    "mother madre f; father padre m; brother hermano m; sister hermana f; son hijo m; daughter hija f;"
    "grandmother abuela f; grandfather abuelo m; friend amigo m; teacher profesor m; neighbor vecino m"
)
PARENTS = Noun("parents", "parents", "padres", "padres", False)
ANIMALS = nouns("dog perro m; cat gato m; horse caballo m; bird pájaro m")

MASS_FOOD = nouns(
    "bread pan m; rice arroz m; soup sopa f; fish pescado m; meat carne f; cheese queso m; chicken pollo m;"
    "salad ensalada f; fruit fruta f; chocolate chocolate m"
)
COUNT_FOOD = nouns("apple manzana f; orange naranja f; egg huevo m; sandwich bocadillo m; cake pastel m")
DRINKS = nouns("water agua f; coffee café m; tea té m; milk leche f; juice zumo m")
SERVED = among(MASS_FOOD + DRINKS, "rice soup fish meat chicken salad water coffee tea milk juice")
SPORTS = nouns(
    "soccer fútbol m; tennis tenis m; basketball baloncesto m; baseball béisbol m; volleyball voleibol m; golf golf m"
)
SPORT = Noun("sport", "sports", "deporte", "deportes", False)
INSTRUMENTS = nouns("piano piano m; guitar guitarra f; violin violín m")
SUBJECTS = nouns(
    "history historia f; music música f; art arte m; literature literatura f; geography geografía f;nature naturaleza f"
)
STUDIED = SUBJECTS[:5]
LANGUAGES = nouns("Spanish español m; English inglés m; French francés m; Italian italiano m")
READING = nouns("book libro m; newspaper periódico m; letter carta f; magazine revista f; story cuento m")
WRITING = nouns("letter carta f; message mensaje m; story cuento m; song canción f; book libro m")
SHOWS = nouns("movie película f; game partido m; program programa m")
SONGS = nouns("song canción f")
FLOWERS = nouns("flower flor f")
THINGS = nouns(
    "car coche m; bicycle bicicleta f; phone teléfono m; computer ordenador m; shirt camisa f; dress vestido m;"
    "hat sombrero m; coat abrigo m; table mesa f; chair silla f; bag bolsa f; gift regalo m; umbrella paraguas m;"
    "clock reloj m; pencil lápiz m; map mapa m; box caja f; flower flor f; lamp lámpara f; shoe zapato m"
)
SURFACES = among(THINGS, "table chair")
SMALL_THINGS = nouns(
    "key llave f; ticket billete m; shoe zapato m; umbrella paraguas m; bag bolsa f; phone teléfono m; book libro m;"
    "pencil lápiz m; photo foto f; map mapa m; letter carta f; hat sombrero m"
)
GIFTS = nouns("gift regalo m; flower flor f; book libro m; letter carta f; photo foto f; map mapa m; key llave f")
OPENABLE = nouns("door puerta f; window ventana f; box caja f; store tienda f; bag bolsa f")
CLEANABLE = nouns("house casa f; kitchen cocina f; table mesa f; car coche m; window ventana f; office oficina f")
HOUSE = Noun("house", "houses", "casa", "casas", True)
BODY = nouns("head cabeza f; back espalda f; stomach estómago m; throat garganta f; leg pierna f; arm brazo m")
BODY_PAIRS = nouns("leg pierna f; arm brazo m; foot/feet pie m; hand mano f; eye ojo m")

PLACES = nouns(
    "beach playa f at; park parque m; school escuela f at bare; store tienda f at; market mercado m at;"
    "library biblioteca f at; museum museo m at; hospital hospital m at; restaurant restaurante m at;"
    "theater teatro m at; station estación f at; airport aeropuerto m at; bank banco m at; office oficina f at;"
    "city ciudad f; village pueblo m; garden jardín m; kitchen cocina f; hotel hotel m at;"
    "university universidad f at; work trabajo m at bare; church iglesia f at bare"
)
_AT = {place.singular: place for place in PLACES}


def places(names: str) -> tuple[Noun, ...]:
    """Return the places of those names."""
    return tuple(_AT[name] for name in names.split())


GO_PLACES = places(
    "beach park school store market library museum hospital restaurant theater station airport bank office city"
    " village hotel university work church"
)
EAT_PLACES = places("restaurant kitchen garden hotel park")
SHOP_PLACES = places("store market city")
READ_PLACES = places("library park garden")
STUDY_PLACES = places("library university school")
PLAY_PLACES = places("park beach school garden")
WORK_PLACES = places("bank hospital school museum restaurant office university library hotel store airport")
WALK_PLACES = places("park city garden")
TO_FIND = places("store market library museum hospital restaurant theater station airport bank office hotel university")
TOWNS = places("city village")
SIGHTS = places("museum city village university library garden church")
BUILDINGS = (*places("city village museum church library hotel school"), HOUSE)
COUNTRIES = nouns("Spain España f; Mexico México m; France Francia f; Italy Italia f; Madrid Madrid m; Paris París m")
NAMES = nouns(
    "Ana Ana f; Marta Marta f; Elena Elena f; Irene Irene f; Carlos Carlos m; Pedro Pedro m; Luis Luis m; Oscar Óscar m"
)

COLORS = adjectives("red rojo; white blanco; black negro; yellow amarillo; blue azul; green verde")
SIZES = adjectives("big grande; small pequeño; new nuevo; old viejo")
VALUES = adjectives("expensive caro; cheap barato; beautiful bonito")
CONTENT = adjectives("interesting interesante; boring aburrido; long largo; difficult difícil; important importante")
GOOD = Adjective("good", ("buen", "buena", "buenos", "buenas"), before=True)
GREAT = Adjective("great", ("gran", "gran", "grandes", "grandes"), before=True)
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
NEEDS = (
    ("hungry", "hambre"), ("thirsty", "sed"), ("sleepy", "sueño"), ("cold", "frío"), ("hot", "calor"),
    ("afraid", "miedo"),
)  # fmt: skip
JOBS = (
    ("teacher", "profesor", "profesora"),
    ("doctor", "médico", "médica"),
    ("student", "estudiante", "estudiante"),
    ("engineer", "ingeniero", "ingeniera"),
    ("writer", "escritor", "escritora"),
    ("nurse", "enfermero", "enfermera"),
)
PERSON_ADJECTIVES = (*CHARACTER, YOUNG)
THING_ADJECTIVES = (*COLORS, *SIZES, *VALUES)
PLACE_ADJECTIVES = (*SIZES, VALUES[2])
NUMBERS = (
    ("two", "dos"), ("three", "tres"), ("four", "cuatro"), ("five", "cinco"), ("six", "seis"), ("seven", "siete"),
    ("eight", "ocho"), ("nine", "nueve"), ("ten", "diez"), ("eleven", "once"), ("twelve", "doce"), ("twenty", "veinte"),
    ("thirty", "treinta"),
)  # fmt: skip
