"""Sentences of two or more clauses, with because, when, if, that, but and others, of any length.

Their activities suit a situation: eating when hungry, staying at home when it rains, reading in the library.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from . import adverbials as when_where
from . import deeds, verbs
from . import lexicon as words
from .being import WEATHER, is_, it_is, rain, thing_is
from .chance import pick, sometimes, weighted
from .clauses import Predicate, clause, deed, felt
from .deeds import Make, choice, leisure
from .lexicon import NEEDS, READING, SHOWS, SPORT, STATES, SUBJECTS, Noun, nouns
from .likes import likes
from .nominals import (
    EVERYONE,
    NOBODY,
    Subject,
    drink,
    enumeration,
    food,
    next_subject,
    noun_phrase,
    other_than,
    someone,
    thing,
)
from .simple_sentences import does, has, in_mode, plans, statement
from .text import Expression, Part, comma, join, word
from .verbs import Verb

_STATE = {state.english: state for state in STATES}
_NEED = dict(NEEDS)

REACTIONS: dict[str, tuple[Make, ...]] = {
    "hungry": (deeds.eat, deeds.eat, deeds.cook, deeds.eat),
    "thirsty": (deeds.have_drink,),
    "sleepy": (deeds.sleep, deeds.go_to_bed, deeds.have_hot_drink),
    "afraid": (deeds.call, deeds.stay),
    "tired": (deeds.sleep, deeds.stay, deeds.go_to_bed, deeds.have_hot_drink),
    "happy": (deeds.sing, deeds.dance, deeds.play_music, deeds.walk, deeds.play),
    "sad": (deeds.listen, deeds.call, deeds.eat, deeds.walk, deeds.write),
    "sick": (deeds.stay, deeds.sleep, deeds.have_hot_drink, deeds.call),
    "alone": (deeds.read, deeds.watch, deeds.call, deeds.listen, deeds.cook),
    "nervous": (deeds.walk, deeds.listen, deeds.call, deeds.have_hot_drink, deeds.clean),
    "busy": (deeds.stay, deeds.have_hot_drink),
    "angry": (deeds.walk, deeds.swim, deeds.clean, deeds.listen),
    "ready": (deeds.go, deeds.visit),
    "cold": (deeds.have_hot_drink, deeds.stay, deeds.cook, deeds.read, deeds.watch),
    "hot": (deeds.swim, deeds.have_drink, deeds.swim),
    "sunny": (deeds.walk, deeds.swim, deeds.play, deeds.play),
    "windy": (deeds.stay, deeds.read, deeds.study),
    "rain": (deeds.stay, deeds.read, deeds.watch, deeds.study, deeds.play_music, deeds.write),
}
"""Activities with which people react to a state or to the weather."""
HINDRANCES = ("busy", "sick", "tired")
"""States that prevent people from doing what they like."""
PURPOSES: tuple[tuple[Noun, Make], ...] = tuple(
    zip(
        nouns("store market library library restaurant beach park park museum university"),
        (
            deeds.buy, deeds.buy, deeds.read, deeds.study, deeds.eat, deeds.swim, deeds.walk, deeds.play, deeds.study,
            deeds.study,
        ),
        strict=True,
    )
)  # fmt: skip
"""Places, and the activities for which people go there."""
DUTIES = (deeds.study, deeds.work, deeds.clean, deeds.cook, deeds.help_someone, deeds.get_up_early, deeds.buy)
MUSIC, BOOKS, MOVIES, STORIES = (SUBJECTS[1], False), (READING[0], True), (SHOWS[0], True), (READING[4], True)
RELISHED: tuple[tuple[Make, tuple[Noun, bool]], ...] = (
    (deeds.play, (SPORT, True)), (deeds.play, (SPORT, True)), (deeds.read, BOOKS), (deeds.read, (SUBJECTS[3], False)),
    (deeds.watch, MOVIES), (deeds.listen, MUSIC), (deeds.play_music, MUSIC), (deeds.sing, MUSIC), (deeds.dance, MUSIC),
    (deeds.write, (SUBJECTS[3], False)), (deeds.visit_museum, (SUBJECTS[2], False)),
    (deeds.visit_museum, (SUBJECTS[0], False)), (deeds.walk, (SUBJECTS[5], False)), (deeds.read, STORIES),
)  # fmt: skip
"""Activities, and what people who do them like."""


def in_state(subject: Subject, state: str) -> Part:
    """Return that someone is hungry (tener hambre), tired (estar cansado) and so on."""
    if state in _NEED:
        return clause(subject, Predicate(verbs.TENER, word(state, _NEED[state])))
    return clause(subject, Predicate(verbs.ESTAR, word(state, _STATE[state].spanish[subject.form])))


def circumstance(rng: Random, subject: Subject) -> tuple[Part, str]:
    """Return a clause about someone's state or the weather, and its name in `REACTIONS`."""
    if rng.random() < 0.7:
        state = pick(rng, _PERSONAL)
        return in_state(subject, state), state
    kind = pick(rng, (*WEATHER, ("rain", "")))
    if kind[0] == "rain":
        return rain("present"), "rain"
    return it_is(rng, kind, "present"), kind[0]


