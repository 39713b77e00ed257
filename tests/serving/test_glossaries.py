"""Glossaries in memory: a bounded number, of which each client gets its part."""

import pytest

from translucid.serving.edge.failures import ApiError
from translucid.serving.routes.glossaries import LIFETIME, MOST, SHARE, Dictionary, Glossaries, Glossary, read_entries

CLIENTS = MOST // SHARE


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def kept(clock):
    return Glossaries(clock)


def of(client, name="terms"):
    return Glossary(client, name, (Dictionary("EN", "ES", {"house": "casa"}),))


def test_a_few_clients_do_not_keep_others_out(kept):
    """Those with the most lose what they have used longest ago; a client that has its share gets no more."""
    for number in range(MOST):
        kept.add(of(f"greedy {number % CLIENTS}", f"{number}"))
    first = kept.of("greedy 0")[0]
    kept.find("greedy 0", first.id)  # used again, so that another one is the oldest
    with pytest.raises(ApiError):
        kept.add(of("greedy 0"))
    mine = [of("honest"), of("honest")]
    for glossary in mine:
        kept.add(glossary)
    assert [one.id for one in kept.of("honest")] == [one.id for one in mine]
    assert len(kept.all) == len(kept.used) == MOST
    counts = [len(kept.of(f"greedy {number}")) for number in range(CLIENTS)]
    assert sorted(counts) == [SHARE - 1] * 2 + [SHARE] * (CLIENTS - 2)
    assert first.id in kept.all


def test_where_all_have_as_many_nobody_loses_one(kept):
    for number in range(MOST):
        kept.add(of(f"client {number}"))
    with pytest.raises(ApiError):
        kept.add(of("client 7"))
    kept.add(of("client new"))  # which has none yet
    assert len(kept.all) == MOST


def test_what_nobody_uses_expires(kept, clock):
    used, forgotten = of("one"), of("one")
    kept.add(used)
    kept.add(forgotten)
    clock.now += LIFETIME - 1
    kept.find("one", used.id)
    assert len(kept.of("one")) == 2
    clock.now += 2
    assert kept.of("one") == [used]
    with pytest.raises(ApiError):
        kept.find("one", forgotten.id)
    clock.now += LIFETIME
    assert kept.of("one") == [] and not kept.used


def test_a_term_has_a_bounded_number_of_characters():
    longest = "a" * 500
    assert read_entries(f"{longest}\t{longest}\n", "tsv") == {longest: longest}
    for entry in (f"{longest}a\tb\n", f"b\t{longest}a\n"):
        with pytest.raises(ApiError, match="line 1 of the entries has what can't stand in a term"):
            read_entries(entry, "tsv")
