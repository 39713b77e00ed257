"""Glossaries are held in memory: their number is bounded, and so is each client's share."""

from datetime import UTC, datetime

import pytest

from translucid.serving.dialects.deepl_glossaries import (
    DICTIONARIES,
    ENTRIES,
    LIFETIME,
    MOST,
    SHARE,
    Dictionary,
    Glossaries,
    Glossary,
    check_size,
    read_entries,
)
from translucid.serving.edge.failures import ApiError

CLIENTS = MOST // SHARE


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def glossaries(clock):
    return Glossaries(clock)


def glossary_of(client, name="terms"):
    return Glossary(client, name, (Dictionary("EN", "ES", {"house": "casa"}),))


def test_a_few_clients_do_not_keep_others_out(glossaries):
    """Clients with the most glossaries lose the least recently used; a client with a full share gets no more."""
    for number in range(MOST):
        glossaries.add(glossary_of(f"greedy {number % CLIENTS}", f"{number}"))
    first = glossaries.of("greedy 0")[0]
    glossaries.find("greedy 0", first.id)  # used again, so that another one is the least recently used
    with pytest.raises(ApiError):
        glossaries.add(glossary_of("greedy 0"))
    expected = [glossary_of("honest"), glossary_of("honest")]
    for glossary in expected:
        glossaries.add(glossary)
    assert [stored.id for stored in glossaries.of("honest")] == [stored.id for stored in expected]
    assert len(glossaries.all) == MOST
    counts = [len(glossaries.of(f"greedy {number}")) for number in range(CLIENTS)]
    assert sorted(counts) == [SHARE - 1] * 2 + [SHARE] * (CLIENTS - 2)
    assert first.id in glossaries.all


def test_where_all_have_as_many_nobody_loses_one(glossaries):
    for number in range(MOST):
        glossaries.add(glossary_of(f"client {number}"))
    with pytest.raises(ApiError):
        glossaries.add(glossary_of("client 7"))
    glossaries.add(glossary_of("client new"))  # has no glossary yet
    assert len(glossaries.all) == MOST


def test_what_nobody_uses_expires(glossaries, clock):
    used, forgotten = glossary_of("one"), glossary_of("one")
    glossaries.add(used)
    glossaries.add(forgotten)
    clock.now += LIFETIME - 1
    glossaries.find("one", used.id)
    assert len(glossaries.of("one")) == 2
    clock.now += 2
    assert glossaries.of("one") == [used]
    with pytest.raises(ApiError):
        glossaries.find("one", forgotten.id)
    clock.now += LIFETIME
    assert glossaries.of("one") == [] and not glossaries.all


def test_a_term_has_a_bounded_number_of_characters():
    longest = "a" * 500
    assert read_entries(f"{longest}\t{longest}\n", "tsv") == {longest: longest}
    for entry in (f"{longest}a\tb\n", f"b\t{longest}a\n"):
        with pytest.raises(ApiError, match="line 1 of the entries has what can't stand in a term"):
            read_entries(entry, "tsv")


@pytest.mark.parametrize(
    ("text", "form", "entries"),
    [
        ("a\tb\n\n \t \nc d\t e \r\n", "tsv", {"a": "b", "c d": "e"}),
        ('dog,perro,en,es\n"a, ""b""",c\n,\n', "csv", {"dog": "perro", 'a, "b"': "c"}),
    ],
)
def test_entries_of_both_forms(text, form, entries):
    assert read_entries(text, form) == entries


@pytest.mark.parametrize(
    ("text", "form", "message"),
    [
        ("a\tb\na", "tsv", "line 2 of the entries is not a term and its translation"),
        ("a\tb\n\tc", "tsv", "line 2 of the entries is not a term and its translation"),
        ("a\t ", "tsv", "line 1 of the entries is not a term and its translation"),
        ("a\tb\t", "tsv", "line 1 of the entries is not a term and its translation"),
        ("a\n", "csv", "line 1 of the entries is not a term and its translation"),
        ("a\tb\x01", "tsv", "line 1 of the entries has what can't stand in a term"),
        ("a\u200b\tb", "tsv", "line 1 of the entries has what can't stand in a term"),
        ("a\tb\n" + "w " * 33 + "\tb", "tsv", "line 2 of the entries has more than 32 words"),
        ("a\t" + "w " * 33, "tsv", "line 1 of the entries has more than 32 words"),
        ("!?\tb", "tsv", "line 1 of the entries has no source word"),
        ("a\tb\n\na\tc", "tsv", "line 3 of the entries has a term a second time"),
        ("", "tsv", "a glossary has between 1 and 5000 entries"),
        ("\n \n", "csv", "a glossary has between 1 and 5000 entries"),
        ("a\tb", "xml", "entries_format is neither tsv nor csv"),
    ],
)
def test_entries_that_are_refused(text, form, message):
    with pytest.raises(ApiError) as error:
        read_entries(text, form)
    assert (error.value.status, error.value.message) == (400, f"Invalid request: {message}")


