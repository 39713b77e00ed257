"""The seen-sentence index: no sentence is missed, few others are reported, and damaged files are refused."""

import json
import zlib
from random import Random

import numpy as np
import pytest

from bitext.pair import Pair
from bitext.words import normalized_text
from translucid.data import seen_sentences
from translucid.data.seen_sentences import SEEN, SEEN_BEFORE, SeenSentences, SeenSentencesBuilder, hashes_of, inherit
from translucid.ground.errors import UserError

ALPHABET = "aAbB \u00a0\t\u3000éÉe\u0301ßẞİıΣσς\n\u2028中\ud800\x1c\x85."


def write(run, pairs, languages=(None, None), *, both=False, complete=True):
    run.mkdir(exist_ok=True)
    builder = SeenSentencesBuilder()
    builder.add(hashes_of([p[0] for p in pairs]), hashes_of([p[1] for p in pairs]), languages, both=both)
    builder.write(run, "digest", complete=complete)
    return run


def numbered(name, count, first=0):
    return [(f"{name} source {number}", f"{name} target {number}") for number in range(first, first + count)]


def counts(seen):
    return {name: len(lines) for name, lines in seen.lines().items()}


def test_hashes_are_equal_if_and_only_if_texts_are_the_same_but_for_case_and_spaces():
    draw = Random(1)
    texts = ["".join(draw.choices(ALPHABET, k=draw.randrange(12))) for _ in range(30_000)]
    forms = [normalized_text(text).casefold() for text in texts]
    hashes = hashes_of(texts)
    by_form = dict(zip(forms, hashes.tolist(), strict=True))
    assert [by_form[form] for form in forms] == hashes.tolist()
    assert len(set(by_form.values())) == len(by_form) and by_form[""] == 0
    assert (hashes_of(texts[3:9000:7]) == hashes[3:9000:7]).all()


def test_hashes_do_not_depend_on_other_texts_and_stay_the_same():
    assert hashes_of(["I like  soccer.", "¿Qué ES?", "Straße 中"]).tolist() == [
        *(13839160232152528288, 13241983799344944547, 17257307738784268901),
    ]
    texts = [f"{letter}{chr(code)} Á" for letter in "eㄱᄀक" for code in range(0x3010)]
    expected = hashes_of([*texts, "\ud800"])[:-1]  # which no table has
    for first in range(0, len(texts), 40):
        assert (hashes_of(texts[first : first + 40]) == expected[first : first + 40]).all(), texts[first]


def test_none_is_missed_and_at_most_one_in_ten_thousand_is_a_false_report(tmp_path):
    pairs = numbered("first", 20_000)
    old = write(tmp_path / "old", numbered("old", 20_000))
    run = tmp_path / "run"
    run.mkdir()
    assert inherit(run, [old])
    write(run, pairs)
    assert (run / SEEN).stat().st_size <= 3 * 40_000 + 200
    index = SeenSentences.of_run(run)
    for known in (pairs, numbered("old", 20_000)):
        shouted = [(f" {source.upper()}", target.replace(" ", "  ")) for source, target in known]
        assert counts(index.look_up(shouted)) | {"other_source": 0} == {
            **dict.fromkeys(("source", "reference", "pair"), 20_000),
            **dict.fromkeys(("other_source", "other_reference"), 0),
        }
    unseen = index.look_up(numbered("new", 100_000))
    reported = counts(unseen)
    assert reported["source"] <= 10 and reported["reference"] <= 10 and reported["pair"] <= 1
    assert unseen.false_reports(100_000, 100_000) == pytest.approx(2 * 2 * 100_000 / 2**17, rel=0.01)
    # Both sides are there, but not together: the bits that are left distinguish them.
    crossed = [(source, target) for (source, _), (_, target) in zip(pairs, pairs[1:] + pairs[:1], strict=True)]
    crossed = counts(index.look_up(crossed))
    assert crossed["source"] == crossed["reference"] == 20_000 and crossed["pair"] < 1000


def test_an_index_of_many_pairs_has_ten_bits_for_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(seen_sentences, "FEW_PAIRS", 9999)
    monkeypatch.setattr(seen_sentences, "_BLOCK", 1024)
    run = write(tmp_path / "run", numbered("first", 10_000))
    assert (run / SEEN).stat().st_size <= 10 * 20_000 / 8 + 200
    index = SeenSentences.of_run(run)
    assert counts(index.look_up(numbered("first", 10_000)))["pair"] == 10_000
    seen = index.look_up(numbered("new", 20_000))
    expected = seen.false_reports(20_000, 20_000) / 2
    assert counts(seen)["source"] == pytest.approx(expected, rel=0.4) and expected < 100


