"""The grammar, phenomenon by phenomenon: both sides and the gold links of sentences composed by hand."""

import pytest

from translucid.corpora.phrasebook import adverbials as when_where
from translucid.corpora.phrasebook import lexicon as words
from translucid.corpora.phrasebook import verbs
from translucid.corpora.phrasebook.clauses import Predicate, clause, continuation, deed, felt
from translucid.corpora.phrasebook.likes import AND_ALSO
from translucid.corpora.phrasebook.nominals import (
    EVERYONE,
    HE,
    IT,
    NOBODY,
    SHE,
    THEY,
    WE,
    WHO,
    YOU,
    I,
    Member,
    enumeration,
    noun_phrase,
    of_nouns,
    with_a,
)
from translucid.corpora.phrasebook.simple_sentences import obliged
from translucid.corpora.phrasebook.text import English, Expression, Part, Spanish, comma, join, word, write

NOUN = {
    noun.singular: noun
    for group in (
        words.PEOPLE, words.FAMILY, words.MASS_FOOD, words.COUNT_FOOD, words.DRINKS, words.SPORTS, words.THINGS,
        words.NAMES, words.PLACES, words.LANGUAGES, words.READING, words.ANIMALS, words.SUBJECTS, words.INSTRUMENTS, (words.SPORT,),
    )
    for noun in group
}  # fmt: skip
ADJECTIVE = {a.english: a for a in (*words.COLORS, *words.SIZES, *words.CHARACTER, words.GOOD, words.GREAT)}
ANA = of_nouns(Member(NOUN["Ana"]))
MOTHER = of_nouns(Member(NOUN["mother"], "my"))


def texts_of(part, ending="", *, contracted=False):
    phrase = write(part, ending, contracted=contracted)
    return phrase.source, phrase.target


def links(part, *, contracted=False):
    return " ".join(f"{s}-{t}" for s, t in write(part, "", contracted=contracted).alignment)


def the(noun, **options):
    return noun_phrase(NOUN[noun], "the", **options)


def bare(noun, **options):
    return noun_phrase(NOUN[noun], **options)


def generic(noun, **options):
    return noun_phrase(NOUN[noun], generic=True, **options)


def to(place):
    return join(word("to", "a"), the(place))


def eat(food="bread"):
    return Predicate(verbs.EAT, bare(food))


@pytest.mark.parametrize(
    ("noun", "determiner", "adjective", "plural", "english", "spanish"),
    [
        ("car", "the", "red", False, "The red car", "El coche rojo"),
        ("flower", "the", "red", True, "The red flowers", "Las flores rojas"),
        ("pencil", "these", "blue", True, "These blue pencils", "Estos lápices azules"),
        ("umbrella", "two", None, True, "Two umbrellas", "Dos paraguas"),
        ("umbrella", "a", "old", False, "An old umbrella", "Un paraguas viejo"),
        ("woman", "that", "nice", False, "That nice woman", "Esa mujer simpática"),
        ("map", "our", "new", False, "Our new map", "Nuestro mapa nuevo"),
        ("table", "our", None, True, "Our tables", "Nuestras mesas"),
        ("book", "a", "good", False, "A good book", "Un buen libro"),
        ("letter", "many", "good", True, "Many good letters", "Muchas buenas cartas"),
        ("story", "the", "great", False, "The great story", "El gran cuento"),
        ("doctor", "her", "tall", True, "Her tall doctors", "Sus médicos altos"),
        ("water", "the", None, False, "The water", "El agua"),
        ("university", "a", "big", False, "A big university", "Una universidad grande"),
        ("university", "a", None, False, "A university", "Una universidad"),
    ],
)
def test_noun_phrases_agree(noun, determiner, adjective, plural, english, spanish):
    part = noun_phrase(NOUN[noun], determiner, adjective and ADJECTIVE[adjective], plural=plural)
    assert texts_of(part) == (english, spanish)


def test_adjectives_cross_their_noun_in_the_alignment():
    assert links(the("car", adjective=ADJECTIVE["red"])) == "0-0 1-2 2-1"
    assert links(noun_phrase(NOUN["book"], "a", ADJECTIVE["good"])) == "0-0 1-1 2-2"
    assert links(noun_phrase(NOUN["car"], "a", ADJECTIVE["red"], very=True)) == "0-0 1-2 2-3 3-1"