def test_a_field_of_csv_has_a_limit():
    with pytest.raises(ApiError, match="the entries are no CSV"):
        read_entries('"' + "x" * 200_000, "csv")


def test_a_glossary_has_a_bounded_size():
    lines = [f"{i}\tx\n" for i in range(ENTRIES + 1)]
    assert len(read_entries("".join(lines[1:]), "tsv")) == ENTRIES == 5000
    with pytest.raises(ApiError, match="between 1 and 5000"):
        read_entries("".join(lines), "tsv")
    entries = dict.fromkeys(map(str, range(2500)), "x")
    half = Dictionary("en", "es", entries)
    empty = Dictionary("en", "fr", {})
    limits = "Invalid request: a glossary has 100 dictionaries and 5000 entries at most"
    check_size(Glossary("", "", (half, half)))
    check_size(Glossary("", "", (empty,) * DICTIONARIES))
    for dictionaries in ((half, Dictionary("en", "es", {**entries, "one more": "x"})), (empty,) * (DICTIONARIES + 1)):
        with pytest.raises(ApiError) as error:
            check_size(Glossary("", "", dictionaries))
        assert (error.value.status, error.value.message) == (400, limits)


def test_records_of_both_versions_of_the_api():
    created = datetime(2026, 1, 15, 9, 30, tzinfo=UTC)
    spanish, french = Dictionary("EN", "ES", {"a": "b", "c": "d"}), Dictionary("EN", "FR", {"a": "b"})
    glossary = Glossary("client", "terms", (spanish, french), "the id", created)
    time = "2026-01-15T09:30:00.000000+00:00"
    rows = [
        {"source_lang": "en", "target_lang": "es", "entry_count": 2},
        {"source_lang": "en", "target_lang": "fr", "entry_count": 1},
    ]
    assert glossary.information == {
        "glossary_id": "the id",
        "name": "terms",
        "dictionaries": rows,
        "creation_time": time,
    }
    assert glossary.without_dictionary("en", "fr-CA").monolingual_information == {
        "glossary_id": "the id",
        "name": "terms",
        "ready": True,
        **rows[0],
        "creation_time": time,
    }
    assert spanish.tsv == "a\tb\nc\td\n"


def test_dictionaries_are_found_by_both_languages():
    spanish, french = Dictionary("EN", "ES", {"a": "b"}), Dictionary("EN", "FR", {"c": "d"})
    glossary = Glossary("client", "terms", (spanish, french))
    assert (glossary.find("en", "es"), glossary.find("en-US", "FR")) == (spanish, french)
    assert glossary.find("en", "de") is None and glossary.find("es", "en") is None
    new = Dictionary("en-GB", "es", {})
    assert glossary.with_dictionary(new).dictionaries == (french, new)
    assert glossary.with_dictionary(new).id == glossary.id
    assert glossary.without_dictionary("fr", "en").dictionaries == (spanish, french)


def test_glossaries_of_one_client_in_the_order_in_which_they_were_made(glossaries, clock):
    stored = [Glossary("one", f"{i}", (), f"{i}", datetime(2026, 1, i, tzinfo=UTC)) for i in (1, 2, 3)]
    for glossary in reversed(stored):
        glossaries.add(glossary)
    glossaries.add(glossary_of("other"))
    assert glossaries.of("one") == stored
    for client, key in (("other", "1"), ("one", "4")):
        with pytest.raises(ApiError) as error:
            glossaries.find(client, key)
        assert (error.value.status, error.value.message) == (404, "Glossary not found")
    changed = glossaries.change(
        "one", "2", lambda glossary: glossary.with_dictionary(Dictionary("en", "es", {"a": "b"}))
    )
    assert glossaries.find("one", "2") is changed and [*glossaries.all][-1] == "2"
    too_large = Dictionary("en", "es", dict.fromkeys(range(ENTRIES + 1)))
    with pytest.raises(ApiError):
        glossaries.change("one", "2", lambda glossary: glossary.with_dictionary(too_large))
    assert glossaries.find("one", "2") is changed
    glossaries.delete("one", "1")
    assert "1" not in glossaries.all and glossaries.of("one") == [changed, stored[2]]
    clock.now += LIFETIME  # a glossary used exactly at the limit is still stored
    assert len(glossaries.of("one")) == 2


def test_a_client_with_its_share_gets_no_more(glossaries):
    for _ in range(SHARE):
        glossaries.add(glossary_of("one"))
    with pytest.raises(ApiError) as error:
        glossaries.add(glossary_of("one"))
    assert (error.value.status, error.value.message) == (456, "Too many glossaries: delete one first")
    glossaries.add(glossary_of("other"))
    assert len(glossaries.all) == SHARE + 1
