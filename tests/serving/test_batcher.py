"""Batches of requests: results are not mixed up, queues are bounded and fair, and abandoned work is cancelled."""

import threading
import time

import pytest

from bitext.cancellation import Cancelled, between_steps, call_between_steps
from translucid.data.document_context import Source
from translucid.decoding.decoding_options import DecodingOptions
from translucid.ground.joint_steps import Step
from translucid.serving.edge.failures import ApiError
from translucid.serving.queue import CHUNK_CHARACTERS, Batcher, FairScheduler, JointWork, Task, translate
from translucid.serving.texts import LONGEST, Layout


class Slow:
    """A translator that blocks its first batch until `go` is set, and records batches and options."""

    class configuration:  # noqa: N801
        decoding = DecodingOptions(beam=2)

    def __init__(self):
        self.go, self.began, self.batches, self.options = threading.Event(), threading.Event(), [], []

    def stream(self, sources, options, *, split=True):
        texts = [source.text for source in sources]
        self.batches.append(texts)
        self.options.append(options)
        self.began.set()
        while not self.go.wait(0.01):
            between_steps()
        for text in texts:
            if text == "bad":
                raise RuntimeError("broken")
            yield text.upper() * options.nbest


def sources(texts):
    return list(map(Source, texts))


@pytest.fixture
def slow():
    translator = Slow()
    yield translator
    translator.go.set()


@pytest.fixture
def task():
    return Task("somebody", 60)


@pytest.fixture(autouse=True)
def one_batch_at_a_time(monkeypatch):
    monkeypatch.setattr("translucid.serving.queue.BATCH_TURN", 1000)


def test_waiting_requests_are_batched_and_get_their_own_results(slow, task):
    batcher = Batcher(queue=100, batch=10)
    first = batcher.submit(task, slow, sources(["a"]))
    assert slow.began.wait(10)
    later_futures = [batcher.submit(task, slow, sources([f"{i}x", f"{i}y"])) for i in range(4)]
    slow.go.set()
    assert first.result(10) == ["A"]
    assert [future.result(10) for future in later_futures] == [[f"{i}X", f"{i}Y"] for i in range(4)]
    assert slow.batches == [["a"], ["0x", "0y", "1x", "1y", "2x", "2y", "3x", "3y"]]
    batcher.close()


def test_each_gets_as_many_translations_as_it_asked_for(slow, task):
    batcher = Batcher(queue=100, batch=10)
    batcher.submit(task, slow, sources(["z"]))
    assert slow.began.wait(10)
    futures = [batcher.submit(Task(f"{i}", 60), slow, sources(["a"]), nbest) for i, nbest in enumerate((1, 3, 1, 3, 2))]
    slow.go.set()
    assert [future.result(10) for future in futures] == [["A"], ["AAA"], ["A"], ["AAA"], ["AA"]]
    assert [(options.nbest, options.beam) for options in slow.options[1:]] == [(1, 2), (3, 3), (2, 2)]
    batcher.close()


def test_a_full_queue_refuses(slow, task):
    batcher = Batcher(queue=3, batch=10)
    batcher.submit(task, slow, sources(["a"]))
    assert slow.began.wait(10)
    batcher.submit(task, slow, sources(["b", "c"]))
    with pytest.raises(ApiError) as error:
        batcher.submit(task, slow, sources(["d", "e"]))
    assert error.value.status == 503
    assert error.value.retry_after
    batcher.submit(task, slow, sources(["d"]))


def test_clients_take_turns(slow):
    batcher = Batcher(queue=100, batch=3)
    batcher.submit(Task("many", 60), slow, sources(["z"]))
    assert slow.began.wait(10)
    for text in "abcdef":
        batcher.submit(Task("many", 60), slow, sources([text]))
    last = batcher.submit(Task("few", 60), slow, sources(["x"]))
    slow.go.set()
    assert last.result(10) == ["X"]
    batcher.close()
    assert slow.batches[1] == ["a", "x", "b"]


