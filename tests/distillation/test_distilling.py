"""`translucid distill` on tiny models: the files that it writes and the input that it rejects."""

import gzip
import json
import shutil

import pytest

from tests.distillation.conftest import STUDENT
from translucid import Translator
from translucid.data.seen_sentences import (
    SEEN,
    SEEN_BEFORE,
    SeenSentences,
    SeenSentencesBuilder,
    hashes_of,
    learn_from_teachers,
)
from translucid.decoding.pair_scores import score_pairs
from translucid.distillation.report import Report
from translucid.distillation.request import Bounds, Request
from translucid.distillation.student import STUDENTS, chosen_preset, estimated_bytes
from translucid.distillation.training_pairs import nearest, write_sources
from translucid.runs.configuration import resolve
from translucid.runs.run_folder import RunFolder


def rows(file):
    return [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()]


def test_a_student_learns_from_what_the_teacher_writes(distill, teacher, files):
    outcome = distill("--text", files / "text.txt")
    assert outcome.code == 0, outcome.err
    decoded = rows(distill.folder / "decoded.tsv")
    translator = Translator.load(teacher, "cpu", "ctranslate2")
    with_references = [row for row in decoded if row[2]]
    expected = translator.translate([row[0] for row in with_references], split=False, nbest=3, beam=5)
    for row, translation in zip(with_references, expected, strict=True):
        assert row[1] == " ".join(nearest(translation.alternatives, row[2]).split())
    without_references = [row for row in decoded if not row[2]]
    assert len(without_references) == 6
    expected = translator.translate([row[0] for row in without_references], nbest=3)
    for row, translation in zip(without_references, expected, strict=True):
        assert row[1] == " ".join(translation.text.split())
    collected = json.loads((distill.folder / "translate.json").read_text())["results"]
    assert collected["pairs"]["removed"] == {"unreadable": 1, "duplicate": 1}
    assert collected["text"] == {"kept": 6, "removed": {"empty": 1, "unreadable": 1}}
    assert "3 of 3: training the student" in outcome.err
    student = RunFolder(distill.out).configuration()
    assert student.data.train[0] == str(distill.folder / "distilled.tsv")
    assert Translator.load(distill.out, "cpu").translate("I like soccer").text is not None
    assert student.training.guided_alignment == 0.1
    pairs = [row[:2] for row in rows(distill.folder / "distilled.tsv")]
    seen = SeenSentences.of_run(distill.out)
    assert all(sides.pair for sides in seen.look_up(pairs).sides)
    # What the teacher has seen stays in a file of its own.
    (known,) = (distill.out / SEEN_BEFORE).iterdir()
    assert known.read_bytes() == (teacher / SEEN).read_bytes() and seen.complete


def test_the_index_of_a_student_of_an_unknown_teacher_is_incomplete(tmp_path):
    run, teacher = tmp_path / "student", tmp_path / "teacher"
    run.mkdir()
    learn_from_teachers(run, [teacher])
    assert not any(run.iterdir())  # the student has no index
    builder = SeenSentencesBuilder()
    builder.add(hashes_of(["one"]), hashes_of(["uno"]))
    builder.write(run, "digest")
    learn_from_teachers(run, [teacher])
    seen = SeenSentences.of_run(run)
    assert not seen.complete and seen.look_up([("One", "uno")]).sides[0].pair


def test_a_repeated_command_does_nothing_again_and_other_inputs_are_refused(distill, files):
    assert distill().code == 0
    before = {file.name: file.stat().st_mtime_ns for file in distill.folder.iterdir() if file.suffix != ".json"}
    model = RunFolder(distill.out).model_digest()
    repeated = distill()
    assert repeated.code == 0 and repeated.err.count("done before") == 3
    assert before == {file.name: file.stat().st_mtime_ns for file in distill.folder.iterdir() if file.suffix != ".json"}
    refused = distill("--choose", "best")
    assert refused.code == 2 and "stage 1 of 3: translating was begun with other inputs" in refused.err
    refused = distill("--no-references")
    assert refused.code == 2 and "stage 2 of 3: filtering" in refused.err
    refused = distill(settings=["training.seed=2"])
    assert refused.code == 2 and "training.seed was 1 and is 2" in refused.err
    replaced = distill("--overwrite", settings=["training.seed=2"])
    assert replaced.code == 0 and replaced.err.count("done before") == 2
    assert RunFolder(distill.out).model_digest() != model


