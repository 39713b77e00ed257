"""The int8 check: when a student is fine-tuned with quantized weights, and when the result is kept."""

import json
import shutil

import pytest

from tests.engines.test_engines import run_at
from translucid.data.readers.corpus import read_pairs
from translucid.distillation import student as students
from translucid.distillation.student import Scores, check_int8, fine_tuning_configuration, int8_scores
from translucid.evaluation.metrics import Criterion
from translucid.ground.console import Console
from translucid.runs.run_folder import RunFolder
from translucid.runs.tensor_file import load_tensors

QUIET = Console(quiet=True)


def scores(float32, int8, metric="BLEU"):
    return Scores(metric=metric, float32=float32, int8=int8)


@pytest.fixture
def student(small_run, tmp_path):
    return shutil.copytree(small_run, tmp_path / "student")


@pytest.fixture
def scored(monkeypatch):
    """Replace the int8 scores: scored(before, after) returns the list of scored runs."""
    runs = []

    def replace_scores(*scores):
        remaining = iter(scores)
        monkeypatch.setattr(students, "int8_scores", lambda run, *_, **__: runs.append(run) or next(remaining))
        return runs

    return replace_scores


def test_scores_are_those_of_translations_with_each_type_of_weights(student, monkeypatch):
    translated = []
    score = Criterion.score
    monkeypatch.setattr(Criterion, "score", lambda self, texts: translated.append(texts) or score(self, texts))
    result = int8_scores(student, QUIET, source=None, target=None)
    *_, float32, int8_texts = translated
    assert len(float32) == len(int8_texts) == 20 and result.metric == "chrF"
    pairs = read_pairs(RunFolder(student).configuration().data.valid[0])
    references = [[pair.target for pair in pairs]]
    assert result.float32 == Criterion(references).scores(float32)[1].value
    assert result.int8 == Criterion(references).scores(int8_texts)[1].value
    assert result.loss == result.float32 - result.int8


def test_nothing_is_trained_if_int8_costs_little(student, scored):
    before = RunFolder(student).model_digest()
    scored(scores(30.25, 30.0))
    result = check_int8(student, console=QUIET)
    assert result.after is None and str(result) == "BLEU 30.25 with float32, 30.00 with int8"
    assert not (student / "distillation").exists()
    assert RunFolder(student).model_digest() == before


def test_a_recurrent_student_has_no_int8(tmp_path):
    (tmp_path / "pairs.tsv").write_text("I read\tleo\n" * 3)
    run = run_at(tmp_path / "recurrent", kind="recurrent").path
    assert check_int8(run, console=QUIET, valid=[str(tmp_path / "pairs.tsv")]) is None


@pytest.mark.parametrize(
    ("after", "is_kept"),
    [(scores(30.2, 29.6), True), (scores(31.0, 29.5), False), (scores(50.0, 50.0, "chrF"), False)],
)
def test_fine_tuned_weights_are_kept_only_if_int8_is_better_with_them(student, scored, after, is_kept):
    folder = RunFolder(student)
    before, configuration = load_tensors(folder.model_file)[0], folder.config_file.read_bytes()
    line_count = len(folder.provenance_file.read_bytes().splitlines())
    (student / "tuned.json").write_text("{}")
    runs = scored(scores(30.0, 29.5), after)
    result = check_int8(student, console=QUIET, updates=3, device="cpu")
    assert (result.after, result.kept) == (after, is_kept)
    assert runs == [student, student / "distillation" / "int8"] and not runs[1].exists()
    weights = load_tensors(folder.model_file)[0]
    changed = [name for name in before if not before[name].equal(weights[name])]
    assert bool(changed) is is_kept and weights.keys() == before.keys()
    assert folder.config_file.read_bytes() == configuration
    lines = folder.provenance_file.read_text(encoding="utf-8").splitlines()[line_count:]
    assert [json.loads(line)["fine-tuned"] for line in lines] == ["with quantized weights"] * is_kept
    # Tuning results of the old weights are removed.
    assert (student / "tuned.json").exists() is not is_kept
    assert str(result).endswith("which is kept" if is_kept else "which is not kept")
    folder.load_model(folder.configuration(), folder.tokenizer())


def test_the_fine_tuning_has_the_settings_of_the_student_but_for_its_length_and_rate(student):
    student_options = RunFolder(student).configuration().training
    configuration = fine_tuning_configuration(student, 300)
    options = configuration.training
    assert options.quantized_weights and options.begin_from == str(student)
    assert options.learning_rate == pytest.approx(0.1 * student_options.learning_rate)
    assert (options.max_steps, options.warmup, options.validate_every) == (300, 30, 100)
    unchanged = ("optimizer", "batch_tokens", "label_smoothing", "seed", "precision", "freeze")
    assert all(getattr(options, name) == getattr(student_options, name) for name in unchanged)
    assert configuration.data == RunFolder(student).configuration().data
    # The options must be valid as a whole, also for a student with the vocabulary of its teachers.
    type(options).model_validate(options.model_dump())
    distilled = student_options.model_copy(update={"teachers": ["a"], "distillation_weight": 0.5})
    folder = RunFolder(student)
    folder.save_configuration(folder.configuration().model_copy(update={"training": distilled}))
    options = fine_tuning_configuration(student, 300).training
    type(options).model_validate(options.model_dump())