def test_directions_are_counted_apart(tmp_path):
    builder = SeenSentencesBuilder()
    for languages, both, pairs in (
        (("en", "es"), True, [("Hello", "Hola")]),
        (("en", "de"), False, [("House", "Haus")]),
    ):
        builder.add(*(hashes_of(side) for side in zip(*pairs, strict=True)), languages, both=both)
    builder.write(tmp_path, "digest")
    index = SeenSentences.of_run(tmp_path)

    def flags(direction, source, target):
        (sides,) = index.look_up([Pair(source, target)], direction).sides
        return "".join("01"[flag] for flag in sides)

    assert flags(("en", "es"), "Hello", "Hola") == flags(("es", "en"), "Hola", "Hello") == "11100"
    assert flags(("en", "es"), "House", "Casa") == "00010"
    assert flags(("de", "en"), "Haus", "House") == "00011"  # learned from English alone
    assert flags(("de", "es"), "Haus", "Hola") == "00011"
    assert flags((None, None), "House", "Haus") == "11100"


def test_several_references_count_as_one(tmp_path):
    index = SeenSentences.of_run(write(tmp_path / "run", [("Hello", "Hola")]))
    (sides,) = index.look_up([("Hello", "Buenas")], references=[["hola"], [None]]).sides
    assert sides.reference and sides.pair


def test_without_an_index_nothing_is_known(tmp_path):
    assert SeenSentences.of_run(tmp_path) is None and SeenSentences.of_runs([tmp_path]) is None
    known = write(tmp_path / "known", numbered("first", 3))
    assert not SeenSentences.of_runs([known, tmp_path]).complete
    # A run that was initialized from one without an index, and whose text has been deleted from it.
    run = tmp_path / "run"
    run.mkdir()
    assert not inherit(run, [known, tmp_path])
    assert len(list((run / SEEN_BEFORE).iterdir())) == 1
    assert not SeenSentences.of_run(run).complete
    write(run, numbered("second", 3), complete=False)
    index = SeenSentences.of_run(run)
    assert len(index.indexes) == 2 and not index.complete


def forged(header, length=None):
    content = json.dumps(header).encode()
    size = (len(content) if length is None else length).to_bytes(4, "little")
    return b"TRLSEEN1" + size + zlib.crc32(content).to_bytes(4, "little") + content


GROUP = {"languages": [None, None], "both": False}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"TRLSEEN1",
        b"something else entirely",
        forged({"text": "", "complete": True, "groups": []}, length=1 << 31),
        forged({"text": "", "complete": True}),
        forged({"text": "", "complete": True, "groups": [GROUP | {"sets": [[1 << 50, 1 << 50, 17]] * 3}]}),
        forged({"text": "", "complete": True, "groups": [GROUP | {"sets": [[0, 0, 1 << 20]] * 3}]}),
        forged({"text": "", "complete": True, "groups": [GROUP | {"sets": [[-8, 0, 17]] * 3}]}),
        forged({"text": "", "complete": True, "groups": [GROUP | {"sets": [None, None, None]}]}),
    ],
)
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / SEEN).write_bytes(content)
    with pytest.raises(UserError, match=r"seen sentences|damaged"):
        SeenSentences.of_run(tmp_path)


def test_damage_is_refused(tmp_path):
    file = write(tmp_path / "run", numbered("first", 100)) / SEEN
    content = file.read_bytes()
    for position in np.linspace(0, len(content) - 1, 40).astype(int).tolist():
        for damaged in (
            content[:position],
            content[:position] + bytes([content[position] ^ 4]) + content[position + 1 :],
        ):
            file.write_bytes(damaged)
            with pytest.raises(UserError):
                SeenSentences.of_run(file.parent)


def test_bits_of_a_file_that_make_no_sense_crash_nothing(tmp_path):
    header = {"text": "", "complete": True, "groups": [GROUP | {"sets": [[9, 9, 17], [9, 9, 17], None]}]}
    for filling in (b"\0", b"\xff"):
        content = json.dumps(header).encode()
        body = content + filling * 2 * (3 + 20)
        sizes = len(content).to_bytes(4, "little") + zlib.crc32(body).to_bytes(4, "little")
        (tmp_path / SEEN).write_bytes(b"TRLSEEN1" + sizes + body)
        SeenSentences.of_run(tmp_path).look_up([("a", "b")])
