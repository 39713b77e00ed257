"""What a person sees of a training where there is no terminal: a line now and then, and what it learned so far."""

import io

import pytest

from translucid.ground.console import Console
from translucid.training import display
from translucid.training.display import QUIET_SECONDS, Display, Status, clock
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
def shown():
    """A display, and what it has written: the lines so far."""
    said = io.StringIO()
    return Display(Console(file=said, width=200)), lambda: said.getvalue().splitlines()


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (59.6, "1:00"), (75, "1:15"), (3599, "59:59"), (3661, "1:01:01")]
)
def test_a_clock_by_pencil(seconds, text):
    assert clock(seconds) == text


def test_all_of_it_stands_in_one_line():
    line = "step 1,200  epoch 3  loss 2.500  ppl 12.18  acc 50.0%  3,457 tokens/s"
    assert STATUS.line() == f"{line}  1:30 left"
    assert STATUS._replace(skipped=4).line() == f"{line}  1:30 left  4 skipped"
    assert STATUS._replace(done=0.001).line() == line  # too early to tell


def test_a_line_is_written_only_now_and_then(shown, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(display.time, "monotonic", lambda: now[0])
    one, lines = shown
    one.last_line = now[0]
    for later in (QUIET_SECONDS / 2, QUIET_SECONDS + 1, QUIET_SECONDS + 2, 2 * QUIET_SECONDS + 2):
        now[0] = 1000.0 + later
        one.status(STATUS)
    assert lines() == [STATUS.line()] * 2


def test_a_validation_shows_three_sentences_and_others_the_next_time(shown):
    one, lines = shown
    samples = [Sample(f"source {i}", f"reference {i}", f"hypothesis {i}") for i in range(50)]
    found = Validation(2.5, 12.18, 0.5, {"bleu": 20.04}, 20.04, samples)
    for step in (7, 14):
        one.validation(step, found, "BLEU 20.0", best=step == 7)
    wanted = []
    for step, best in ((7, "  (best so far)"), (14, "")):
        wanted += [f"validation at step {step}: loss 2.500  ppl 12.18  acc 50.0%  BLEU 20.0{best}"]
        for i in (step // 7, step // 7 + 11, step // 7 + 22):
            wanted += [f"    source     source {i}", f"    reference  reference {i}", f"    hypothesis hypothesis {i}"]
    assert lines() == wanted
