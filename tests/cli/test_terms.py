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
def test_translate_uses_terms_and_reports_them_in_jsonl(engine, small_run, terms, capfd):
    arguments = [
        "translate",
        str(small_run),
        "I like soccer.",
        "She is happy.",
        "--engine",
        engine,
        "--format",
        "jsonl",
    ]
    assert run([*arguments, "--terms", terms]) == 0
    first, second = map(json.loads, capfd.readouterr().out.splitlines())
    assert "doctora" in first["translation"].lower()
    assert first["terms"] == [{"source": "soccer", "target": "doctora", "outcome": "used"}]
    assert second["terms"] == []
    assert run(arguments) == 0
    assert "terms" not in json.loads(capfd.readouterr().out.splitlines()[0])


def test_terms_reach_documents(small_run, terms, tmp_path):
    file, out = tmp_path / "a.txt", tmp_path / "b.txt"
    file.write_text("I like soccer.\n\n  She is happy.\n")
    assert run(["translate", str(small_run), str(file), "--output", str(out), "--terms", terms]) == 0
    lines = out.read_text().split("\n")
    assert "doctora" in lines[0].lower() and lines[1] == "" and lines[2].startswith("  ")


def test_an_interrupted_job_is_another_one_with_other_terms(small_run, terms, tmp_path):
    from translucid.decoding.decoding_options import DecodingOptions
    from translucid.jobs.job import TranslationJob

    job = TranslationJob(small_run, DecodingOptions(), terms=tmp_path / "terms.tsv")
    before = job.identity("cpu")
    (tmp_path / "terms.tsv").write_text("soccer\tfútbol\n", encoding="utf-8")
    assert job.identity("cpu") != before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--inflect-terms"], "The option --inflect-terms is now --terms-mode inflect."),
        (["--terms-mode", "constrain"], "--terms-mode is for --terms"),
        (["--terms", "nowhere.tsv"], "nowhere.tsv: can't be read"),
        (["--terms", "TERMS", "--terms-mode", "annotate"], "not trained with terms"),
        (["--terms", "TERMS", "--terms-mode", "inflect"], "names no language"),
        (["--terms", "TERMS", "--top-k", "3"], "draws nothing at random"),
    ],
)
def test_invalid_options_are_one_line(options, message, small_run, terms, capfd):
    names = {"TERMS": terms}
    options = [names.get(option, option) for option in options]
    assert run(["translate", str(small_run), "I like soccer.", *options]) == 2
    stderr = capfd.readouterr().err.strip()
    assert message in stderr and "\n" not in stderr


def test_evaluate_takes_the_same_options(small_run, corpus, capfd):
    arguments = ["evaluate", str(small_run), "--test", str(corpus / "test.tsv"), "--terms-mode", "inflect"]
    assert run(arguments) == 2 and "is for --terms" in capfd.readouterr().err


def test_evaluate_counts_terms_with_and_without(small_run, corpus, terms, tmp_path, capfd):
    lines = (corpus / "train.tsv").read_text(encoding="utf-8").splitlines()
    selected = [line for line in lines if "book" in line.split("\t")[0] or "soccer" in line][:8] + lines[:2]
    (tmp_path / "test.tsv").write_text("\n".join(selected), encoding="utf-8")
    arguments = ["evaluate", str(small_run), "--test", str(tmp_path / "test.tsv"), "--no-perplexity", "--terms", terms]
    assert run([*arguments, "--json"]) == 0
    report = json.loads(capfd.readouterr().out)["terms"]
    assert report["constrained"]["asked"] == report["unconstrained"]["asked"] > 0
    assert report["constrained"]["used"] > report["unconstrained"]["used"]
    assert report["constrained"]["missing"] == report["constrained"]["asked"] - report["constrained"]["used"]
    assert run(arguments) == 0
    assert "unconstrained" in capfd.readouterr().out
