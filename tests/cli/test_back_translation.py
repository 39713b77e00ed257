"""`translucid data back-translate`, and training on the synthetic pairs that it writes."""

import gzip
import itertools
import json

import pytest
import torch

from translucid.cli.main import run
from translucid.corpora.phrasebook import generate
from translucid.data.readers.corpus import read_pairs
from translucid.data.stores.store import CorpusStore
from translucid.runs.run_folder import RunFolder
from translucid.runs.tensor_file import load_tensors

from ..conftest import SHAPE

LIMITS = ["training.max_steps=20", "training.validate_every=10"]
GREEDY = ["--beam", "1", "--engine", "torch", "--no-repeat-ngram", "1", "--max-length-ratio", "1"]
TEXT = [phrase.target for phrase in generate(12, split="valid", max_words=8)]


@pytest.fixture(scope="module")
def reverse_run(corpus, tmp_path_factory):
    """A run from Spanish to English, trained on files that hold English first."""
    folder = tmp_path_factory.mktemp("runs") / "reverse"
    files = ["--train", corpus / "train.tsv", "--valid", corpus / "test.tsv", "--out", folder]
    settings = ["--no-tune", "--set", *SHAPE, *LIMITS, "data.reverse=true"]
    assert run([str(word) for word in ["train", *files, *settings]]) == 0
    return folder


def encoded(line):
    return line.encode() if isinstance(line, str) else line


@pytest.fixture
def back_translate(call, reverse_run, tmp_path):
    """Call the command on lines: back_translate(lines, "--temperature", 1) returns its result and the pairs."""

    def run_command(lines, *options, name="text.txt", out=tmp_path / "synthetic.tsv"):
        content = b"".join(encoded(line) + b"\n" for line in lines)
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        result = call("data", "back-translate", reverse_run, "--text", tmp_path / name, "--out", out, *GREEDY, *options)
        return result, list(read_pairs(out)) if out.exists() and out.stat().st_size else []

    return run_command


def test_a_pair_is_a_translation_and_its_line(call, back_translate, reverse_run):
    result, pairs = back_translate(TEXT)
    assert result.code == 0, result.err
    assert [pair.target for pair in pairs] == TEXT
    assert f"{len(TEXT)} synthetic pairs\n" in result.err
    translated = call("translate", reverse_run, *GREEDY, stdin="\n".join(TEXT).encode()).out
    assert [pair.source for pair in pairs] == translated.splitlines()


def test_packed_text_sampling_and_workers_give_pairs_too(back_translate, forked_workers, tmp_path):
    _, greedy = back_translate(TEXT)
    result, packed = back_translate(TEXT, "--workers", 2, name="text.txt.gz", out=tmp_path / "packed.tsv")
    assert result.code == 0 and packed == greedy
    _, sampled = back_translate(TEXT, "--top-k", 5, out=tmp_path / "drawn.tsv")
    assert [pair.target for pair in sampled] == TEXT
    assert [pair.source for pair in sampled] != [pair.source for pair in greedy]


def test_lines_that_make_no_pair_are_left_out_and_counted(back_translate):
    lines = ["\ufeff" + TEXT[0], "", "  ", "ven " * 600, b"ca\xf1a", b"a\0b", TEXT[1] + "\tque", TEXT[0]]
    result, pairs = back_translate(lines, "--skip-bad")
    assert result.code == 0, result.err
    assert [pair.target for pair in pairs] == [TEXT[0], TEXT[1] + " que", TEXT[0]]
    assert "3 synthetic pairs; left out 5 of 8 lines: 2 empty, 2 unreadable, 1 too long" in result.err
    failure, pairs_after = back_translate(lines, "--overwrite")
    assert failure.code == 2 and pairs_after == pairs
    assert "2 lines are not UTF-8" in failure.err and "--skip-bad" in failure.err


def test_an_empty_translation_and_one_that_loops_make_no_pair(back_translate, monkeypatch):
    from translucid.api.translator import Translator

    texts = itertools.cycle(["", "go go go go go", "x" * 500, "I go."])
    stream = Translator.stream

    def poor_translations(self, *args, **kwargs):
        for translation in stream(self, *args, **kwargs):
            text = next(texts)
            yield type(
                "Poor", (), {"text": text, "warnings": ["repeated: go"] * text.startswith("go"), "of": translation}
            )

    monkeypatch.setattr(Translator, "stream", poor_translations)
    result, pairs = back_translate(TEXT)
    assert {pair.source for pair in pairs} == {"I go."} and len(pairs) == 3
    assert "left out 9 of 12 lines" in result.err
    assert all(f"3 {kind}" in result.err for kind in ("empty", "repeated", "unequal"))


