"""`translucid translate`: one line in, one line out."""

import json

import pytest


def test_a_text_gives_one_line(call, small_run):
    result = call("translate", small_run, "I like soccer")
    assert result.code == 0
    assert result.out.count("\n") == 1
    assert result.out.strip()


def test_behind_two_dashes_nothing_is_an_option(call, small_run):
    texts = ["--debug", "--set", "a", "b"]
    result = call("translate", small_run, "--", *texts)
    assert result.code == 0
    assert result.out.split("\n")[:4] == [call("translate", small_run, stdin=text.encode()).out[:-1] for text in texts]


def test_every_line_gets_its_line_in_order_and_empty_lines_stay_empty(call, small_run):
    lines = ["I like soccer.", "", "She works.", "   ", "I like soccer."]
    result = call("translate", small_run, stdin=("\n".join(lines) + "\n").encode())
    out = result.out.split("\n")
    assert len(out) == len(lines) + 1
    assert out[1] == out[3] == ""
    assert out[0] == out[4] != ""


def test_lines_end_at_a_line_feed_and_nowhere_else(call, small_run):
    result = call("translate", small_run, stdin="one\u2028two\x0bthree\x85four\rfive\r\nsix".encode())
    assert result.out.count("\n") == 2


def test_a_line_that_is_not_utf8_still_gets_its_line_and_exit_code_2(call, small_run):
    result = call("translate", small_run, stdin=b"She works.\nca\xf1a\nShe works.\n")
    out = result.out.split("\n")
    assert result.code == 2
    assert len(out) == 4
    assert out[0] == out[2] != ""
    assert "line 2" in result.err
    assert "iconv" in result.err


def test_files_in_and_out_and_nothing_is_overwritten(call, small_run, tmp_path):
    (tmp_path / "in.txt").write_text("She works.\nI like soccer.\n")
    out = tmp_path / "out.txt"
    assert call("translate", small_run, "--input", tmp_path / "in.txt", "--output", out).code == 0
    first = out.read_text()
    assert first.count("\n") == 2
    failure = call("translate", small_run, "--input", tmp_path / "in.txt", "--output", out)
    assert failure.code == 2
    assert "--overwrite" in failure.err
    assert out.read_text() == first
    assert call("translate", small_run, "--input", tmp_path / "in.txt", "--output", out, "--overwrite").code == 0
    assert sorted(item.name for item in tmp_path.iterdir()) == ["in.txt", "out.txt"]


def test_jsonl_carries_scores_alternatives_and_alignments(call, small_run):
    result = call("translate", small_run, "--format", "jsonl", "--nbest", "3", "--alignments", "I like soccer")
    record = json.loads(result.out)
    assert record["source"] == "I like soccer"
    assert record["score"] <= 0
    assert len(record["alternatives"]) == 3
    assert record["alternatives"][0] == record["translation"]
    words = len(record["translation"].split())
    assert all(0 <= source < 3 and 0 <= target < words for source, target in record["alignment"])


def test_nbest_and_alignments_stay_on_one_line(call, small_run):
    result = call("translate", small_run, "--nbest", "2", "--alignments", "I like soccer")
    assert result.out.count("\n") == 1
    *texts, alignment = result.out.rstrip("\n").split("\t")
    assert len(texts) == 2
    assert all("-" in link for link in alignment.split())


def test_a_text_longer_than_training_is_translated_in_pieces_with_a_warning(call, small_run):
    long = "I like soccer and she works " * 120
    result = call("translate", small_run, "--beam", "1", long)
    assert result.code == 0
    assert result.out.count("\n") == 1
    assert "translated in pieces" in result.err


def test_sentences_of_a_line_give_what_they_give_alone(call, small_run):
    alone = [call("translate", small_run, text).out.strip() for text in ("I like soccer.", "She works.")]
    split = call("translate", small_run, "I like soccer. She works.")
    assert split.out.strip() == " ".join(alone)
    unsplit = call("translate", small_run, "--lines", "whole", "I like soccer. She works.")
    assert unsplit.code == 0
    assert unsplit.out != split.out


def test_sentences_go_on_over_wrapped_lines(call, small_run):
    text = "I like\n  soccer. She\n\nworks.\n"
    result = call("translate", small_run, "--lines", "wrapped", stdin=text.encode())
    assert result.code == 0
    lines = result.out.split("\n")
    assert len(lines) == 5
    assert lines[1][:2] == "  "
    assert lines[2] == ""
    alone = [call("translate", small_run, part).out.strip() for part in ("I like soccer.", "She", "works.")]
    assert " ".join(" ".join(lines[:2]).split()) == " ".join(" ".join(alone[:2]).split())
    assert lines[3] == alone[2]