def test_an_owner_follows_in_spanish():
    part = noun_phrase(NOUN["car"], owner=NOUN["Ana"])
    assert texts_of(part) == ("Ana's car", "El coche de Ana")
    assert links(noun_phrase(NOUN["car"], owner=NOUN["Ana"])) == "0-2 0-3 1-0 1-1"


def test_liking_turns_the_sentence_round():
    part = felt(I, verbs.LIKE, generic("soccer"), plural=False)
    assert texts_of(part, ".") == ("I like soccer.", "Me gusta el fútbol.")
    assert links(felt(I, verbs.LIKE, generic("soccer"), plural=False)) == "0-0 1-1 2-2 2-3"
    sports = felt(I, verbs.LIKE, generic("sport", plural=True), plural=True)
    assert texts_of(sports) == ("I like sports", "Me gustan los deportes")


def test_the_sentence_of_the_book():
    going = deed(Predicate(verbs.GO, to("beach")), 0, "ing")
    part = felt(I, verbs.LIKE, join(generic("soccer"), AND_ALSO.say(), going), plural=False)
    phrase = write(part, "", contracted=False)
    assert phrase.source == "I like soccer and also going to the beach"
    assert phrase.target == "Me gusta el fútbol y también ir a la playa"
    assert phrase.alignment == (
        (0, 0), (1, 1), (2, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7), (7, 8), (8, 9),
    )  # fmt: skip


def test_whoever_likes_is_announced_by_a_and_taken_up_by_a_pronoun():
    assert texts_of(felt(ANA, verbs.LOVE, generic("music"), plural=False)) == (
        "Ana loves music",
        "A Ana le encanta la música",
    )
    assert links(felt(ANA, verbs.LOVE, generic("music"), plural=False)) == "0-0 0-1 0-2 1-3 2-4 2-5"
    two = of_nouns(Member(NOUN["Ana"]), Member(NOUN["Pedro"]))
    assert texts_of(felt(two, verbs.LIKE, generic("tea"), plural=False))[1] == "A Ana y a Pedro les gusta el té"
    assert texts_of(felt(EVERYONE, verbs.LIKE, generic("tea"), plural=False)) == (
        "Everyone likes tea",
        "A todos les gusta el té",
    )
    assert texts_of(felt(NOBODY, verbs.LIKE, generic("tea"), plural=False)) == (
        "Nobody likes tea",
        "A nadie le gusta el té",
    )
    boy = of_nouns(Member(NOUN["boy"], "the"))
    assert texts_of(felt(boy, verbs.LIKE, generic("tea"), plural=False))[1] == "Al niño le gusta el té"


def test_interest_and_pain_are_felt_too():
    part = felt(SHE, verbs.INTEREST, generic("history"), plural=False)
    assert texts_of(part) == ("She is interested in history", "Le interesa la historia")
    assert links(felt(SHE, verbs.INTEREST, generic("history"), plural=False)) == "0-0 1-1 2-1 3-1 4-2 4-3"


def test_likes_are_denied_and_asked():
    part = felt(YOU, verbs.LIKE, generic("tea"), plural=False, negative=True)
    assert texts_of(part, ".", contracted=True) == ("You don't like tea.", "No te gusta el té.")
    part = felt(YOU, verbs.LIKE, generic("tea"), plural=False, negative=True)
    assert links(part, contracted=True) == "0-1 1-0 1-2 2-2 3-3 3-4"
    part = felt(YOU, verbs.LIKE, generic("tea"), plural=False, question=True)
    assert texts_of(part, "?") == ("Do you like tea?", "¿Te gusta el té?")