def test_the_same_source_of_two_texts_gives_two_pairs(back_translate, monkeypatch):
    same = "the same words"
    monkeypatch.setattr("translucid.jobs.back_translating._cell", lambda text: text if text in TEXT else same)
    _, pairs = back_translate(TEXT[:2])
    assert pairs == [(same, TEXT[0]), (same, TEXT[1])]


@pytest.mark.parametrize("name", ["text.txt.gz"])
def test_an_interrupted_job_resumes_and_writes_the_same_file(back_translate, tmp_path, monkeypatch, name):
    from translucid.jobs.back_translating import BackTranslationJob

    monkeypatch.setattr("translucid.api.translator.WINDOW", 3)
    monkeypatch.setattr("translucid.jobs.job.TranslationJob.window", 3)
    lines = [*TEXT[:4], "", *TEXT[4:]]
    _, expected = back_translate(lines, "--temperature", 1, out=tmp_path / "whole.tsv")
    work, starts = BackTranslationJob.work, []

    def interrupted_work(self, models, window):
        starts.append(window.before.lines)
        if len(starts) == 3:
            raise KeyboardInterrupt
        return work(self, models, window)

    monkeypatch.setattr(BackTranslationJob, "work", interrupted_work)
    result, pairs = back_translate(lines, "--temperature", 1, name=name)
    assert result.code == 130 and not pairs and "stopped after line 6" in result.err
    result, pairs = back_translate(lines, "--temperature", 1, name=name)
    assert "continued after line 6" in result.err
    assert starts == [0, 3, 6, 6, 9, 12]
    assert pairs == expected
    assert "left out 1 of 13 lines: 1 empty" in result.err
    assert not list(tmp_path.glob("*part*"))


def test_errors_are_one_line(call, back_translate, reverse_run, tmp_path):
    (tmp_path / "torn.txt.gz").write_bytes(gzip.compress(b"una casa\n" * 5000)[:-20])
    (tmp_path / "text.txt").write_text("una casa\n")
    (tmp_path / "blank.txt").write_text("\n\n")
    (tmp_path / "there.tsv").write_text("a\tb\n")
    for text, out, options, message in (
        ("nowhere.txt", "out.tsv", [], "nowhere.txt"),
        ("torn.txt.gz", "out.tsv", [], "damaged or not gzip"),
        ("blank.txt", "none.tsv", [], "no pair at all"),
        ("text.tsv", "out.tsv", [], "running text"),
        ("text.txt", "out.txt", [], ".tsv"),
        ("text.txt", "there.tsv", [], "--overwrite"),
        ("text.txt", "out2.tsv", ["--beam", "0"], "beam"),
        ("text.txt", "out2.tsv", ["--temperature", "-1"], "temperature"),
    ):
        result = call(
            "data", "back-translate", reverse_run, "--text", tmp_path / text, "--out", tmp_path / out, *options
        )
        assert result.code == 2, (text, result.err)
        errors = [line for line in result.err.splitlines() if not line.startswith("0 synthetic")]
        assert len(errors) == 1 and message in errors[0], result.err
    assert call("data", "back-translate", tmp_path, "--text", tmp_path / "text.txt", "--out", "o.tsv").code == 2


def test_the_whole_way_from_few_pairs_to_a_translator_of_the_mix(call, back_translate, corpus, tmp_path):
    _, pairs = back_translate(TEXT * 4)
    files = ["--train", corpus / "train.tsv", "--synthetic", tmp_path / "synthetic.tsv", "--valid", corpus / "test.tsv"]
    settings = [*SHAPE, *LIMITS, "data.weights=[1,3]", "data.subword_dropout=0.1"]
    result = call("train", *files, "--out", tmp_path / "run", "--no-tune", "--set", *settings)
    assert result.code == 0, result.err
    assert f"{300 + len(pairs)} pairs" in result.err
    folder = RunFolder(tmp_path / "run")
    tag = folder.tokenizer().tag
    assert tag is not None
    assert tag not in folder.tokenizer().encode_source(["<bt> I like soccer<bt>"])[0]
    header = (folder.corpus_folder / "index.jsonl").read_text().splitlines()[0]
    stored = CorpusStore(folder.corpus_folder).open(json.loads(header)["identity"])
    tagged = [stored.pairs.source(i)[0] == tag for i in range(len(stored.pairs))]
    assert tagged == [False] * 300 + [True] * len(pairs)
    assert call("translate", tmp_path / "run", "I like soccer").code == 0
    assert call("train", "--resume", "--out", tmp_path / "run", "--no-tune", "--set", "training.max_steps=22").code == 0