_PERSONAL = (
    "hungry", "thirsty", "hungry", "thirsty", "sleepy", "tired", "tired", *(state.english for state in STATES), "cold",
    "hot",
)  # fmt: skip
"""States of a person; those that occur twice are twice as frequent."""


def reaction(rng: Random, state: str) -> Make:
    """Return an activity that suits a circumstance."""
    return pick(rng, REACTIONS[state])


def outing(rng: Random) -> tuple[Predicate, Make]:
    """Return going somewhere, and the activity for which one goes there."""
    place, maker = pick(rng, PURPOSES)

    def activity_there(rng: Random, subject: Subject) -> Predicate:
        while True:
            doing = maker(rng, subject)
            if all(spanish.text not in ("en", "por") for spanish in doing.complement.spanish):  # no second place
                return doing

    return Predicate(verbs.GO, join(word("to", "a"), noun_phrase(place, "the"))), activity_there


def purpose(predicate: Predicate, subject: Subject) -> Part:
    """Return a purpose: to read a book, para leer un libro."""
    return join(word("to", "para"), deed(predicate, subject.person, "base"))


def relish(rng: Random, subject: Subject) -> tuple[Make, Part, bool]:
    """Return an activity, what people who do it like, and whether that is plural: playing tennis, and sports."""
    maker, (noun, plural) = pick(rng, RELISHED)
    return maker, noun_phrase(noun, generic=True, plural=plural), plural


def duty(rng: Random, subject: Subject) -> Predicate:
    """Return a duty."""
    return pick(rng, DUTIES)(rng, subject)


BECAUSE = Expression("because", "porque")
WHEN = Expression("when", "cuando")
IF = Expression("if", "si")
THAT = Expression("that", "que")
BUT = Expression("but", "pero")
AND = Expression("and", "y")
SO = Expression("so", "así que", "0-0 0-1")
WHILE = Expression("while", "mientras")
BEFORE = Expression("before", "antes de", "0-0 0-1")
AFTER = Expression("after", "después de", "0-0 0-1")
AT_HOME = (
    deeds.cook, deeds.read, deeds.watch, deeds.listen, deeds.clean, deeds.study, deeds.play_music, deeds.write,
    deeds.have_drink,
)  # fmt: skip
ON_ARRIVAL = (deeds.have_drink, deeds.call, deeds.help_someone, deeds.see, deeds.give)
ON_RISING = (
    deeds.have_drink,
    deeds.eat,
    deeds.cook,
    deeds.clean,
    deeds.walk,
    deeds.study,
    deeds.open_or_close,
)
LIMITS: tuple[tuple[Expression, tuple[Make, ...]], ...] = (
    (BEFORE, (deeds.go_to_bed, deeds.eat, deeds.cook)),
    (AFTER, (deeds.get_up, deeds.eat, deeds.work)),
)
WANT, HAVE_TO = 0.6, 0.3
"""Values of `kind` for `plans`."""


