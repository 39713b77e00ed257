"""`--terms` of translate and evaluate."""

import json

import pytest

from translucid.cli.main import run


@pytest.fixture
def terms(tmp_path):
    file = tmp_path / "terms.tsv"
    file.write_text("soccer\tdoctora\nbook\tlibro\tnoun\n", encoding="utf-8")
    return str(file)


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_translate_uses_terms_and_tells_of_them_in_jsonl(engine, small_run, terms, capfd):
    given = ["translate", str(small_run), "I like soccer.", "She is happy.", "--engine", engine, "--format", "jsonl"]
    assert run([*given, "--terms", terms]) == 0
    first, second = map(json.loads, capfd.readouterr().out.splitlines())
    assert "doctora" in first["translation"].lower()
    assert first["terms"] == [{"source": "soccer", "target": "doctora", "outcome": "used"}]
    assert second["terms"] == []
    assert run(given) == 0
    assert "terms" not in json.loads(capfd.readouterr().out.splitlines()[0])


def test_terms_reach_documents(small_run, terms, tmp_path):
    file, out = tmp_path / "a.txt", tmp_path / "b.txt"
    file.write_text("I like soccer.\n\n  She is happy.\n")
    assert run(["translate", str(small_run), str(file), "--output", str(out), "--terms", terms]) == 0
    lines = out.read_text().split("\n")
    assert "doctora" in lines[0].lower() and lines[1] == "" and lines[2].startswith("  ")


def test_an_interrupted_job_is_another_one_with_other_terms(small_run, terms, tmp_path):
    from translucid.decoding.decoding_options import DecodingOptions
    from translucid.jobs.job import Job

    job = Job(small_run, DecodingOptions(), terms=tmp_path / "terms.tsv")
    before = job.identity("cpu")
    (tmp_path / "terms.tsv").write_text("soccer\tfútbol\n", encoding="utf-8")
    assert job.identity("cpu") != before


@pytest.mark.parametrize(
    ("more", "what"),
    [
        (["--inflect-terms"], "--inflect-terms is for --terms"),
        (["--terms-mode", "constrain"], "--terms-mode is for --terms"),
        (["--terms", "nowhere.tsv"], "nowhere.tsv: can't be read"),
        (["--terms", "TERMS", "--terms-mode", "annotate"], "not trained with terms"),
        (["--terms", "TERMS", "--inflect-terms"], "names no language"),
        (["--terms", "TERMS", "--sample"], "draws nothing at random"),
    ],
)
def test_what_can_not_be_is_said_in_one_line(more, what, small_run, terms, capfd):
    more = [terms if each == "TERMS" else each for each in more]
    assert run(["translate", str(small_run), "I like soccer.", *more]) == 2
    said = capfd.readouterr().err.strip()
    assert what in said and "\n" not in said


def test_evaluate_takes_the_same_options(small_run, corpus, capfd):
    given = ["evaluate", str(small_run), "--test", str(corpus / "test.tsv"), "--inflect-terms"]
    assert run(given) == 2 and "is for --terms" in capfd.readouterr().err


def test_evaluate_counts_terms_with_and_without(small_run, corpus, terms, tmp_path, capfd):
    lines = (corpus / "train.tsv").read_text(encoding="utf-8").splitlines()
    chosen = [line for line in lines if "book" in line.split("\t")[0] or "soccer" in line][:8] + lines[:2]
    (tmp_path / "test.tsv").write_text("\n".join(chosen), encoding="utf-8")
    given = ["evaluate", str(small_run), "--test", str(tmp_path / "test.tsv"), "--no-perplexity", "--terms", terms]
    assert run([*given, "--json"]) == 0
    found = json.loads(capfd.readouterr().out)["terms"]
    assert found["constrained"]["asked"] == found["unconstrained"]["asked"] > 0
    assert found["constrained"]["used"] > found["unconstrained"]["used"]
    assert found["constrained"]["missing"] == found["constrained"]["asked"] - found["constrained"]["used"]
    assert run(given) == 0
    assert "unconstrained" in capfd.readouterr().out
