"""The time limit of a request, and the end of its work when nobody waits for it."""

import asyncio
from concurrent.futures import Future
from types import SimpleNamespace

import pytest

from translucid.ground.cancellation import Cancelled
from translucid.serving.edge.failures import ApiError, ClientLeft
from translucid.serving.queue import fair_scheduler, request_context
from translucid.serving.queue.fair_scheduler import Task
from translucid.serving.queue.request_context import RequestTask
from translucid.serving.server_options import ServerOptions

from .refusals import stopped_clock


@pytest.fixture
def clock(monkeypatch):
    return stopped_clock(monkeypatch, fair_scheduler, 100.0)


@pytest.fixture
def waited(monkeypatch):
    """The seconds for which tasks wait for their results; they do not wait so long."""
    seconds, wait = [], asyncio.wait

    async def quickly(futures, timeout, return_when):
        seconds.append(timeout)
        return await wait(futures, timeout=min(timeout, 0.01), return_when=return_when)

    monkeypatch.setattr(request_context.asyncio, "wait", quickly)
    return seconds


def request(*messages):
    """Return a request that receives these messages, and nothing afterwards."""
    coming = [{"type": f"http.{name}"} for name in messages]

    async def receive():
        return coming.pop(0) if coming else await asyncio.sleep(60)

    return SimpleNamespace(receive=receive)


def task_of(seconds):
    context = SimpleNamespace(options=ServerOptions(seconds=seconds), worker_pool=Pool())
    return RequestTask(context, request(), "somebody")


class Pool:
    def submit(self, task, work):
        return ended((task, work()))


def result(task, future, *messages):
    task.request = request(*messages)

    async def main():
        value = await task.result(future)
        await asyncio.sleep(0)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        assert not others, "a task still waits for the client"
        return value

    return asyncio.run(main())


def ended(value=None, error=None):
    future = Future()
    if error:
        future.set_exception(error)
    else:
        future.set_result(value)
    return future


def test_a_task_is_over_when_its_time_is_up_or_its_client_has_left(clock):
    task = Task("somebody", 60)
    assert (task.client, task.seconds, task.end, task.over()) == ("somebody", 60, 160, False)
    for now, over in ((159.9, False), (160, True), (170, True)):
        clock.now = now
        assert task.over() is over
    other = Task("somebody", 60)
    other.left = True
    assert other.over()


def test_a_result_is_waited_for_until_the_time_limit(clock, waited):
    task = task_of(60)
    clock.now = 110
    assert result(task, ended("done"), "request") == "done" and not task.left
    clock.now = 200  # a result that is there is returned although the time is up
    assert result(task, ended("done")) == "done"
    assert waited == [50, 0]


@pytest.mark.parametrize("error", [None, Cancelled()])
def test_work_that_takes_too_long_is_cancelled(waited, error):
    task, future = task_of(2.5), ended(error=error) if error else Future()
    with pytest.raises(ApiError) as late:
        result(task, future, "request", "request")
    assert (late.value.status, late.value.retry_after) == (503, 10)
    assert late.value.message == "It took more than 2.5 seconds"
    assert task.left is (error is None) and future.cancelled() is (error is None)


def test_work_ends_when_the_client_leaves():
    task, future = task_of(60), Future()
    with pytest.raises(ClientLeft):
        result(task, future, "request", "disconnect")
    assert task.left and future.cancelled()


def test_an_error_of_the_work_is_raised(waited):
    task = task_of(60)
    with pytest.raises(ZeroDivisionError):
        result(task, ended(error=ZeroDivisionError()))
    assert not task.left


def test_work_is_done_in_the_worker_pool_within_the_time_of_a_request_or_another_one(waited):
    task = task_of(60)
    assert asyncio.run(task.run(lambda: "done")) == (task, "done") and task.seconds == 60
    other = RequestTask(task.context, task.request, "somebody", 3600)
    assert (other.client, other.seconds) == ("somebody", 3600)