def because(rng: Random, subject: Subject) -> Part:
    """Return a clause with a reason: I am eating bread because I am hungry; she can't go because she has to study."""
    kind = rng.random()
    mode = pick(rng, ("present", "will", "going", "progressive"))
    repeated = subject.again()
    if kind < 0.35:
        reason, state = circumstance(rng, repeated)
        if mode == "progressive":  # some reactions, such as going to bed, take only a moment
            mode = "going"
        effect = does(rng, subject, mode, maker=reaction(rng, state), timed=0, negative=False)
    elif kind < 0.6:
        effect = does(rng, subject, "can", maker=leisure, timed=0.2, negative=True)
        if subject is EVERYONE or rng.random() < 0.5:
            reason = plans(rng, repeated, maker=duty, negative=False, kind=HAVE_TO)
        else:
            reason = in_state(repeated, pick(rng, HINDRANCES))
    elif kind < 0.8:
        going, doing = outing(rng)
        effect = clause(subject, going, mode)
        reason = plans(rng, repeated, maker=doing, negative=False, kind=pick(rng, (HAVE_TO, WANT)))
    else:
        maker, stimulus, plural = relish(rng, subject)
        effect = does(rng, subject, pick(rng, ("present", "will", "going")), maker=maker, timed=0, negative=False)
        reason = felt(repeated, pick(rng, (verbs.LIKE, verbs.LOVE)), stimulus, plural=plural)
    return join(effect, BECAUSE.say(), reason)


def habit(rng: Random, subject: Subject) -> Part:
    """Return a habit: when I am thirsty, I drink water."""
    link = WHEN if rng.random() < 0.6 else IF
    condition, state = circumstance(rng, subject)
    frequency = sometimes(rng, 0.3, (when_where.ALWAYS, when_where.OFTEN))
    result = clause(subject.again(), reaction(rng, state)(rng, subject), adverb=frequency)
    if subject.named or rng.random() < 0.5:
        return join(comma(join(link.say(), condition)), result)
    return join(result, link.say(), condition)


def if_then(rng: Random, subject: Subject) -> Part:
    """Return a conditional sentence: if it is cold tomorrow, I will stay at home."""
    condition, state = circumstance(rng, subject)
    mode = "will" if rng.random() < 0.7 else "can"
    result = does(rng, subject.again(), mode, maker=reaction(rng, state), timed=0, negative=False)
    return join(comma(join(IF.say(), condition)), result)


def once(rng: Random, subject: Subject) -> Part:
    """Return two events of the past: when Ana arrived at the station, she called her brother."""
    opening_event, sequels = pick(
        rng, ((deeds.arrive, ON_ARRIVAL), (deeds.arrive, ON_ARRIVAL), (deeds.get_up, ON_RISING))
    )
    condition = clause(subject, opening_event(rng, subject), "past")
    result = clause(subject.again(), pick(rng, sequels)(rng, subject), "past")
    return join(comma(join(WHEN.say(), condition)), result)


def _about_thing(rng: Random, _: Subject) -> Part:
    return thing_is(rng)


REPORTED: tuple[tuple[float, Callable[[Random, Subject], Part]], ...] = (
    (0.25, _about_thing), (0.25, is_), (0.15, likes), (0.2, does), (0.15, has),
)  # fmt: skip


def that(rng: Random, subject: Subject) -> Part:
    """Return reported speech: I think that, she says that, I know that."""
    verb = pick(rng, (verbs.THINK, verbs.KNOW, verbs.SAY if subject.person > 0 else verbs.THINK))
    reported_subject = subject.again() if verb is verbs.SAY and rng.random() < 0.4 else other_than(rng, subject)
    reported = weighted(rng, REPORTED)(rng, reported_subject)
    negative = rng.random() < 0.1 and verb is verbs.SAY and subject is not EVERYONE
    return join(clause(subject, Predicate(verb, THAT.say()), "present", negative=negative), reported)