def test_a_reverse_run_translates_text_back_and_scores_translations(distill, files, reverse_run):
    outcome = distill("--target-text", files / "target.txt", "--reverse", f"{reverse_run}:0.2")
    assert outcome.code == 0, outcome.err
    synthetic = rows(distill.folder / "synthetic.tsv")
    assert {tuple(row) for row in synthetic} <= {(row[0], row[2]) for row in rows(distill.folder / "decoded.tsv")}
    clean = rows(distill.folder / "clean.tsv")
    reverse = Translator.load(reverse_run, "cpu", "torch")
    pairs = [(target, source) for source, target in clean]
    scores = score_pairs(reverse.model, reverse.pipeline, pairs, reverse.device)
    expected = [-score.log_probability / len(score.tokens) for score in scores]
    scores_written = list(map(float, (distill.folder / "scores.txt").read_text().split()))
    assert scores_written == pytest.approx(expected, abs=1e-4)
    removed = int(0.2 * len(clean))
    counts = json.loads((distill.folder / "filter.json").read_text())["results"]["distilled"]
    assert counts["removed"]["reverse-score"] == removed
    assert len(rows(distill.folder / "distilled.tsv")) == counts["kept"] == len(clean) - removed


@pytest.mark.parametrize("choice", ["mbr:3", "sample"])
def test_other_choices_write_the_same_each_time(distill, choice, teacher, tmp_path):
    outcome = distill("--choose", choice, "--engine", "torch")
    assert outcome.code == 0, outcome.err
    first = (distill.folder / "decoded.tsv").read_text()
    (distill.folder / "decoded.tsv").unlink()
    assert distill("--choose", choice, "--engine", "torch", "--overwrite").code == 0
    assert (distill.folder / "decoded.tsv").read_text() == first


def test_an_ensemble_packed_text_and_held_out_pairs(distill, call, teacher, files, tmp_path):
    packed = tmp_path / "text.txt.gz"
    packed.write_bytes(gzip.compress((files / "text.txt").read_bytes()))
    out = tmp_path / "other"
    arguments = ["--pairs", files / "pairs.tsv", "--text", packed, "--out", out, "--choose", "best", "--beam", 1]
    arguments += ["--skip", "align", "--skip", "report"]
    outcome = call("distill", teacher, teacher, *arguments, "--set", "training.max_steps=1", "model.width=16")
    assert outcome.code == 0, outcome.err
    assert not RunFolder(out).configuration().training.guided_alignment
    valid = {row[0] for row in rows(out / "distillation" / "valid.tsv")}
    assert valid and not valid & {row[0] for row in rows(out / "distillation" / "decoded.tsv")}


def test_a_student_with_the_vocabulary_and_the_probabilities_of_its_teachers(distill, teacher, reverse_run, files):
    settings = [setting for setting in STUDENT if not setting.startswith("data.tokenizer")]
    outcome = distill("--vocabulary", "teacher:0.5", teachers=(teacher, teacher), student=settings)
    assert outcome.code == 0, outcome.err
    assert RunFolder(distill.out).tokenizer().fingerprint == RunFolder(teacher).tokenizer().fingerprint
    digest = RunFolder(distill.out).model_digest()
    changed = distill("--vocabulary", "teacher", "--overwrite", teachers=(teacher, teacher), student=settings)
    assert changed.code == 0 and RunFolder(distill.out).model_digest() != digest
    refused = distill("--vocabulary", "teacher")
    assert refused.code == 2 and "the vocabulary of the teacher can't be changed" in refused.err


@pytest.fixture
def quick_report(monkeypatch):
    """Measure few sentences, once; return the list of calls."""
    measure, calls = Report.measure, []

    def measure_few(self, test=None, **options):
        calls.append(test)
        return measure(self, test, sentences=4, rounds=1, seconds=0.001, **options)

    monkeypatch.setattr(Report, "measure", measure_few)
    return calls


