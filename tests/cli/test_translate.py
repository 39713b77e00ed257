"""`translucid translate`: one line in, one line out."""

import json

import pytest


def test_a_text_gives_one_line(call, small_run):
    done = call("translate", small_run, "I like soccer")
    assert done.code == 0
    assert done.out.count("\n") == 1
    assert done.out.strip()


def test_every_line_gets_its_line_in_order_and_empty_lines_stay_empty(call, small_run):
    lines = ["I like soccer.", "", "She works.", "   ", "I like soccer."]
    done = call("translate", small_run, stdin=("\n".join(lines) + "\n").encode())
    out = done.out.split("\n")
    assert len(out) == len(lines) + 1
    assert out[1] == out[3] == ""
    assert out[0] == out[4] != ""


def test_lines_end_at_a_line_feed_and_nowhere_else(call, small_run):
    done = call("translate", small_run, stdin="one\u2028two\x0bthree\x85four\rfive\r\nsix".encode())
    assert done.out.count("\n") == 2


def test_a_line_that_is_not_utf8_still_gets_its_line_and_exit_code_2(call, small_run):
    done = call("translate", small_run, stdin=b"She works.\nca\xf1a\nShe works.\n")
    out = done.out.split("\n")
    assert done.code == 2
    assert len(out) == 4
    assert out[0] == out[2] != ""
    assert "line 2" in done.err
    assert "iconv" in done.err


def test_files_in_and_out_and_nothing_is_overwritten(call, small_run, tmp_path):
    (tmp_path / "in.txt").write_text("She works.\nI like soccer.\n")
    out = tmp_path / "out.txt"
    assert call("translate", small_run, "--input", tmp_path / "in.txt", "--output", out).code == 0
    first = out.read_text()
    assert first.count("\n") == 2
    refused = call("translate", small_run, "--input", tmp_path / "in.txt", "--output", out)
    assert refused.code == 2
    assert "--overwrite" in refused.err
    assert out.read_text() == first
    assert call("translate", small_run, "--input", tmp_path / "in.txt", "--output", out, "--overwrite").code == 0
    assert sorted(item.name for item in tmp_path.iterdir()) == ["in.txt", "out.txt"]


def test_jsonl_carries_scores_alternatives_and_alignments(call, small_run):
    done = call("translate", small_run, "--format", "jsonl", "--nbest", "3", "--alignments", "I like soccer")
    record = json.loads(done.out)
    assert record["source"] == "I like soccer"
    assert record["score"] <= 0
    assert len(record["alternatives"]) == 3
    assert record["alternatives"][0] == record["translation"]
    words = len(record["translation"].split())
    assert all(0 <= source < 3 and 0 <= target < words for source, target in record["alignment"])


def test_nbest_and_alignments_stay_on_one_line(call, small_run):
    done = call("translate", small_run, "--nbest", "2", "--alignments", "I like soccer")
    assert done.out.count("\n") == 1
    *texts, alignment = done.out.rstrip("\n").split("\t")
    assert len(texts) == 2
    assert all("-" in link for link in alignment.split())


def test_a_text_longer_than_training_is_translated_in_pieces_with_a_warning(call, small_run):
    long = "I like soccer and she works " * 120
    done = call("translate", small_run, "--beam", "1", long)
    assert done.code == 0
    assert done.out.count("\n") == 1
    assert "translated in pieces" in done.err


def test_splitting_sentences_gives_what_they_give_alone(call, small_run):
    alone = [call("translate", small_run, text).out.strip() for text in ("I like soccer.", "She works.")]
    together = call("translate", small_run, "--split-sentences", "I like soccer. She works.")
    assert together.out.strip() == " ".join(alone)


def test_a_text_of_several_lines_is_one_line(call, small_run):
    done = call("translate", small_run, "--format", "jsonl", "I like soccer.\nShe works.")
    assert done.out.count("\n") == 1
    assert json.loads(done.out)["source"] == "I like soccer. She works."


def test_sampling_follows_its_seed(call, small_run):
    def sample(seed):
        return call("translate", small_run, "--sample", "--seed", seed, "I like soccer").out

    assert sample(1) == sample(1)
    assert len({sample(seed) for seed in range(5)}) > 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--beam", "0", "x"], "beam"),
        (["--nbest", "9", "x"], "nbest=9"),
        (["--temperature", "0.5", "x"], "sample"),
        (["--input", "nowhere.txt"], "nowhere.txt"),
        (["--input", "nowhere.txt", "x"], "--input"),
        (["--bean", "5", "x"], "--beam"),
        (["--device", "abacus", "x"], "abacus"),
        (["--workers", "0", "x"], "workers"),
        (["--ray", "local"], "--input"),
        (["--output", "nowhere/out.txt", "x"], "nowhere"),
    ],
)
def test_wrong_options_are_one_clear_line(call, small_run, arguments, said):
    done = call("translate", small_run, *arguments)
    assert done.code == 2
    assert done.out == ""
    assert said in done.err
    assert done.err.count("\n") == 1
    assert "Traceback" not in done.err


def test_a_folder_that_is_no_run(call, tmp_path):
    for folder in (tmp_path, tmp_path / "nowhere"):
        done = call("translate", folder, "x")
        assert done.code == 2
        assert str(folder) in done.err
        assert done.err.count("\n") == 1