def before_after(rng: Random, subject: Subject) -> Part:
    """Return two activities in their order: I drink milk before going to bed."""
    link, makers = pick(rng, LIMITS)
    maker = pick(rng, makers)
    limiting = pick(rng, (maker, leisure))(rng, subject)
    mode = pick(rng, ("present", "past", "will"))
    first = in_mode(rng, subject, mode, choice)
    while first.verb is limiting.verb:
        first = in_mode(rng, subject, mode, choice)
    limit = join(link.say(), deed(limiting, subject.person, "ing"))
    if rng.random() < 0.35:
        return join(comma(limit), clause(subject, first, mode))
    return join(clause(subject, first, mode), limit)


def while_(rng: Random, subject: Subject) -> Part:
    """Return two simultaneous activities: I cook while Ana reads a book."""
    mode = "present" if rng.random() < 0.4 else "progressive"
    first, second = pick(rng, AT_HOME), pick(rng, AT_HOME)
    second_subject = other_than(rng, subject)
    return join(
        does(rng, subject, mode, maker=first, timed=0, negative=False),
        WHILE.say(),
        does(rng, second_subject, mode, maker=second, timed=0, negative=False),
    )


def but(rng: Random, subject: Subject) -> Part:
    """Return a contrast: I want to swim, but I have to study; I like tea, but Ana likes coffee."""
    kind = rng.random()
    repeated = subject.again()
    if kind < 0.35:
        first = plans(rng, subject, maker=leisure, negative=False, kind=pick(rng, (0.1, WANT)))
        chance = rng.random()
        if chance < 0.5:
            second = plans(rng, repeated, maker=duty, negative=False, kind=HAVE_TO)
        else:
            second = in_state(repeated, pick(rng, HINDRANCES))
    elif kind < 0.6:
        first = likes(rng, subject, length=pick(rng, (1, 1, 2)), negative=False)
        second = likes(rng, repeated, length=pick(rng, (1, 1, 2)), negative=True)
    elif kind < 0.8:
        first = likes(rng, subject, length=pick(rng, (1, 1, 2)), negative=False)
        second = likes(rng, other_than(rng, subject))
    else:
        first = in_state(subject, pick(rng, (*HINDRANCES, "sleepy", "hungry")))
        second = plans(rng, repeated, maker=duty, negative=False, kind=HAVE_TO)
    return join(comma(first), BUT.say(), second)


def so(rng: Random, subject: Subject) -> Part:
    """Return a consequence: I am hungry, so I am going to eat."""
    first, state = circumstance(rng, subject)
    maker = reaction(rng, state)
    if rng.random() < 0.5:
        second = plans(rng, subject.again(), maker=maker, negative=False, kind=pick(rng, (0.1, WANT)), timed=0)
    else:
        second = does(rng, subject.again(), pick(rng, ("will", "going")), maker=maker, timed=0, negative=False)
    return join(comma(first), SO.say(), second)


def both(rng: Random, subject: Subject) -> Part:
    """Return two similar clauses: I like tea and Ana likes coffee."""
    second_subject = other_than(rng, subject)
    kind = rng.random()
    if kind < 0.3:
        first, second = likes(rng, subject, negative=False), likes(rng, second_subject, negative=False)
    elif kind < 0.5:
        first, second = is_(rng, subject), is_(rng, second_subject)
    elif kind < 0.65:
        first, second = has(rng, subject), has(rng, second_subject)
    else:
        mode = pick(rng, ("present", "past", "will", "going"))
        first = does(rng, subject, mode, timed=0.1, negative=False)
        second = does(rng, second_subject, mode, timed=0.1, negative=False)
    return join(first, AND.say(), second)


def on_purpose(rng: Random, subject: Subject) -> Part:
    """Return a clause with a purpose: I go to the library to read a book."""
    going, doing = outing(rng)
    part = clause(subject, going, pick(rng, ("present", "past", "will", "going", "progressive")))
    return join(part, purpose(doing(rng, subject), subject))