@pytest.mark.parametrize(
    ("subject", "mode", "english", "spanish"),
    [
        (I, "present", "I eat bread", "Como pan"),
        (SHE, "present", "She eats bread", "Come pan"),
        (WE, "past", "We ate bread", "Comimos pan"),
        (THEY, "will", "They will eat bread", "Comerán pan"),
        (YOU, "going", "You are going to eat bread", "Vas a comer pan"),
        (HE, "progressive", "He is eating bread", "Está comiendo pan"),
        (I, "can", "I can eat bread", "Puedo comer pan"),
        (ANA, "past", "Ana ate bread", "Ana comió pan"),
        (MOTHER, "will", "My mother will eat bread", "Mi madre comerá pan"),
    ],
)
def test_tenses(subject, mode, english, spanish):
    assert texts_of(clause(subject, eat(), mode)) == (english, spanish)


@pytest.mark.parametrize(
    ("subject", "mode", "english", "spanish", "alignment"),
    [
        (I, "present", "I do not eat bread", "No como pan", "0-1 1-1 2-0 3-1 4-2"),
        (SHE, "past", "She did not eat bread", "No comió pan", "0-1 1-1 2-0 3-1 4-2"),
        (ANA, "will", "Ana will not eat bread", "Ana no comerá pan", "0-0 1-2 2-1 3-2 4-3"),
        (I, "going", "I am not going to eat bread", "No voy a comer pan", "0-1 1-1 2-0 3-1 4-2 5-3 6-4"),
        (I, "can", "I cannot eat bread", "No puedo comer pan", "0-1 1-0 1-1 2-2 3-3"),
    ],
)
def test_negation(subject, mode, english, spanish, alignment):
    part = clause(subject, eat(), mode, negative=True)
    assert texts_of(part) == (english, spanish)
    assert links(clause(subject, eat(), mode, negative=True)) == alignment


def test_english_contracts_and_its_links_stay():
    part = clause(SHE, eat(), "past", negative=True)
    assert texts_of(part, contracted=True) == ("She didn't eat bread", "No comió pan")
    assert links(clause(SHE, eat(), "past", negative=True), contracted=True) == "0-1 1-0 1-1 2-1 3-2"
    assert texts_of(clause(I, eat(), "going"), contracted=True)[0] == "I'm going to eat bread"
    assert links(clause(I, eat(), "going"), contracted=True) == "0-0 1-0 2-1 3-2 4-3"
    assert texts_of(clause(I, eat(), "progressive", negative=True), contracted=True)[0] == "I'm not eating bread"
    assert texts_of(clause(SHE, eat(), "progressive", negative=True), contracted=True)[0] == "She isn't eating bread"


def test_questions_invert_and_open_with_their_mark():
    assert texts_of(clause(ANA, eat(), question=True), "?") == ("Does Ana eat bread?", "¿Come Ana pan?")
    assert links(clause(ANA, eat(), question=True)) == "0-0 1-1 2-0 3-2"
    nothing = Predicate(verbs.EAT, Part([], []))
    where = clause(ANA, nothing, "going", question=True, opener=word("where", "dónde"))
    assert texts_of(where, "?") == ("Where is Ana going to eat?", "¿Dónde va a comer Ana?")
    assert texts_of(clause(WHO, eat()), "?") == ("Who eats bread?", "¿Quién come pan?")
    hello = join(comma(word("hello", "hola")), clause(YOU, eat(), question=True))
    hello.spanish[1].text = "¿" + hello.spanish[1].text
    assert texts_of(hello, "?") == ("Hello, do you eat bread?", "Hola, ¿comes pan?")
    door = of_nouns(Member(NOUN["table"], "the"), human=False)
    clean = clause(door, Predicate(verbs.ESTAR, word("clean", "limpia")), question=True)
    assert texts_of(clean, "?") == ("Is the table clean?", "¿Está limpia la mesa?")


def test_a_question_without_marks_has_none_on_either_side():
    assert texts_of(clause(YOU, eat(), question=True)) == ("Do you eat bread", "Comes pan")


def test_ser_estar_tener_and_hacer():
    assert texts_of(clause(SHE, Predicate(verbs.SER, word("tall", "alta")))) == ("She is tall", "Es alta")
    assert texts_of(clause(SHE, Predicate(verbs.ESTAR, word("tired", "cansada")))) == ("She is tired", "Está cansada")
    assert texts_of(clause(SHE, Predicate(verbs.ESTAR, word("tired", "cansada")), "past"))[1] == "Estaba cansada"
    assert texts_of(clause(I, Predicate(verbs.TENER, word("hungry", "hambre")))) == ("I am hungry", "Tengo hambre")
    assert texts_of(clause(IT, Predicate(verbs.HACER, word("cold", "frío")), "will"))[1] == "Hará frío"


