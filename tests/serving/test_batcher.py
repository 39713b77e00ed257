"""Together but not mixed up; bounded; cancelled when nobody waits; finished before the end."""

import threading
import time

import pytest

from translucid.decoding.options import DecodingOptions
from translucid.serving.batcher import Batcher
from translucid.serving.failures import ApiError
from translucid.serving.text import Layout


class Slow:
    """A translator whose first batch waits until it may go on."""

    class configuration:  # noqa: N801
        decoding = DecodingOptions()

    def __init__(self):
        self.go, self.began, self.batches = threading.Event(), threading.Event(), []

    def stream(self, texts, options):
        self.batches.append(list(texts))
        self.began.set()
        assert self.go.wait(10)
        for text in texts:
            if text == "bad":
                raise RuntimeError("broken")
            yield text.upper()


@pytest.fixture
def slow():
    translator = Slow()
    yield translator
    translator.go.set()


def test_what_arrives_meanwhile_is_translated_together_and_goes_to_who_asked(slow):
    batcher = Batcher(slow, queue=100, batch=10)
    first = batcher.submit(["a"])
    assert slow.began.wait(10)
    others = [batcher.submit([f"{i}x", f"{i}y"]) for i in range(4)]
    slow.go.set()
    assert first.result(10) == ["A"]
    assert [other.result(10) for other in others] == [[f"{i}X", f"{i}Y"] for i in range(4)]
    assert slow.batches == [["a"], ["0x", "0y", "1x", "1y", "2x", "2y", "3x", "3y"]]
    batcher.close()


def test_a_full_queue_refuses(slow):
    batcher = Batcher(slow, queue=3, batch=10)
    batcher.submit(["a"])
    assert slow.began.wait(10)
    batcher.submit(["b", "c"])
    with pytest.raises(ApiError) as refused:
        batcher.submit(["d", "e"])
    assert refused.value.status == 503
    assert refused.value.retry_after
    batcher.submit(["d"])


def test_who_has_left_is_not_translated_for(slow):
    batcher = Batcher(slow, queue=10, batch=10)
    batcher.submit(["a"])
    assert slow.began.wait(10)
    gone, there = batcher.submit(["b"]), batcher.submit(["c"])
    gone.cancel()
    slow.go.set()
    assert there.result(10) == ["C"]
    assert ["b"] not in slow.batches
    assert all("b" not in batch for batch in slow.batches)
    batcher.close()


def test_an_error_is_of_its_batch_alone(slow):
    slow.go.set()
    batcher = Batcher(slow, queue=10, batch=10)
    with pytest.raises(RuntimeError, match="broken"):
        batcher.submit(["bad"]).result(10)
    assert batcher.submit(["good"]).result(10) == ["GOOD"]
    batcher.close()


def test_closing_finishes_what_was_taken_and_takes_nothing_more(slow):
    batcher = Batcher(slow, queue=10, batch=1)
    futures = [batcher.submit([text]) for text in "abc"]
    closing = threading.Thread(target=batcher.close)
    closing.start()
    while not batcher.closed:
        time.sleep(0.01)
    with pytest.raises(ApiError):
        batcher.submit(["d"])
    slow.go.set()
    closing.join(10)
    assert [future.result(0) for future in futures] == [["A"], ["B"], ["C"]]


@pytest.mark.parametrize(
    "text", ["", "a", " a  b. C d.\n\n E. \r\n", "x\u2029\u2028y\n", "\n\n", "Mr. Smith left. He ran."]
)
def test_a_layout_filled_with_its_own_sentences_is_the_text(text):
    layout = Layout.of(text, "en")
    assert layout.fill(layout.sentences) == text
    assert all(sentence.strip() for sentence in layout.sentences)
