"""The report on a student: measured systems, the Pareto front, bounds, and resuming a measurement."""

import json
import random
import shutil

import pytest

from bitext.pair import Pair
from translucid.distillation import report as reporting
from translucid.distillation.report import (
    Measured,
    Measurements,
    Report,
    Round,
    System,
    draw_report,
    measure,
    pareto_front,
    rows,
)
from translucid.distillation.request import Bounds
from translucid.engines.ctranslate2.convert import export_ctranslate2
from translucid.engines.tuned import Tuned, load_tuned
from translucid.ground.console import Console
from translucid.ground.errors import UserError
from translucid.kernels import machine
from translucid.runs.run_folder import RunFolder

QUIET = Console(quiet=True)
PAIRS = [Pair(f"the {n} big houses", f"las {n} casas grandes") for n in range(9)]


def measured(bleu, *milliseconds, chrf=50.0, role="student", size=2_000_000, beam=5, **tuned):
    rounds = [Round(milliseconds=value, sentences_per_second=value, words_per_second=value) for value in milliseconds]
    return Measured(
        role=role, tuned=Tuned(**tuned), beam=beam, bleu=bleu, chrf=chrf, bytes=size, seconds=1.0, rounds=rounds
    )


def measurements(*systems, **fields):
    return Measurements(key="k", machine="m", sentences=9, count=len(systems), systems=systems, **fields)


@pytest.fixture(scope="module")
def student(small_run, tmp_path_factory):
    return shutil.copytree(small_run, tmp_path_factory.mktemp("report") / "student")


@pytest.fixture(scope="module")
def report(student, small_run):
    return Report(student, [small_run, small_run], Bounds.of("1000s", "10MB"), QUIET)


@pytest.fixture(scope="module")
def result(report):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(reporting, "FEWEST_ALONE", 1)
        return report.measure(sentences=3, rounds=2, seconds=0.0)


def test_a_teacher_and_each_kind_of_student_are_measured_with_a_beam_and_greedily(result, student):
    names = [
        "teacher, float32, our search",
        "student, float32",
        "student, int8",
        "student, int8, target-side vocabulary",
        "student, int8, small shortlist",
        "student, int8, large shortlist",
    ]
    assert [(system.name, system.beam) for system in result.systems] == [(name, b) for name in names for b in (5, 1)]
    assert all(len(system.rounds) == 2 and system.milliseconds > 0 for system in result.systems)
    assert result.sentences == 3 and "cores of" in result.machine
    # The student is the teacher: the same model in float32 has the same scores.
    teacher, float32 = result.systems[0], result.systems[2]
    assert (teacher.bleu, teacher.chrf) == pytest.approx((float32.bleu, float32.chrf), abs=1e-6)
    assert [signature.partition("|")[0] for signature in result.signatures] == ["BLEU", "chrF"]


def test_sizes_are_those_of_what_a_system_needs(result, student, small_run, tmp_path):
    folder = RunFolder(student)
    configuration, tokenizer = folder.configuration(), folder.tokenizer()
    model = folder.load_sequence_model(configuration, tokenizer)
    sizes = {system.name: system.bytes for system in result.systems}
    for weights in ("float32", "int8"):
        export_ctranslate2(model, tokenizer, tmp_path / weights, weights)
        files = [file.stat().st_size for file in (tmp_path / weights).iterdir()]
        assert sizes[f"student, {weights}"] == sum(files)
    # An ensemble has two models with their configurations, and one tokenizer.
    model_size = (small_run / "model.safetensors").stat().st_size + (small_run / "config.yaml").stat().st_size
    assert sizes["teacher, float32, our search"] == 2 * model_size + (small_run / "tokenizer.model").stat().st_size
    assert result.systems[0].megabytes == sizes["teacher, float32, our search"] / 1e6


def test_the_page_the_plots_and_the_table_show_the_same_rows(report, result, student):
    folder = student / "distillation"
    page = (folder / "report.md").read_text(encoding="utf-8")
    table = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    assert len(table) == 1 + len(result.systems)
    for line, row in zip(table[1:], rows(result, report.bounds), strict=True):
        assert line[:8] == row[:8]
    assert "1e+06 ms per sentence and 10 MB: met by student" in page and page.count("← chosen") == 1
    assert report.table(result).row_count == len(result.systems)
    assert (folder / "report.svg").read_bytes().startswith(b"<?xml")
    assert (folder / "report.png").read_bytes().startswith(b"\x89PNG")
    assert Measurements.model_validate_json((folder / "report.json").read_text()) == result