def test_teacher_and_student_are_measured_and_the_fastest_way_is_kept(distill, files, quick_report):
    outcome = distill("--test", files / "valid.tsv", "--limit", "1GB", report=True)
    assert outcome.code == 0, outcome.err
    assert quick_report == [[str(distill.folder / "test.tsv")]]
    assert "is translated by student" in outcome.err
    assert (distill.out / "tuned.json").exists()
    page = (distill.folder / "report.md").read_text()
    assert "60 pairs; skipped 2: 1 duplicate, 1 unreadable" in page and "distilled pairs" in page
    assert "| teacher, " in page and "| student, int8 |" in page
    checked = json.loads((distill.folder / "int8.json").read_text())["results"]
    assert "float32" in checked["before"] and "with float32" in outcome.err
    # The record of the stage is stored separately from the figures.
    assert len(json.loads((distill.folder / "report.json").read_text())["systems"]) == 12
    repeated = distill("--test", files / "valid.tsv", "--limit", "1GB", report=True)
    assert repeated.code == 0 and repeated.err.count("done before") == 5 and len(quick_report) == 1
    bounded = distill("--test", files / "valid.tsv", "--limit", "1KB", report=True)
    assert bounded.code == 0 and "warning: no student is within 0.001 MB" in bounded.err and len(quick_report) == 2


def test_the_preset_is_the_largest_for_the_data_within_the_bound(teacher, tmp_path):
    def chosen(pairs, size=None, **options):
        request = Request((teacher,), tmp_path, bounds=Bounds.of(*filter(None, [size])), **options)
        return chosen_preset(request, pairs)

    assert chosen(100) == chosen(10**7, "1KB") == [*STUDENTS][-1]
    assert chosen(10**7) == next(iter(STUDENTS))
    assert chosen(10**7, preset="demo") == "demo" and chosen(10**7, config=tmp_path / "x.yaml") is None
    sizes = [estimated_bytes(resolve(preset=name)) for name in STUDENTS]
    assert sizes == sorted(sizes, reverse=True)
    assert chosen(10**7, f"{sizes[1] / 1e6 + 0.01:.3f}MB") == [*STUDENTS][1]


