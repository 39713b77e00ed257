"""The whole command on models that know next to nothing: what it writes, and what it refuses."""

import gzip
import json
import shutil

import pytest

from tests.distillation.conftest import STUDENT
from translucid import Translator
from translucid.decoding.pair_scores import score_pairs
from translucid.distillation.bounds import Bounds
from translucid.distillation.report import Report
from translucid.distillation.request import Request
from translucid.distillation.selection import nearest
from translucid.distillation.student import STUDENTS, chosen_preset, estimated_bytes
from translucid.runs.configuration import resolve
from translucid.runs.run_folder import RunFolder


def rows(file):
    return [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()]


def test_a_student_learns_from_what_the_teacher_writes(distill, teacher, files):
    done = distill("--text", files / "text.txt")
    assert done.code == 0, done.err
    decoded = rows(distill.folder / "decoded.tsv")
    translator = Translator.load(teacher, "cpu", "ctranslate2")
    with_references = [row for row in decoded if row[2]]
    wanted = translator.translate([row[0] for row in with_references], split=False, nbest=3, beam=5)
    for row, translation in zip(with_references, wanted, strict=True):
        assert row[1] == " ".join(nearest(translation.alternatives, row[2]).split())
    alone = [row for row in decoded if not row[2]]
    assert len(alone) == 6 and [row[1] for row in alone] == [
        " ".join(translation.text.split()) for translation in translator.translate([row[0] for row in alone], nbest=3)
    ]
    collected = json.loads((distill.folder / "translate.json").read_text())["results"]
    assert collected["pairs"]["left out"] == {"unreadable": 1, "duplicate": 1}
    assert collected["text"] == {"kept": 6, "left out": {"empty": 1, "unreadable": 1}}
    assert "4 of 4: training the student" in done.err
    student = RunFolder(distill.out).configuration()
    assert student.data.train[0] == str(distill.folder / "distilled.tsv")
    assert Translator.load(distill.out, "cpu").translate("I like soccer").text is not None
    assert student.training.guided_alignment and student.data.train_alignments[0].endswith("distilled.align")
    links = (distill.folder / "distilled.align").read_text().splitlines()
    assert len(links) == len(rows(distill.folder / "distilled.tsv"))


def test_a_repeated_command_does_nothing_again_and_other_inputs_are_refused(distill, files):
    assert distill().code == 0
    before = {file.name: file.stat().st_mtime_ns for file in distill.folder.iterdir() if file.suffix != ".json"}
    model = RunFolder(distill.out).model_digest()
    again = distill()
    assert again.code == 0 and again.err.count("done before") == 4
    assert before == {file.name: file.stat().st_mtime_ns for file in distill.folder.iterdir() if file.suffix != ".json"}
    refused = distill("--choose", "best")
    assert refused.code == 2 and "stage 1 of 4: translating was begun with other inputs" in refused.err
    refused = distill("--no-references")
    assert refused.code == 2 and "stage 2 of 4: filtering" in refused.err
    refused = distill(settings=["training.seed=2"])
    assert refused.code == 2 and "training.seed was 1 and is 2" in refused.err
    replaced = distill("--overwrite", settings=["training.seed=2"])
    assert replaced.code == 0 and replaced.err.count("done before") == 3
    assert RunFolder(distill.out).model_digest() != model


def test_a_reverse_run_translates_text_back_and_scores_translations(distill, files, reverse_run):
    done = distill("--target-text", files / "target.txt", "--reverse", reverse_run, "--filter-worst", "0.2")
    assert done.code == 0, done.err
    synthetic = rows(distill.folder / "synthetic.tsv")
    assert {tuple(row) for row in synthetic} <= {(row[0], row[2]) for row in rows(distill.folder / "decoded.tsv")}
    clean = rows(distill.folder / "clean.tsv")
    backwards = Translator.load(reverse_run, "cpu", "torch")
    pairs = [(target, source) for source, target in clean]
    scores = score_pairs(backwards.model, backwards.pipeline, pairs, backwards.device)
    wanted = [-score.log_probability / len(score.tokens) for score in scores]
    written = list(map(float, (distill.folder / "scores.txt").read_text().split()))
    assert written == pytest.approx(wanted, abs=1e-4)
    removed = int(0.2 * len(clean))
    counts = json.loads((distill.folder / "filter.json").read_text())["results"]["distilled"]
    assert counts["removed"]["reverse-score"] == removed
    assert len(rows(distill.folder / "distilled.tsv")) == counts["kept"] == len(clean) - removed


