"""The verbs of the phrasebook, and their forms by rule.

English has the third person, past and -ing; Spanish the present, preterite, future and gerund. Persons are counted yo
0, tú 1, él/ella 2, nosotros 3, ellos 4. Irregular forms of a verb are given explicitly.
"""

from __future__ import annotations

from dataclasses import dataclass

from translucid.corpora import english_plural

PRESENT = {"ar": "o as a amos an", "er": "o es e emos en", "ir": "o es e imos en"}
PRETERITE = {"ar": "é aste ó amos aron", "er": "í iste ió imos ieron", "ir": "í iste ió imos ieron"}
IMPERFECT = {"ar": "aba abas aba ábamos aban", "er": "ía ías ía íamos ían", "ir": "ía ías ía íamos ían"}
GERUND = {"ar": "ando", "er": "iendo", "ir": "iendo"}
FUTURE = "é ás á emos án"
SOFT = {"c": "qu", "g": "gu", "z": "c"}  # before é: busqué, jugué, empecé


@dataclass(frozen=True, eq=False)
class Verb:
    """A verb in both languages; verbs are compared by identity, because two may have the same forms."""

    base: str
    third: str
    past: str
    ing: str
    particle: tuple[str, ...]
    """English words after the verb: to (listen to), up (get up)."""
    infinitive: str
    gerund: str
    finite: dict[str, tuple[str, ...]]
    """Spanish forms of the five persons for `present`, `past`, `will`, `would`."""
    reflexive: bool
    imperative: str
    """The second person singular."""

    @property
    def is_be(self) -> bool:
        """Whether the English verb is `be`, which needs no auxiliary."""
        return self.base == "be"


def verb(
    english: str,
    spanish: str,
    change: str = "",
    *,
    present: str = "",
    past: str = "",
    stem: str = "",
    gerund: str = "",
    imperfect: bool = False,
    imperative: str = "",
) -> Verb:
    """Conjugate a verb.

    Args:
        english: `walk`, `listen to`, or with irregular past and -ing `get/got/getting up`.
        spanish: the infinitive, with -se if reflexive.
        change: the change of the stressed vowel of the stem in the present: `e>ie`, `o>ue`, `u>ue`.
        present, past: the five forms, if they are irregular.
        stem: the future stem, if it is not the infinitive.
        gerund: the gerund, if it is irregular.
        imperfect: whether the English past of a lasting state (`I had a dog`) is the Spanish imperfect (`Tenía un
            perro`).
        imperative: the imperative, if it is not the third person of the present.
    """
    forms, *particle = english.split()
    base, *irregular = forms.split("/")
    reflexive = spanish.endswith("se")
    infinitive = spanish.removesuffix("se")
    root, kind = infinitive[:-2], infinitive[-2:]
    present_forms = _with_endings(_stressed(root, change), PRESENT[kind])
    present_forms[3] = _with_endings(root, PRESENT[kind])[3]  # the stem of nosotros is not stressed
    past_forms = _with_endings(root, (IMPERFECT if imperfect else PRETERITE)[kind])
    if kind == "ar" and not imperfect:
        past_forms[0] = root[:-1] + SOFT.get(root[-1], root[-1]) + "é"
    finite = {
        "present": tuple(present.split() or present_forms),
        "past": tuple(past.split() or past_forms),
        "will": tuple(_with_endings(stem or infinitive, FUTURE)),
        "would": tuple(_with_endings(stem or infinitive, IMPERFECT["er"])),
    }
    regular = base.removesuffix("e")
    english_forms = [regular + "ed", regular + "ing"]
    english_forms[: len(irregular)] = irregular
    past_form, ing = english_forms
    return Verb(
        base,
        {"be": "is", "have": "has"}.get(base) or third_person(base),
        past_form,
        ing,
        tuple(particle),
        infinitive,
        gerund or root + GERUND[kind],
        finite,
        reflexive,
        imperative or finite["present"][2],
    )


def _stressed(root: str, change: str) -> str:
    """Return the stem whose last vowel is stressed: `pens` with `e>ie` is `piens`."""
    if not change:
        return root
    vowel, diphthong = change.split(">")
    start, end = root.rsplit(vowel, 1)
    return start + diphthong + end


def _with_endings(stem: str, endings: str) -> list[str]:
    return [stem + ending for ending in endings.split()]


def third_person(base: str) -> str:
    """Return the third person singular: plays, watches, studies. Only forms such as goes differ from plurals."""
    if base.endswith("o"):
        return base + "es"
    return english_plural(base)


