"""The index finds the same matches as a comparison with every entry."""

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from bitext.memory import database
from bitext.memory.match import Folded
from bitext.memory.translation_memory import TranslationMemory
from bitext.pair import Pair
from translucid.corpora.phrasebook import generate

SIMILARITY = Levenshtein.normalized_similarity


def make_memory(path, sources):
    memory = TranslationMemory.open(path / "m.memory", write=True)
    memory.add([Pair(source, source[::-1]) for source in sources], "test")
    return memory


def random_words(generator, count):
    """Draw words from a long-tailed distribution: a few are in most segments, many are rare, and some repeat."""
    return " ".join(f"w{int(generator.paretovariate(0.6))}" for _ in range(count))


def make_segments(kind):
    generator = random.Random(1)
    match kind:
        case "rare words":
            return [random_words(generator, generator.randint(1, 25)) for _ in range(1500)]
        case "five words":
            return [" ".join(generator.choices("abcde", k=generator.randint(1, 9))) for _ in range(1500)]
        case "phrasebook":
            return [phrase.source for phrase in generate(1500)]


def vary_words(text, generator):
    """Vary a text: some of its words are left out, inserted, replaced or moved."""
    words = text.split()
    for _ in range(generator.randint(0, 1 + len(words) // 3)):
        position = generator.randrange(len(words) + 1)
        match generator.randrange(4):
            case 0 if len(words) > 1:
                del words[position - 1]
            case 1:
                words.insert(position, generator.choice([*words, "new"]))
            case 2 if words:
                words[position - 1] = "other"
            case _:
                words.insert(position, words.pop())
    return " ".join(words)


@pytest.mark.parametrize("kind", ["rare words", "five words", "phrasebook"])
def test_the_best_match_is_found(tmp_path, kind):
    sources = make_segments(kind)
    memory, generator = make_memory(tmp_path, sources), random.Random(2)
    keys = [Folded(source).key for source in sources]
    expected_counts, found_counts = Counter(), Counter()
    for source in generator.sample(sources, 150):
        text = vary_words(source, generator)
        best = process.extractOne(Folded(text).key, keys, scorer=SIMILARITY)
        for threshold in (70, 85):
            matches = memory.matches(text, threshold)
            if round(100 * best[1]) < threshold:
                assert not matches
                continue
            expected_counts[threshold] += 1
            scores = [SIMILARITY(Folded(text).key, Folded(match.entry.source).key) for match in matches]
            found_counts[threshold] += max(scores, default=0) >= best[1] - 1e-9
    for threshold in (70, 85):
        assert expected_counts[threshold] > 60
        assert found_counts[threshold] / expected_counts[threshold] >= 0.99


def test_all_above_a_percentage_come_the_best_first(tmp_path):
    memory = make_memory(tmp_path, ["a b c d", "a b c x", "a b c d e", "a b", "p q r s"])
    matches = memory.matches("a b c d", 50)
    assert [match.percent for match in matches] == [100, 80, 75, 50]
    assert [match.entry.source for match in memory.matches("A B C D", 75)] == ["a b c d", "a b c d e", "a b c x"]
    assert len(memory.matches("a b c d", 50, limit=2)) == 2


def test_exact_is_with_case_and_without_spaces(tmp_path):
    memory = make_memory(tmp_path, ["Save the  file", "save the file"])
    assert memory.exact(" Save the file\n").target == "elif  eht evaS".replace("  ", " ")
    assert memory.exact("save the file").target == "elif eht evas"
    assert memory.exact("SAVE the file") is None
    assert memory.exact("") is None


def test_the_same_text_is_found_among_very_many_that_are_like_it(tmp_path, monkeypatch):
    monkeypatch.setattr(database, "MOST", 10)
    memory = make_memory(tmp_path, [f"Page {i} of 10" for i in range(300)])
    assert memory.matches("Page 7 of 10")[0].percent == 100


def test_of_too_many_candidates_those_with_most_in_common_are_compared(tmp_path, monkeypatch):
    monkeypatch.setattr(database, "MOST", 10)
    similar = [f"a b x{i} y{i} z{i} c" for i in range(100)]
    memory = make_memory(tmp_path, [*similar[:50], "a b p q r d", *similar[50:]])
    assert memory.matches("a b p q r c", 50)[0].entry.source == "a b p q r d"


def test_several_threads_may_ask_and_write(tmp_path):
    memory = make_memory(tmp_path, [f"page {i}x of the book" for i in range(50)])

    def work(thread):
        for i in range(20):
            memory.add([Pair(f"thread {thread} text {i}x", "t")], str(thread))
            assert memory.matches(f"page {i}x of the book")[0].percent == 100
            assert memory.exact(f"thread {thread} text {i}x").entry.who == str(thread)

    with ThreadPoolExecutor(6) as pool:
        assert [*pool.map(work, range(6))] == [None] * 6
    assert len(memory) == 50 + 6 * 20


def test_full_lists_continue_in_another_row(tmp_path, monkeypatch):
    monkeypatch.setattr(database, "SHORT_LIST", 4)
    memory = make_memory(tmp_path, [f"page {word}" for word in "abc"])
    for word in "defghijk":
        memory.add([Pair(f"page {word}", "x")], "test")
    assert len(memory.matches("page z", 50, limit=99)) == 11
    sizes = [row[0] for row in memory._database.execute("SELECT size FROM postings")]
    assert max(sizes) == 5 and sum(sizes) == 3 * 11


def test_very_long_lists_are_read_in_part(tmp_path, monkeypatch):
    monkeypatch.setattr(database, "TOO_MANY", 5)
    memory = make_memory(tmp_path, ["the cat sat", *(f"the {word} dog" for word in "abcdefghijklmnopqrs")])
    assert [match.percent for match in memory.matches("the cat ran", 60)] == [67]


@pytest.mark.parametrize(
    "text", ["", " ", "x" * 20_001, "\0", "\ud800", "!!!", "%" * 300, "' OR 1=1; DROP TABLE segments"]
)
def test_any_text_can_be_looked_up(tmp_path, text):
    memory = make_memory(tmp_path, ["a b c", "!!!"])
    memory.add([Pair(text, text)], "test")
    matches = memory.matches(text)
    # TMX can't contain NUL, so a memory refuses it.
    assert bool(matches) == (0 < len(text.strip()) <= 20_000 and text != "\0")
    assert memory.exact("a b c")
