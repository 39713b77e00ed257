"""The commands that report which test sentences were in the training text."""

import json
import shutil

import pytest

from translucid.data.seen_sentences import SEEN


def test_overlap_of_files(call, corpus, tmp_path):
    lines = (corpus / "train.tsv").read_text(encoding="utf-8").splitlines()
    source, _, target = lines[2].partition("\t")
    (tmp_path / "test.tsv").write_text(f"{lines[0]}\n{source} again\tnada\n", encoding="utf-8")
    files = corpus / "train.tsv", tmp_path / "test.tsv"
    report = json.loads(call("data", "overlap", *files, "--json").out)
    assert report["equal_pairs"] == report["sources"]["equal"] == 1
    assert report["sources"]["within_words"] == {"0": 1, "1": 2, "2": 2}
    assert report["sources"]["hits"][1] == {"line": 2, "equal": False, "distance": 1, "train_line": 3}
    shown = call("data", "overlap", *files)
    assert shown.code == 0 and "1 of 2 pairs are in the training text" in shown.out
    # What it finds, cleaning removes, also in other case.
    (tmp_path / "train.tsv").write_text(f"{source.upper()}\t{target}\n{lines[5]}\n", encoding="utf-8")
    (tmp_path / "test.tsv").write_text(lines[2] + "\n", encoding="utf-8")
    without = ["--without", "language", "untranslated"]
    call("data", "clean", tmp_path / "train.tsv", "--out", tmp_path / "o.tsv", "--exclude", files[1], *without)
    assert (tmp_path / "o.tsv").read_text(encoding="utf-8") == lines[5] + "\n"


@pytest.fixture(scope="module")
def mixed(corpus, tmp_path_factory):
    """Two pairs of the training text in other case, and 18 of the test set."""
    file = tmp_path_factory.mktemp("files") / "mixed.tsv"
    seen = (corpus / "train.tsv").read_text(encoding="utf-8").splitlines()[:2]
    unseen = (corpus / "test.tsv").read_text(encoding="utf-8").splitlines()[2:]
    file.write_text("".join(f"{line}\n" for line in [*map(str.upper, seen), *unseen]), encoding="utf-8")
    return file


def test_evaluate_and_score_report_it(call, small_run, mixed, corpus, tmp_path):
    line = "2 of 20 sources, 2 of 20 references, 2 of 20 pairs were in the training text; "
    shown = call("evaluate", small_run, "--test", mixed, "--no-perplexity", "--beam", 1).out
    assert line + "BLEU of the others " in shown and "(18 pairs); false reports expected by chance: 0.000" in shown
    files = [tmp_path / "others.tsv", "--no-perplexity", "--beam", 1, "--json"]
    files[0].write_text("".join(mixed.read_text(encoding="utf-8").splitlines(keepends=True)[2:]), encoding="utf-8")
    others = json.loads(call("evaluate", small_run, "--test", *files).out)
    result = call("evaluate", small_run, "--test", mixed, *files[1:])
    seen = json.loads(result.out)["seen"]
    assert seen["BLEU_of_others"] == others["BLEU"]["value"] and others["seen"]["source"] == 0
    assert seen["lines"]["source"] == seen["lines"]["pair"] == [1, 2] and seen["complete"]
    assert line in result.err
    result = call("score", small_run, mixed, "--format", "jsonl")
    rows = [json.loads(row) for row in result.out.splitlines()]
    assert [row["seen"]["pair"] for row in rows] == [True] * 2 + [False] * 18
    assert line + "perplexity of the others " in result.err
    assert (
        f"{json.loads(call('evaluate', small_run, '--test', files[0], '--json').out)['perplexity']:.2f}" in result.err
    )
    (tmp_path / "all.tsv").write_bytes((corpus / "train.tsv").read_bytes())
    assert (
        "300 of 300 sources, 300 of 300 references, 300 of 300 pairs"
        in call("score", small_run, tmp_path / "all.tsv").err
    )


def test_compare_scores_what_no_system_has_seen(call, small_run, mixed, tmp_path):
    unknown = shutil.copytree(small_run, tmp_path / "unknown")
    (unknown / SEEN).unlink()
    arguments = ["--test", mixed, "--beam", 1, "--no-significance"]
    result = call("compare", small_run, unknown, *arguments, "--json")
    report = json.loads(result.out)["seen"]
    assert report[str(unknown)] == "unknown" and report[str(small_run)]["pair"] == 2
    assert f"{unknown}: unknown which sentences were in the training text" in result.err
    assert f"{small_run}: 2 of 20 sources" in call("compare", small_run, unknown, *arguments).out
    assert "unknown which sentences" in call("evaluate", unknown, "--test", mixed, "--beam", 1).out
    (unknown / SEEN).write_bytes(b"TRLSEEN1")
    result = call("evaluate", unknown, "--test", mixed)
    assert result.code == 2 and "damaged" in result.err and result.err.count("\n") <= 2


def test_both_directions_have_an_index(call, multilingual_run, corpus, tmp_path):
    file = tmp_path / "some.tsv"
    file.write_text("".join((corpus / "train.tsv").read_text(encoding="utf-8").splitlines(keepends=True)[:5]))
    seen = json.loads(call("evaluate", multilingual_run, "--test", f"{file}:en-es", "--json").out)["directions"]
    for direction in ("en-es", "es-en"):
        report = seen[direction]["seen"]
        assert report["source"] == report["reference"] == report["pair"] == 5


def test_an_index_can_be_left_out(call, corpus, tmp_path):
    from tests.conftest import SHAPE

    files = ["--train", corpus / "train.tsv", "--valid", corpus / "test.tsv", "--out", tmp_path / "run"]
    assert call("train", *files, "--no-tune", "--no-seen-index", "--set", *SHAPE, "training.max_steps=1").code == 0
    assert not (tmp_path / "run" / SEEN).exists()
    assert "seen_index: false" in (tmp_path / "run" / "config.yaml").read_text()