def test_a_finished_report_is_not_measured_again_unless_something_has_changed(report, result, monkeypatch):
    def fail(*_, **__):
        raise AssertionError("a system is opened")

    monkeypatch.setattr(Report, "_systems", fail)
    assert report.measure(sentences=3, rounds=2, seconds=0.0) == result
    for change in ({"sentences": 2, "rounds": 2}, {"sentences": 3, "rounds": 3}):
        with pytest.raises(AssertionError, match="a system is opened"):
            report.measure(**change, seconds=0.0)
    monkeypatch.setattr("translucid.distillation.report.processor", lambda: "another")
    with pytest.raises(AssertionError, match="a system is opened"):
        report.measure(sentences=3, rounds=2, seconds=0.0)


def test_the_chosen_student_is_what_translate_uses(report, result, student):
    chosen = next(entry for entry in result.systems if entry.tuned.considered == "small shortlist" and entry.beam == 1)
    report.adopt(chosen)
    assert load_tuned(student) == chosen.tuned
    lists = json.loads((student / "distillation" / "shortlists.json").read_text())["lists"]
    assert (student / "shortlist.tsv").read_text(encoding="utf-8") == lists["small shortlist"]
    assert RunFolder(student).configuration().decoding.beam == 1
    report.adopt(result.systems[2])
    assert not (student / "shortlist.tsv").exists()
    assert RunFolder(student).configuration().decoding.beam == 5


class StoppedError(Exception):
    """A killed process, simulated."""


class Model:
    """A fake translator that records its calls."""

    def __init__(self, stop_after=None):
        self.calls, self.stop_after = [], stop_after

    def translate(self, texts):
        self.calls.append(len(texts))
        if self.stop_after is not None and len(self.calls) > self.stop_after:
            raise StoppedError
        return [text.replace("the", "las").replace("big houses", "casas grandes") for text in texts]


def system(model, beam):
    fake = System("student", Tuned(), None, beam, 1)
    object.__setattr__(fake, "translate", model.translate)
    return fake


def test_an_interrupted_measurement_goes_on_where_it_was(tmp_path):
    """Finished steps are not repeated, whichever step is interrupted."""
    file, options = tmp_path / "report.json", {"console": QUIET, "rounds": 2, "seconds": 0.0}

    def run(models):
        empty = Measurements(key="k", machine="m", sentences=9)
        systems = [system(model, beam) for model, beam in zip(models, (5, 1), strict=True)]
        return measure(systems, PAIRS, Measurements.resumed(file, empty), file, **options)

    complete = [Model(), Model()]
    expected = run(complete)
    assert expected.complete(2) and not expected.complete(3) and expected.systems[0].bleu == pytest.approx(100)
    assert [model.calls[0] for model in complete] == [9, 9]
    calls_per_round = [1] * (1 + reporting.FEWEST_ALONE) + [9]
    assert [model.calls[1:] for model in complete] == [2 * calls_per_round] * 2
    for stop_after in range(1, len(complete[1].calls)):
        file.unlink()
        with pytest.raises(StoppedError):
            run([Model(), Model(stop_after)])
        resumed = [Model(), Model()]
        assert run(resumed).complete(2)
        # Both systems were scored before; their rounds alternate.
        full_rounds = (stop_after - 1) // len(calls_per_round)
        assert resumed[0].calls == calls_per_round * (1 - full_rounds)
        assert resumed[1].calls == calls_per_round * (2 - full_rounds)


@pytest.mark.parametrize("change", [{"key": "other"}, {"machine": "other"}])
def test_figures_of_other_systems_or_machines_are_not_taken(tmp_path, change):
    file, saved = tmp_path / "report.json", measurements(measured(30.0, 1.0))
    saved.write(file)
    assert Measurements.resumed(file, saved.model_copy(update={"systems": []})) == saved
    empty = saved.model_copy(update={"systems": [], **change})
    assert Measurements.resumed(file, empty) is empty
    file.write_text("{")
    assert Measurements.resumed(file, empty) is empty