@pytest.mark.parametrize("choice", ["mbr", "sample", "best"])
def test_other_choices_write_the_same_each_time(distill, choice, teacher, tmp_path):
    done = distill("--choose", choice, "--engine", "torch")
    assert done.code == 0, done.err
    first = (distill.folder / "decoded.tsv").read_text()
    (distill.folder / "decoded.tsv").unlink()
    assert distill("--choose", choice, "--engine", "torch", "--overwrite").code == 0
    assert (distill.folder / "decoded.tsv").read_text() == first


def test_an_ensemble_packed_text_and_held_out_pairs(distill, call, teacher, files, tmp_path):
    packed = tmp_path / "text.txt.gz"
    packed.write_bytes(gzip.compress((files / "text.txt").read_bytes()))
    out = tmp_path / "other"
    given = ["--pairs", files / "pairs.tsv", "--text", packed, "--out", out, "--choose", "best", "--beam", 1]
    given.append("--no-align")
    done = call("distill", teacher, teacher, *given, "--no-report", "--set", "training.max_steps=1", "model.width=16")
    assert done.code == 0, done.err
    assert not RunFolder(out).configuration().training.guided_alignment
    assert not (out / "distillation" / "distilled.align").exists()
    valid = {row[0] for row in rows(out / "distillation" / "valid.tsv")}
    assert valid and not valid & {row[0] for row in rows(out / "distillation" / "decoded.tsv")}


def test_a_student_with_the_vocabulary_and_the_probabilities_of_its_teachers(distill, teacher, reverse_run, files):
    settings = [setting for setting in STUDENT if not setting.startswith("data.tokenizer")]
    words = ["--vocabulary", "teacher", "--word-level", "0.5"]
    done = distill(*words, teachers=(teacher, teacher), student=settings)
    assert done.code == 0, done.err
    assert RunFolder(distill.out).tokenizer().fingerprint == RunFolder(teacher).tokenizer().fingerprint
    learned = RunFolder(distill.out).model_digest()
    other = distill("--vocabulary", "teacher", "--overwrite", teachers=(teacher, teacher), student=settings)
    assert other.code == 0 and RunFolder(distill.out).model_digest() != learned
    refused = distill("--word-level", "0.5", student=settings)
    assert refused.code == 2 and "--vocabulary teacher" in refused.err
    refused = distill("--vocabulary", "teacher")
    assert refused.code == 2 and "the vocabulary of the teacher can't be changed" in refused.err


@pytest.fixture
def quick_report(monkeypatch):
    """Measure few sentences once; returns the calls."""
    measure, calls = Report.measure, []

    def quick(self, test=None, **more):
        calls.append(test)
        return measure(self, test, sentences=4, rounds=1, seconds=0.001, **more)

    monkeypatch.setattr(Report, "measure", quick)
    return calls


def test_teacher_and_student_are_measured_and_the_fastest_way_is_kept(distill, files, quick_report):
    done = distill("--report", "--test", files / "valid.tsv", "--size", "1GB")
    assert done.code == 0, done.err
    assert quick_report == [[str(distill.folder / "test.tsv")]]
    assert "is translated by student" in done.err
    assert (distill.out / "tuned.json").exists()
    page = (distill.folder / "report.md").read_text()
    assert "60 pairs; skipped 2: 1 duplicate, 1 unreadable" in page and "distilled pairs" in page
    assert "| teacher, " in page and "| student, int8 |" in page
    checked = json.loads((distill.folder / "int8.json").read_text())["results"]
    assert checked["before"]["float32"] >= 0 and "with float32" in done.err
    # The stage has a record of its own beside the figures.
    assert len(json.loads((distill.folder / "report.json").read_text())["systems"]) == 12
    again = distill("--report", "--test", files / "valid.tsv", "--size", "1GB")
    assert again.code == 0 and again.err.count("done before") == 6 and len(quick_report) == 1
    bounded = distill("--report", "--test", files / "valid.tsv", "--size", "1KB")
    assert bounded.code == 0 and "warning: no student is within 0.001 MB" in bounded.err and len(quick_report) == 2