def test_contractions_of_prepositions_and_articles():
    go = clause(I, Predicate(verbs.GO, to("park")))
    assert texts_of(go) == ("I go to the park", "Voy al parque")
    assert links(clause(I, Predicate(verbs.GO, to("park")))) == "0-0 1-0 2-1 3-1 4-2"
    of = join(word("of", "de"), the("car"))
    assert texts_of(of) == ("Of the car", "Del coche")
    assert texts_of(join(word("to", "a"), the("beach")))[1] == "A la playa"


def test_and_and_or_change_before_their_own_vowel():
    names = [bare("Ana"), bare("Irene")]
    assert texts_of(enumeration(names)) == ("Ana and Irene", "Ana e Irene")
    assert texts_of(enumeration([bare("Irene"), bare("Ana")]))[1] == "Irene y Ana"
    assert texts_of(enumeration([bare("Ana"), bare("Oscar")], ("or", "o"))) == ("Ana or Oscar", "Ana u Óscar")
    assert texts_of(join(word("and", "y"), deed(Predicate(verbs.GO, to("park")), 0, "ing")))[1] == "E ir al parque"


def test_lists():
    things = [bare("tea"), bare("milk"), bare("bread")]
    assert texts_of(enumeration(things)) == ("Tea, milk and bread", "Té, leche y pan")


def test_personal_a_and_object_pronouns():
    mother = noun_phrase(NOUN["mother"], "my")
    seeing = Predicate(verbs.SEE, with_a(mother))
    part = clause(I, seeing)
    assert texts_of(part) == ("I see my mother", "Veo a mi madre")
    assert links(part) == "0-0 1-0 2-2 3-1 3-3"
    me = English("me")
    assert texts_of(clause(HE, Predicate(verbs.HELP, Part([me], []), "me", (me,)))) == ("He helps me", "Me ayuda")
    me = English("me")
    helping = Predicate(verbs.HELP, Part([me], []), "me", (me,))
    part = clause(HE, helping, "going")
    assert texts_of(part) == ("He is going to help me", "Va a ayudarme")
    assert links(part) == "0-0 1-0 2-0 3-1 4-2 5-2"


def test_reflexive_verbs_follow_their_subject():
    early = lambda: Predicate(verbs.GET_UP, when_where.EARLY.say())  # noqa: E731
    assert texts_of(clause(I, early())) == ("I get up early", "Me levanto temprano")
    assert links(clause(I, early())) == "0-1 1-0 1-1 2-0 2-1 3-2"
    assert texts_of(clause(WE, early(), "going"))[1] == "Vamos a levantarnos temprano"
    wish = Predicate(verbs.WANT, deed(early(), 4, "to"))
    assert texts_of(clause(THEY, wish, negative=True)) == (
        "They do not want to get up early",
        "No quieren levantarse temprano",
    )


def test_having_to():
    part = clause(SHE, Predicate(verbs.HAVE_TO, obliged(eat(), SHE)))
    assert texts_of(part) == ("She has to eat bread", "Tiene que comer pan")
    assert links(part) == "0-0 1-0 2-1 3-2 4-3"


def test_adverbs_stand_before_the_spanish_verb():
    part = clause(ANA, eat(), adverb=when_where.NEVER)
    assert texts_of(part) == ("Ana never eats bread", "Ana nunca come pan")
    tired = clause(SHE, Predicate(verbs.ESTAR, word("tired", "cansada")), adverb=when_where.ALWAYS)
    assert texts_of(tired) == ("She is always tired", "Siempre está cansada")


def test_a_second_verb_needs_no_subject():
    part = join(clause(I, eat()), word("and", "y"), continuation(I, Predicate(verbs.DRINK, bare("milk")), "present"))
    assert texts_of(part) == ("I eat bread and drink milk", "Como pan y bebo leche")
    assert links(part) == "0-0 1-0 2-1 3-2 4-3 5-4"