# Activities.
EAT = verb("eat/ate", "comer")
DRINK = verb("drink/drank", "beber")
COOK = verb("cook", "cocinar")
BUY = verb("buy/bought", "comprar")
READ = verb("read/read", "leer", past="leí leíste leyó leímos leyeron", gerund="leyendo")
WRITE = verb("write/wrote/writing", "escribir")
WATCH = verb("watch", "ver", present="veo ves ve vemos ven", past="vi viste vio vimos vieron")
SEE = verb("see/saw/seeing", "ver", present="veo ves ve vemos ven", past="vi viste vio vimos vieron")
LISTEN = verb("listen to", "escuchar")
PLAY_GAME = verb("play", "jugar", "u>ue")
PLAY_MUSIC = verb("play", "tocar")
STUDY = verb("study/studied/studying", "estudiar")
SPEAK = verb("speak/spoke", "hablar")
CLEAN = verb("clean", "limpiar")
OPEN = verb("open", "abrir")
CLOSE = verb("close", "cerrar", "e>ie")
VISIT = verb("visit", "visitar")
HELP = verb("help", "ayudar")
CALL = verb("call", "llamar")
GIVE = verb("give/gave", "dar", present="doy das da damos dan", past="di diste dio dimos dieron")

# Moving, working, resting.
GO = verb(
    "go/went", "ir", present="voy vas va vamos van", past="fui fuiste fue fuimos fueron", gerund="yendo",
    imperative="ve",
)  # fmt: skip
ARRIVE = verb("arrive", "llegar")
WALK = verb("walk", "caminar")
SWIM = verb("swim/swam/swimming", "nadar")
DANCE = verb("dance", "bailar")
SING = verb("sing/sang", "cantar")
WORK = verb("work", "trabajar")
COST = verb("cost/cost", "costar", "o>ue")
LIVE = verb("live", "vivir", imperfect=True)
SLEEP = verb("sleep/slept", "dormir", "o>ue", past="dormí dormiste durmió dormimos durmieron", gerund="durmiendo")
GET_UP = verb("get/got/getting up", "levantarse")
GO_TO_BED = verb("go/went to bed", "acostarse", "o>ue")
STAY = verb("stay", "quedarse")

# Having, wanting, thinking.
_TENGO = "tengo tienes tiene tenemos tienen"
HAVE = verb("have/had", "tener", imperfect=True, present=_TENGO, stem="tendr")
HAVE_TO = verb("have/had", "tener", past="tuve tuviste tuvo tuvimos tuvieron", present=_TENGO, stem="tendr")
NEED = verb("need", "necesitar", imperfect=True)
WANT = verb("want", "querer", "e>ie", imperfect=True, stem="querr")
PREFER = verb("prefer/preferred/preferring", "preferir", "e>ie", imperfect=True)
LOVE_PERSON = verb("love", "querer", "e>ie", imperfect=True, stem="querr")
KNOW = verb("know/knew", "saber", present="sé sabes sabe sabemos saben", stem="sabr", imperfect=True)
THINK = verb("think/thought", "creer", imperfect=True)
SAY = verb(
    "say/said", "decir", "e>i", present="digo dices dice decimos dicen", past="dije dijiste dijo dijimos dijeron",
    stem="dir", gerund="diciendo",
)  # fmt: skip

# What English says with `be`. Past states are Spanish imperfects; `ser` judges events (`fue`).
SER = verb("be/was", "ser", present="soy eres es somos son", past="fui fuiste fue fuimos fueron")
ESTAR = verb("be/was", "estar", present="estoy estás está estamos están", imperfect=True)
TENER = verb("be/was", "tener", imperfect=True, present=_TENGO, stem="tendr")
HACER = verb("be/was", "hacer", present="hago haces hace hacemos hacen", stem="har", imperfect=True)
HABER = verb("be/was", "haber", present="hay hay hay hay hay", past="había había había había había", stem="habr")
RAIN = verb("rain", "llover", "o>ue")
CAN = verb("can", "poder", "o>ue", stem="podr")

# The thing or deed is the Spanish subject, the person feels it: me gusta el fútbol.
LIKE = verb("like", "gustar")
LOVE = verb("love", "encantar")
INTEREST = verb("be/was interested in", "interesar", imperfect=True)
HURT = verb("hurt/hurt", "doler", "o>ue")

# In passages only.
FIND = verb("find/found", "encontrar", "o>ue")
LEAVE = verb("leave/left", "dejar")
LOSE = verb("lose/lost", "perder", "e>ie")
REMEMBER = verb("remember", "recordar", "o>ue")
REPAIR = verb("repair", "reparar")
SELL = verb("sell/sold", "vender")
TAKE = verb("take/took", "llevar")
TRAVEL = verb("travel", "viajar")
USE = verb("use", "usar")
WASH = verb("wash", "lavar")
WEAR = verb("wear/wore", "llevar")