def test_requests_of_clients_that_left_are_not_translated(slow, task):
    batcher = Batcher(queue=10, batch=10)
    batcher.submit(task, slow, sources(["a"]))
    assert slow.began.wait(10)
    abandoned_task = Task("somebody", 60)
    batcher.submit(abandoned_task, slow, sources(["b"]))
    waiting_future = batcher.submit(task, slow, sources(["c"]))
    abandoned_task.abandoned = True
    slow.go.set()
    assert waiting_future.result(10) == ["C"]
    assert all("b" not in batch for batch in slow.batches)
    batcher.close()


def test_a_batch_ends_when_nobody_waits_for_it(slow):
    batcher = Batcher(queue=10, batch=10)
    abandoned_task, expired_task = Task("a", 60), Task("b", 0.05)
    tasks = (abandoned_task, "a"), (expired_task, "b")
    futures = [batcher.submit(batch_task, slow, sources([text])) for batch_task, text in tasks]
    assert slow.began.wait(10)
    abandoned_task.abandoned = True
    for future in futures:
        with pytest.raises(Cancelled):
            future.result(10)
    assert not slow.go.is_set()
    slow.go.set()
    batcher.close()


def test_a_batch_that_takes_long_lets_others_go_before_it(slow, task, monkeypatch):
    monkeypatch.setattr("translucid.serving.queue.BATCH_TURN", 0.01)
    batcher = Batcher(queue=10, batch=10)
    stuck = batcher.submit(task, slow, sources(["a"]))
    assert slow.began.wait(10)
    batcher.submit(task, slow, sources(["b"]))
    end = time.monotonic() + 10
    while ["b"] not in slow.batches:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert not stuck.done()
    slow.go.set()
    assert stuck.result(10) == ["A"]
    batcher.close()


def test_an_error_is_of_one_request_alone(slow, task):
    batcher = Batcher(queue=10, batch=10)
    batcher.submit(task, slow, sources(["z"]))
    assert slow.began.wait(10)
    futures = [batcher.submit(task, slow, sources([text])) for text in ("good", "bad", "better")]
    slow.go.set()
    assert futures[0].result(10) == ["GOOD"]
    with pytest.raises(RuntimeError, match="broken"):
        futures[1].result(10)
    assert futures[2].result(10) == ["BETTER"]
    assert slow.batches[1] == ["good", "bad", "better"]
    batcher.close()


def test_closing_finishes_what_was_taken_and_takes_nothing_more(slow, task):
    batcher = Batcher(queue=10, batch=1)
    futures = [batcher.submit(task, slow, sources([text])) for text in "abc"]
    closing = threading.Thread(target=batcher.close)
    closing.start()
    while not batcher.closed:
        time.sleep(0.01)
    with pytest.raises(ApiError):
        batcher.submit(task, slow, sources(["d"]))
    slow.go.set()
    closing.join(10)
    assert [future.result(0) for future in futures] == [["A"], ["B"], ["C"]]


def test_long_requests_are_translated_in_parts_each_text_once(slow):
    slow.go.set()
    texts = ["a" * (CHUNK_CHARACTERS + 1), *(f"{i:05}" for i in range(100)), "a", "a"]
    assert translate(slow, sources(texts)) == [text.upper() for text in texts]
    assert [text for batch in slow.batches for text in batch] == texts[:-1]
    assert max(sum(map(len, batch)) for batch in slow.batches[1:]) <= CHUNK_CHARACTERS
    assert len(slow.batches) == 3

    def ask():
        if len(slow.batches) > 3:
            raise Cancelled

    with call_between_steps(ask), pytest.raises(Cancelled):
        translate(slow, sources(texts))
    assert len(slow.batches) == 4


@pytest.mark.parametrize(
    "text", ["", "a", " a  b. C d.\n\n E. \r\n", "x\u2029\u2028y\n", "\n\n", "Mr. Smith left. He ran.", "\n" * 200_000]
)
def test_a_layout_filled_with_its_own_sentences_is_the_text(text):
    layout = Layout.of(text, "en")
    assert layout.fill(layout.sentences) == text
    assert all(sentence.strip() for sentence in layout.sentences)