def test_days_hours_and_crossed_expressions():
    assert texts_of(when_where.ON_DAYS[5].say()) == ("On Saturdays", "Los sábados")
    assert texts_of(when_where.ON_DAYS[0].say()) == ("On Mondays", "Los lunes")
    assert texts_of(when_where.AT_HOUR[0].say()) == ("At two o'clock", "A las dos")
    half = next(e for e in when_where.AT_HOUR if e.english[1:3] == ["half", "past"])
    assert texts_of(half.say()) == ("At half past two", "A las dos y media")
    last_week = next(e for e in when_where.TIMES["past"] if e.english == ["last", "week"])
    assert texts_of(last_week.say()) == ("Last week", "La semana pasada")
    assert links(last_week.say()) == "0-2 1-0 1-1"


def test_expressions_are_made_anew_each_time():
    twice = join(when_where.EARLY.say(), when_where.EARLY.say())
    assert links(twice) == "0-0 1-1"
    assert links(Expression("a b", "x y", "0-1 1-0").say()) == "0-1 1-0"


def test_a_word_may_link_to_several():
    a, b = English("a"), English("b")
    assert links(Part([a, b], [Spanish("x", a, b), Spanish("y", b)])) == "0-0 1-0 1-1"


@pytest.mark.parametrize(
    ("verb", "present", "past", "other_forms"),
    [
        (verbs.EAT, "como comes come comemos comen", "comí comiste comió comimos comieron", "comeré comiendo"),
        (verbs.PLAY_GAME, "juego juegas juega jugamos juegan", "jugué jugaste jugó jugamos jugaron", "jugaré jugando"),
        (verbs.CLOSE, "cierro cierras cierra cerramos cierran", "cerré cerraste cerró cerramos cerraron", "cerraré cerrando"),
        (verbs.SLEEP, "duermo duermes duerme dormimos duermen", "dormí dormiste durmió dormimos durmieron", "dormiré durmiendo"),
        (verbs.READ, "leo lees lee leemos leen", "leí leíste leyó leímos leyeron", "leeré leyendo"),
        (verbs.PLAY_MUSIC, "toco tocas toca tocamos tocan", "toqué tocaste tocó tocamos tocaron", "tocaré tocando"),
        (verbs.ARRIVE, "llego llegas llega llegamos llegan", "llegué llegaste llegó llegamos llegaron", "llegaré llegando"),
        (verbs.GO, "voy vas va vamos van", "fui fuiste fue fuimos fueron", "iré yendo"),
        (verbs.HAVE, "tengo tienes tiene tenemos tienen", "tenía tenías tenía teníamos tenían", "tendré teniendo"),
        (verbs.LIVE, "vivo vives vive vivimos viven", "vivía vivías vivía vivíamos vivían", "viviré viviendo"),
        (verbs.GIVE, "doy das da damos dan", "di diste dio dimos dieron", "daré dando"),
        (verbs.WANT, "quiero quieres quiere queremos quieren", "quería querías quería queríamos querían", "querré queriendo"),
    ],
)  # fmt: skip
def test_conjugation(verb, present, past, other_forms):
    assert verb.finite["present"] == tuple(present.split())
    assert verb.finite["past"] == tuple(past.split())
    assert [verb.finite["will"][0], verb.gerund] == other_forms.split()


def test_english_forms():
    assert (verbs.STUDY.third, verbs.STUDY.past, verbs.STUDY.ing) == ("studies", "studied", "studying")
    assert (verbs.WATCH.third, verbs.GO.third, verbs.PLAY_GAME.third) == ("watches", "goes", "plays")
    assert (verbs.DANCE.past, verbs.DANCE.ing, verbs.SWIM.ing) == ("danced", "dancing", "swimming")


def test_plurals():
    assert words.spanish_plural("lápiz") == "lápices"
    assert words.spanish_plural("estación") == "estaciones"
    assert words.spanish_plural("jardín") == "jardines"
    assert words.spanish_plural("reloj") == "relojes"
    assert words.spanish_plural("paraguas") == "paraguas"
    assert words.english_plural("city") == "cities"
    assert words.english_plural("boy") == "boys"
    assert words.english_plural("box") == "boxes"