def shopping(rng: Random, subject: Subject, count: int) -> Part:
    """Return a clause with a list of things to buy or need."""
    items: list[Part] = []
    heads: set[str] = set()
    while len(items) < count:
        kind = rng.random()
        if kind < 0.5:
            item = food(rng)
        elif kind < 0.65:
            item = drink(rng)
        else:
            item = thing(rng, words.THINGS, words.THING_ADJECTIVES, owned=False)
        if item.english[-1].text not in heads:
            heads.add(item.english[-1].text)
            items.append(item)
    mode = pick(rng, ("past", "will", "going", "present"))
    return clause(subject, Predicate(verbs.NEED if mode == "present" else verbs.BUY, enumeration(items)), mode)


def week(rng: Random, subject: Subject, days: int) -> Part:
    """Return a clause for each of two or more days: on Monday I ..., on Tuesday ..., and on Sunday ..."""
    mode = pick(rng, ("past", "will", "going", "present"))
    names = when_where.ON_DAYS if mode == "present" else when_where.ON_DAY
    first = int(rng.random() * (8 - days))
    used_verbs: set[Verb] = set()
    parts: list[Part] = []
    while len(parts) < days:
        predicate = choice(rng, subject)
        if predicate.verb in used_verbs:
            continue
        used_verbs.add(predicate.verb)
        day = names[first + len(parts)].say()
        parts.append(clause(subject, predicate, mode, opener=day))
        subject = subject.again()
    return join(*map(comma, parts[:-1]), AND.say(), parts[-1])


COMPOUNDS = (
    because, because, habit, if_then, once, that, that, before_after, while_, but, but, so, both, both, on_purpose,
)  # fmt: skip
"""Kinds of sentences; those that occur twice are twice as frequent."""


def speaker(rng: Random) -> Subject:
    """Return a subject that can be repeated as a pronoun: not `nobody`."""
    subject = someone(rng)
    return subject if subject is not NOBODY else EVERYONE


def compound(rng: Random, subject: Subject) -> Part:
    """Return a sentence of two clauses."""
    return pick(rng, COMPOUNDS)(rng, subject)


def long(rng: Random, low: int, high: int) -> Part:
    """Return a statement of about `low` to `high` words: a list, a week, or clauses joined by and."""
    subject = speaker(rng)
    target_length = low + int((high - low) * rng.random() ** (2 if low < 20 else 1))  # few are very long
    kind = rng.random()
    if kind < 0.2 and target_length < 36:
        return likes(rng, subject, length=max(2, target_length // 3), negative=False)
    if kind < 0.28 and target_length < 40:
        return shopping(rng, subject, max(2, (target_length - 2) // 3))
    if kind < 0.42 and target_length > 12:
        return week(rng, subject, min(7, max(2, target_length // 7)))
    part = compound(rng, subject)
    while _size(part) < target_length - LAST:
        subject = next_subject(rng, subject)
        part = join(comma(part), AND.say(), compound(rng, subject))
    words_left = target_length - _size(part) - 1
    if words_left < 3:
        return part
    comma(part)
    for _ in range(ENDINGS):
        last_subject = next_subject(rng, subject)
        if words_left > 8:
            last_part = compound(rng, last_subject)
        elif words_left > 5:
            last_part = statement(rng, last_subject)
        else:
            last_part = likes(rng, last_subject)
        lengths = len(part.english) + 1 + len(last_part.english), len(part.spanish) + 1 + len(last_part.spanish)
        if low <= min(lengths) and max(lengths) <= high + 1:  # one word too many is allowed: a contraction may save it
            break
    return join(part, AND.say(), last_part)


LAST = 14
"""Words that are reserved for the last clause of a long sentence."""
ENDINGS = 40
"""The number of attempts to find a last clause of a suitable length."""


def _size(part: Part) -> int:
    return max(len(part.english), len(part.spanish))
