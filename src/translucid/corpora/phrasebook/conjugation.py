"""Verb forms by rule: English third person, past and -ing; Spanish present, preterite, future and gerund.

Persons are counted yo 0, tú 1, él/ella 2, nosotros 3, ellos 4. Irregular forms of a verb are given explicitly.
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