def test_the_front_is_that_of_all_comparisons():
    rng = random.Random(1)
    for _ in range(200):
        systems = [measured(rng.randrange(5), rng.randrange(1, 6)) for _ in range(rng.randrange(1, 9))]
        for number, entry in enumerate(systems):
            systems[number] = entry.model_copy(update={"bytes": number})  # no two are equal
        all_measurements = measurements(*systems)
        front = pareto_front(systems, all_measurements)
        dominated = set()
        for first in systems:
            for second in systems:
                as_good = second.bleu >= first.bleu and second.milliseconds <= first.milliseconds
                if as_good and (second.bleu, second.milliseconds) != (first.bleu, first.milliseconds):
                    dominated.add(first.bytes)
        expected = {(entry.bleu, entry.milliseconds) for entry in systems if entry.bytes not in dominated}
        assert {(entry.bleu, entry.milliseconds) for entry in front} == expected
        assert [entry.milliseconds for entry in front] == sorted(entry.milliseconds for entry in front)


def test_the_median_of_the_rounds_counts_and_the_metric_decides():
    assert measured(1.0, 5.0, 100.0, 2.0).milliseconds == 5.0
    first, second = measured(1.0, 2.0, chrf=60.0), measured(2.0, 1.0, chrf=50.0)
    assert pareto_front([first, second], measurements(first, second)) == [second]
    assert pareto_front([first, second], measurements(first, second, metric="chrF")) == [second, first]


def test_bounds_choose_the_fastest_of_the_best_students_within_them():
    teacher = measured(50.0, 0.1, role="teacher")
    slow, close, small = measured(40.0, 9.0), measured(39.8, 5.0), measured(39.0, 3.0, size=900_000)
    all_measurements = measurements(teacher, slow, close, small)
    assert Bounds.of().best(all_measurements) == close
    assert Bounds.of().best(all_measurements, allowed=0.1) == slow
    assert Bounds.of("5ms").best(all_measurements) == close and Bounds.of("4.9ms").best(all_measurements) == small
    assert (
        Bounds.of("0.9 MB").best(all_measurements) == small
        and Bounds.of("0.005s", "2000kb").best(all_measurements) == close
    )
    assert Bounds.of("1ms").best(all_measurements) is None
    assert Bounds.of("5ms", "10MB") == (5.0, 10.0) and str(Bounds.of("5ms", "10MB")) == "5 ms per sentence and 10 MB"


@pytest.mark.parametrize("bound", ["fast", "0ms", "-1ms", "5 minutes", "10"])
def test_invalid_bounds_are_refused(bound):
    with pytest.raises(
        UserError, match=r"^`limit` .* is not a positive number with a unit \(ms, s, MB, .*\). Examples: 5ms"
    ):
        Bounds.of(bound)


def test_a_busy_machine_is_mentioned(tmp_path, monkeypatch):
    monkeypatch.setattr("translucid.distillation.report.cores", lambda: 4)
    report = Report(tmp_path, [tmp_path], Bounds(), QUIET)
    quiet, busy = (" ".join(report.notes(measurements(busy=load))) for load in (5.0, 5.1))
    assert "load average at most 5.0." in quiet and "other programs were running" in busy
    assert "met by" not in quiet


def test_the_plot_fills_the_systems_of_the_front_and_names_each_once():
    systems = [measured(40.0, 9.0), measured(39.0, 3.0, beam=1), measured(38.0, 5.0, quantization="int8")]
    all_measurements = measurements(*systems)
    figure = draw_report(all_measurements, pareto_front(systems, all_measurements))
    (axes,) = figure.axes
    line, *points = axes.lines
    assert [*line.get_xdata()] == [3.0, 9.0] and [*line.get_ydata()] == [39.0, 40.0]
    assert axes.get_xscale() == "log" and axes.get_ylabel() == "BLEU"
    assert [point.get_markerfacecolor() == "none" for point in points] == [False, False, True]
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["student, float32", "student, int8", "beam 5", "greedy", "Pareto front"]


def test_the_instructions_are_named_with_the_limits_that_the_user_has_set(monkeypatch):
    for name in machine._LIMITS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(machine, "_cpuinfo", lambda: "flags : fma avx2")
    assert machine.instruction_set() == "AVX2"
    flags = "flags : avx2 avx512f avx512cd avx512vl avx512dq avx512bw"
    monkeypatch.setattr(machine, "_cpuinfo", lambda: flags)
    assert machine.instruction_set() == "AVX-512"
    monkeypatch.setattr(machine, "_cpuinfo", lambda: f"{flags} avx512_bf16")
    monkeypatch.setenv("CT2_FORCE_CPU_ISA", "AVX2")
    assert machine.instruction_set() == "AVX-512 with bfloat16, CT2_FORCE_CPU_ISA=AVX2"
    monkeypatch.setattr(machine, "_cpuinfo", lambda: "")
    assert machine.instruction_set() == "CT2_FORCE_CPU_ISA=AVX2"