@pytest.mark.parametrize("text", ["x" * 5000, "word " * 1000 + "end", "y" * 2000, "y" * 2001])
def test_what_is_too_long_to_be_a_sentence_is_cut_between_words_if_it_has_some(text):
    layout = Layout.of(text, "en")
    assert layout.fill(layout.sentences) == text
    assert max(map(len, layout.sentences)) <= LONGEST
    assert len(layout.sentences) == -(-len(text) // LONGEST)
    assert " " not in text or all(sentence.endswith(("word", "end")) for sentence in layout.sentences)


def test_a_request_that_does_not_fit_waits_for_the_next_batch_and_others_go_first(slow, task):
    batcher = Batcher(queue=100, batch=3)
    batcher.submit(task, slow, sources(["z"]))
    assert slow.began.wait(10)
    requests = (("one", "ab"), ("two", "cd"), ("three", "e"), ("four", "f"))
    futures = [batcher.submit(Task(client, 60), slow, sources(list(texts))) for client, texts in requests]
    large_request = batcher.submit(Task("five", 60), slow, sources(list("ghijk")))
    assert (batcher.sentences, [*batcher.clients]) == (11, ["one", "two", "three", "four", "five"])
    slow.go.set()
    assert [future.result(10) for future in futures] == [["A", "B"], ["C", "D"], ["E"], ["F"]]
    assert large_request.result(10) == list("GHIJK")
    batcher.close()
    assert batcher.sentences == 0 and not batcher.clients
    assert slow.batches[1:] in (
        [["a", "b", "e"], ["f", "c", "d"], list("ghijk")],
        [["a", "b", "e"], ["c", "d", "f"], list("ghijk")],
    )


def test_the_queue_is_counted_in_sentences(slow, task):
    batcher = Batcher(queue=3, batch=10)
    batcher.submit(task, slow, sources(["a"]))
    assert slow.began.wait(10)
    until_taken = time.monotonic() + 10
    while batcher.sentences:
        assert time.monotonic() < until_taken
        time.sleep(0.001)
    large_request = batcher.submit(task, slow, sources(list("bcdef")))  # an empty queue accepts more than its limit
    with pytest.raises(ApiError) as busy:
        batcher.submit(task, slow, sources(["g"]))
    assert (busy.value.status, busy.value.retry_after) == (503, 2)
    assert busy.value.message == "The server is busy, please come again"
    slow.go.set()
    assert large_request.result(10) == list("BCDEF")
    batcher.close()
    with pytest.raises(ApiError) as closed_error:
        batcher.submit(task, slow, sources(["h"]))
    assert (closed_error.value.message, closed_error.value.retry_after) == ("The server is shutting down", 10)


def test_a_cancelled_future_gets_no_result(slow, task):
    batcher = Batcher(queue=10, batch=10)
    first = batcher.submit(task, slow, sources(["a"]))
    assert slow.began.wait(10)
    second, third = batcher.submit(task, slow, sources(["b"])), batcher.submit(task, slow, sources(["c"]))
    assert second.cancel() and first.cancel()
    slow.go.set()
    assert third.result(10) == ["C"]
    batcher.close()
    assert [text for batch in slow.batches for text in batch] == ["a", "c"]


class Shared(Step):
    """A step that is computed together with others like it, and sets an event."""

    def __init__(self):
        self.computed = threading.Event()

    def joins(self, other):
        return isinstance(other, Shared)

    def compute(self, steps):
        for step in steps:
            step.computed.set()


def test_joint_work_ends_when_nobody_waits_for_it_and_other_work_goes_on(task):
    endless, short, joint = Shared(), Shared(), JointWork(FairScheduler(0.01))

    async def repeated():
        while not gone.is_set():
            await endless

    async def once():
        await short
        return "done"

    gone = threading.Event()
    abandoned = joint.submit(task, repeated())
    assert endless.computed.wait(10)
    assert joint.submit(Task("else", 60), once()).result(10) == "done"
    task.abandoned = True
    try:
        with pytest.raises(Cancelled):
            abandoned.result(10)
    finally:
        gone.set()
        joint.close()