def test_what_looks_wrong_is_one_line_and_in_jsonl_one_of_each(call, small_run):
    lines = "I like soccer.\n足球\n%s\n足\n"
    result = call("translate", small_run, stdin=lines.encode())
    assert result.code == 0
    assert result.out.split("\n")[2] == "%s"
    assert result.err.count("\n") == 1
    assert "of 4 lines" in result.err
    assert "2 texts have characters that the model does not know: lines 2, 4." in result.err
    records = [
        json.loads(line)
        for line in call("translate", small_run, "--format", "jsonl", stdin=lines.encode()).out.splitlines()
    ]
    assert "unknown characters: 足 球" in records[1]["warnings"]
    assert records[2]["warnings"] == []
    single = call("translate", small_run, "足球")
    assert "unknown characters: 足 球" in single.err


def test_every_alternative_has_its_score_and_on_request_its_tokens(call, small_run):
    options = ("--format", "jsonl", "--nbest", "3")
    record = json.loads(call("translate", small_run, *options, "I like soccer. She works.").out)
    assert len(record["scores"]) == len(record["alternatives"]) == 3
    assert record["scores"] == sorted(record["scores"], reverse=True)
    assert record["score"] == record["scores"][0]
    assert "token_log_probabilities" not in record
    record_with_tokens = json.loads(
        call("translate", small_run, *options, "--format", "jsonl-tokens", "I like soccer").out
    )
    assert len(record_with_tokens["token_log_probabilities"]) == 3
    for tokens, text in zip(
        record_with_tokens["token_log_probabilities"], record_with_tokens["alternatives"], strict=True
    ):
        assert "".join(piece for piece, _ in tokens).replace("▁", " ").removesuffix("</s>").strip() == text
        assert all(value <= 0 for _, value in tokens)


def test_sampling_draws_other_numbers_for_each_line_of_every_window(call, small_run, monkeypatch):
    monkeypatch.setattr("translucid.api.translator.WINDOW", 3)
    arguments = ("translate", small_run, "--temperature", 1, "--engine", "torch")
    lines = call(*arguments, stdin=b"I like soccer\n" * 9).out.split("\n")[:9]
    assert len(set(lines)) > 3
    assert lines[:3] != lines[3:6] != lines[6:]
    assert call(*arguments, stdin=b"I like soccer\n" * 9).out.split("\n")[:9] == lines


@pytest.mark.parametrize(
    "name",
    ["film.ass", "memory.sdlxliff", "a.DOC", "table.fods", "data.jsonl", "text.txt.gz"],
)
def test_a_file_with_a_structure_is_refused_by_name(call, small_run, tmp_path, name):
    file = tmp_path / name
    file.write_text("I like soccer\n")
    result = call("translate", small_run, "--input", file)
    assert result.code == 2
    assert result.out == ""
    assert result.err.startswith(f"error: {file}: is ") and (
        "standard input" in result.err or "Save it as" in result.err
    )
    assert result.err.count("\n") == 1
    assert call("translate", small_run, stdin=file.read_bytes()).code == 0


def test_a_text_of_several_lines_is_one_line(call, small_run):
    result = call("translate", small_run, "--format", "jsonl", "I like soccer.\nShe works.")
    assert result.out.count("\n") == 1
    assert json.loads(result.out)["source"] == "I like soccer. She works."


def test_sampling_follows_its_seed(call, small_run):
    def sample(seed):
        return call("translate", small_run, "--top-p", 1, "--seed", seed, "I like soccer").out

    assert sample(1) == sample(1)
    assert len({sample(seed) for seed in range(5)}) > 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--beam", "0", "x"], "beam"),
        (["--nbest", "9", "x"], "nbest=9"),
        (["--temperature", "-1", "x"], "temperature"),
        (["--input", "nowhere.txt"], "nowhere.txt"),
        (["--input", "nowhere.txt", "x"], "--input"),
        (["--bean", "5", "x"], "--beam"),
        (["--device", "abacus", "x"], "abacus"),
        (["--workers", "0", "x"], "--workers '0' names no workers. Give a number, such as 4, or ray, ray:local or"),
        (["--workers", "0@ray", "x"], "names no workers"),
        (["--workers", "2@ray:local"], "a cluster translates a file. Give it with --input"),
        (["--output", "nowhere/out.txt", "x"], "nowhere"),
        (["--lines", "wrapped", "--nbest", "2", "x"], "--lines wrapped and --nbest do not go together"),
        (["--lines", "wrapped", "--format", "jsonl", "x"], "--lines wrapped and --format jsonl"),
        (["--wrapped", "x"], "The option --wrapped is now --lines wrapped."),
        (["--output", ".", "x"], ".: is a folder, not a file. Name a file; only documents go to a folder."),
    ],
)
def test_wrong_options_are_one_clear_line(call, small_run, arguments, message):
    result = call("translate", small_run, *arguments)
    assert result.code == 2
    assert result.out == ""
    assert message in result.err
    assert result.err.count("\n") == 1
    assert "Traceback" not in result.err


def test_a_folder_that_is_no_run(call, tmp_path):
    for folder in (tmp_path, tmp_path / "nowhere"):
        result = call("translate", folder, "x")
        assert result.code == 2
        assert str(folder) in result.err
        assert result.err.count("\n") == 1