REFUSED = {
    "nothing to translate": ([], "nothing that the teacher could translate"),
    "no validation": (["--text", "text.txt"], "no pairs to validate"),
    "standard input": (["--pairs", "-"], "can't be read twice"),
    "target text alone": (["--pairs", "pairs.tsv", "--target-text", "target.txt"], "--reverse RUN"),
    "no file": (["--pairs", "none.tsv"], "can't be read"),
    "one side": (["--pairs", "text.en"], "its partner is missing"),
    "blank text": (["--text", "blank.txt", "--valid", "valid.tsv"], "nothing is left to translate"),
    "wrong size": (["--pairs", "pairs.tsv", "--limit", "ten"], "is not a positive number with a unit"),
    "other directions": (
        ["--pairs", "pairs.tsv:en-es", "--valid", "valid.tsv:es-en"],
        "the files have several directions",
    ),
    "wrong setting": (["--pairs", "pairs.tsv", "--set", "model.widht=3"], "Did you mean"),
    "two presets": (["--pairs", "pairs.tsv", "--student", "tiny", "--student", "small"], "one preset, not tiny and"),
    "no file of settings": (["--pairs", "pairs.tsv", "--student", "none.yaml"], "is neither a file nor a built-in"),
    "no such choice": (["--pairs", "pairs.tsv", "--choose", "best:3"], "is none of nearest:N, best, mbr:N and sample"),
    "no hypotheses": (["--pairs", "pairs.tsv", "--choose", "mbr:0"], "chooses among too few"),
    "wrong vocabulary": (["--pairs", "pairs.tsv", "--vocabulary", "own:0.5"], "is none of own, teacher"),
    "too large a share": (["--pairs", "pairs.tsv", "--vocabulary", "teacher:1.5"], "is not from 0 to 1"),
    "no such preset": (["--pairs", "pairs.tsv", "--student", "studnet-demo"], "Did you mean 'student-demo'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_input_is_one_line_and_leaves_nothing(call, files, teacher, tmp_path, monkeypatch, case):
    arguments, message = REFUSED[case]
    monkeypatch.chdir(files)
    (files / "blank.txt").write_text("\n  \n")
    outcome = call("distill", teacher, *arguments, "--out", tmp_path / "student")
    assert outcome.code == 2 and message in outcome.err
    assert len([line for line in outcome.err.splitlines() if line.startswith("error")]) <= 1
    assert not (tmp_path / "student" / "config.yaml").exists()


def test_pairs_of_the_other_direction_and_a_choice_of_languages(call, files, corpus, teacher, tmp_path):
    from tests.probes.foreign import many_languages_folder

    out = tmp_path / "student"
    run_with_languages = tmp_path / "known"
    shutil.copytree(teacher, run_with_languages)
    settings = (run_with_languages / "config.yaml").read_text().replace("source_language: null", "source_language: en")
    (run_with_languages / "config.yaml").write_text(settings.replace("target_language: null", "target_language: es"))
    swapped = tmp_path / "swapped.tsv"
    swapped.write_text("".join(f"{target}\t{source}\n" for source, target in rows(corpus / "train.tsv")))
    outcome = call("distill", run_with_languages, "--pairs", swapped, "--valid", files / "valid.tsv", "--out", out)
    assert outcome.code == 2 and "looks like es first, and the teacher translates from en to es" in outcome.err
    other = ["--pairs", f"{swapped}:es-en", "--valid", f"{files}/valid.tsv:en-fr", "--out", tmp_path / "none"]
    outcome = call("distill", run_with_languages, *other)
    assert outcome.code == 2 and "valid.tsv:en-fr: has other languages than the teacher, en and es" in outcome.err
    assert not (tmp_path / "none").exists()
    # Files are read in the direction of the teacher; test pairs are left out, whatever their white space is.
    lines = rows(files / "valid.tsv")
    test = tmp_path / "test.tsv"
    wide = [f"{source.replace(' ', ' ' + chr(160))}\t{target}\n" for source, target in lines]
    test.write_text("".join(wide), encoding="utf-8")
    pairs = (f"{swapped}:es-en", f"{files}/valid.tsv:en-es")
    request = Request((run_with_languages,), out, pairs, valid=(f"{files}/pairs.tsv:en-es",), test=(str(test),))
    counts = write_sources(request, None, *(tmp_path / name for name in ("sources", "valid", "tested")))
    assert counts["pairs"].reasons["held out"] > 70 and not {source for source, _ in lines} & {
        source for source, _ in rows(tmp_path / "sources")
    }
    many_languages_folder(tmp_path / "many", end=2.0, codes=("en", "es", "fr"))
    arguments = [
        "--pairs",
        files / "pairs.tsv",
        "--valid",
        files / "valid.tsv",
        "--out",
        tmp_path / "other",
        "--skip",
        "report",
    ]
    outcome = call("distill", tmp_path / "many", *arguments)
    assert outcome.code == 2 and "translates between several languages" in outcome.err
    outcome = call("distill", tmp_path / "many", *arguments, "--source-language", "en", "--target-language", "de")
    assert outcome.code == 2 and "de" in outcome.err


def test_runs_that_do_not_fit_are_refused(call, files, teacher, reverse_run, tmp_path, language_run):
    arguments = ["--pairs", files / "pairs.tsv", "--out", tmp_path / "student"]
    outcome = call("distill", language_run("lm-lstm"), *arguments)
    assert outcome.code == 2 and "is a language model" in outcome.err
    outcome = call("distill", teacher, reverse_run, *arguments)
    assert outcome.code == 2
    outcome = call("distill", teacher, "--pairs", files / "pairs.tsv", "--out", teacher, "--overwrite")
    assert outcome.code == 2 and "would be replaced" in outcome.err
    assert (teacher / "model.safetensors").exists()


def test_a_run_that_is_there_is_not_replaced_by_mistake(distill, small_run, tmp_path):
    shutil.copytree(small_run, distill.out)
    refused = distill()
    assert refused.code == 2 and "holds a run already" in refused.err and not distill.folder.exists()
    outcome = distill("--overwrite")
    assert outcome.code == 0, outcome.err
    assert RunFolder(distill.out).model_digest() != RunFolder(small_run).model_digest()
