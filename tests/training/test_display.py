"""Display of a training without a terminal: occasional status lines and sample translations."""

import io
from types import SimpleNamespace

import pytest

from translucid.ground.console import Console
from translucid.training.records import record
from translucid.training.records.record import QUIET_SECONDS, Display, Status, clock
from translucid.training.validation import Sample, Validation

STATUS = Status(
    step=1200,
    epoch=2,
    done=0.25,
    seconds=30.0,
    loss=2.5,
    perplexity=12.18,
    accuracy=0.5,
    tokens_per_second=3456.7,
    learning_rate=0.001,
    skipped=0,
)


@pytest.fixture
def captured_display():
    """Return a display and a function that returns the lines written so far."""
    output = io.StringIO()
    return Display(Console(file=output, width=200)), lambda: output.getvalue().splitlines()


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (59.6, "1:00"), (75, "1:15"), (3599, "59:59"), (3661, "1:01:01")]
)
def test_a_clock_by_hand(seconds, text):
    assert clock(seconds) == text


def test_a_status_is_one_line():
    line = "step 1,200  epoch 3  loss 2.500  ppl 12.18  acc 50.0%  3,457 tokens/s"
    assert STATUS.line() == f"{line}  1:30 left"
    assert STATUS._replace(compile_seconds=75).line() == f"{line}  1:15 compiling  1:30 left"
    assert STATUS._replace(skipped=4).line() == f"{line}  1:30 left  4 skipped"
    assert STATUS._replace(done=0.001).line() == line  # too early to tell


def test_lines_are_written_at_intervals(captured_display, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(record, "time", SimpleNamespace(monotonic=lambda: now[0]))
    line_display, lines = captured_display
    line_display.last_line = now[0]
    for elapsed in (QUIET_SECONDS / 2, QUIET_SECONDS + 1, QUIET_SECONDS + 2, 2 * QUIET_SECONDS + 2):
        now[0] = 1000.0 + elapsed
        line_display.status(STATUS)
    assert lines() == [STATUS.line()] * 2


def test_a_validation_shows_three_sentences_and_others_the_next_time(captured_display):
    line_display, lines = captured_display
    samples = [Sample(f"source {i}", f"reference {i}", f"hypothesis {i}") for i in range(50)]
    validation = Validation(2.5, 12.18, 0.5, {"bleu": 20.04}, 20.04, samples)
    for step in (7, 14):
        line_display.validation(step, validation, "BLEU 20.0", best=step == 7)
    expected = []
    for step, best in ((7, "  (best so far)"), (14, "")):
        expected += [f"validation at step {step}: loss 2.500  ppl 12.18  acc 50.0%  BLEU 20.0{best}"]
        for i in (step // 7, step // 7 + 11, step // 7 + 22):
            expected += [
                f"    source     source {i}",
                f"    reference  reference {i}",
                f"    hypothesis hypothesis {i}",
            ]
    assert lines() == expected