def test_the_other_way_round_sources_are_targets_everywhere(call, corpus, reverse_run, tmp_path):
    for name in ("train", "test"):
        lines = [f"{pair.target}\t{pair.source}\n" for pair in read_pairs(corpus / f"{name}.tsv")]
        (tmp_path / f"{name}.tsv").write_text("".join(lines))
    files = ["--train", tmp_path / "train.tsv", "--valid", tmp_path / "test.tsv", "--out", tmp_path / "run"]
    assert call("train", *files, "--no-tune", "--set", *SHAPE, *LIMITS).code == 0
    reversed_tensors, swapped_tensors = (
        load_tensors(folder / "model.safetensors")[0] for folder in (reverse_run, tmp_path / "run")
    )
    assert all(
        torch.equal(reversed_tensors[name], swapped_tensors[name]) for name in reversed_tensors | swapped_tensors
    )
    reports = []
    for folder, test in ((reverse_run, corpus / "test.tsv"), (tmp_path / "run", tmp_path / "test.tsv")):
        result = call("evaluate", folder, "--test", test, "--json", "--beam", "1")
        assert result.code == 0, result.err
        reports.append({key: value for key, value in json.loads(result.out).items() if key != "seconds"})
    assert reports[0] == reports[1]
    aligned = call("align", reverse_run, "--pairs", corpus / "test.tsv").out
    assert aligned == call("align", tmp_path / "run", "--pairs", tmp_path / "test.tsv").out
    failure = call("train", "--resume", "--out", reverse_run, "--set", "data.reverse=false")
    assert failure.code == 2 and "data.reverse" in failure.err


def test_a_run_gets_the_tag_that_it_lacks_unless_it_only_gets_adapters(call, corpus, small_run, tmp_path):
    files = ["--train", corpus / "train.tsv", "--synthetic", corpus / "test.tsv", "--out", tmp_path / "run"]
    command = ["train", *files, "--init-from", small_run, "--no-tune", "--set", *LIMITS]
    result = call(*command, "training.adapter_rank=2")
    assert result.code == 2 and "no tag" in result.err and result.err.strip().count("\n") == 0
    assert not (tmp_path / "run").exists()
    result = call(*command)
    assert result.code == 0, result.err
    before, after = RunFolder(small_run).tokenizer(), RunFolder(tmp_path / "run").tokenizer()
    assert before.tag is None and after.tag == before.source_size
    assert after.encode_source(TEXT) == before.encode_source(TEXT)


def test_target_text_is_learned_from_an_empty_source(call, corpus, tmp_path):
    (tmp_path / "es.txt").write_text("".join(f"{line}\n" for line in TEXT), encoding="utf-8")
    files = ["--train", corpus / "train.tsv", "--valid", corpus / "test.tsv", "--target-text", tmp_path / "es.txt"]
    settings = [*SHAPE, *LIMITS, "data.weights=[1,2]"]
    for number, overrides in enumerate(([], ["data.subword_dropout=0.1"])):
        out = tmp_path / f"run{number}"
        result = call("train", *files, "--out", out, "--no-tune", "--set", *settings, *overrides)
        assert result.code == 0, result.err
        assert f"{300 + len(TEXT)} pairs; none skipped" in result.err
    folder = RunFolder(tmp_path / "run0")
    header = (folder.corpus_folder / "index.jsonl").read_text().splitlines()[0]
    stored = CorpusStore(folder.corpus_folder).open(json.loads(header)["identity"])
    assert stored.sizes == [300, len(TEXT)]
    assert [stored.pairs.source(i).tolist() for i in range(300, len(stored.pairs))] == [[3]] * len(TEXT)
    assert folder.tokenizer().decode(stored.pairs.target(300)) == TEXT[0]


@pytest.mark.parametrize("setting", ["data.reverse=true", "data.synthetic=[a.tsv]", "data.target_text=[a.txt]"])
@pytest.mark.parametrize("model", ["lm-lstm", "classifier", "caption-soft"])
def test_only_translators_accept_synthetic_pairs(call, tmp_path, setting, model):
    result = call("train", "--model", model, "--train", "a.tsv", "--out", tmp_path / "run", "--set", setting)
    assert result.code == 2 and "is for sentence pairs" in result.err