def test_the_preset_is_the_largest_for_the_data_within_the_bound(teacher, tmp_path):
    def chosen(pairs, size=None, **options):
        request = Request((teacher,), tmp_path, bounds=Bounds.of(size=size), **options)
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
    "wrong size": (["--pairs", "pairs.tsv", "--size", "ten"], "is not a positive number with a unit"),
    "wrong setting": (["--pairs", "pairs.tsv", "--set", "model.widht=3"], "Did you mean"),
    "no such preset": (["--pairs", "pairs.tsv", "--preset", "studnet-demo"], "Did you mean 'student-demo'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_input_is_one_line_and_leaves_nothing(call, files, teacher, tmp_path, monkeypatch, case):
    words, message = REFUSED[case]
    monkeypatch.chdir(files)
    (files / "blank.txt").write_text("\n  \n")
    done = call("distill", teacher, *words, "--out", tmp_path / "student")
    assert done.code == 2 and message in done.err
    assert len([line for line in done.err.splitlines() if line.startswith("error")]) <= 1
    assert not (tmp_path / "student" / "config.yaml").exists()


def test_pairs_of_the_other_direction_and_a_choice_of_languages(call, files, corpus, teacher, tmp_path):
    from tests.probes.foreign import many_languages_folder

    out = tmp_path / "student"
    known = tmp_path / "known"
    shutil.copytree(teacher, known)
    settings = (known / "config.yaml").read_text().replace("source_language: null", "source_language: en")
    (known / "config.yaml").write_text(settings.replace("target_language: null", "target_language: es"))
    swapped = tmp_path / "swapped.tsv"
    swapped.write_text("".join(f"{target}\t{source}\n" for source, target in rows(corpus / "train.tsv")))
    done = call("distill", known, "--pairs", swapped, "--valid", files / "valid.tsv", "--out", out)
    assert done.code == 2 and "looks like es first, and the teacher translates from en to es" in done.err
    many_languages_folder(tmp_path / "many", end=2.0, codes=("en", "es", "fr"))
    given = ["--pairs", files / "pairs.tsv", "--valid", files / "valid.tsv", "--out", tmp_path / "other", "--no-report"]
    done = call("distill", tmp_path / "many", *given)
    assert done.code == 2 and "translates between several languages" in done.err
    done = call("distill", tmp_path / "many", *given, "--source-language", "en", "--target-language", "de")
    assert done.code == 2 and "de" in done.err


def test_runs_that_do_not_fit_are_refused(call, files, teacher, reverse_run, tmp_path, language_run):
    given = ["--pairs", files / "pairs.tsv", "--out", tmp_path / "student"]
    done = call("distill", language_run("lm-lstm"), *given)
    assert done.code == 2 and "is a language model" in done.err
    done = call("distill", teacher, reverse_run, *given)
    assert done.code == 2
    done = call("distill", teacher, "--pairs", files / "pairs.tsv", "--out", teacher, "--overwrite")
    assert done.code == 2 and "would be replaced" in done.err
    assert (teacher / "model.safetensors").exists()


def test_a_run_that_is_there_is_not_replaced_by_mistake(distill, small_run, tmp_path):
    shutil.copytree(small_run, distill.out)
    refused = distill()
    assert refused.code == 2 and "holds a run already" in refused.err and not distill.folder.exists()
    done = distill("--overwrite")
    assert done.code == 0, done.err
    assert RunFolder(distill.out).model_digest() != RunFolder(small_run).model_digest()
