"""The time limit of a request, and cancellation of work that nobody waits for."""

import asyncio
from concurrent.futures import Future
from types import SimpleNamespace

import pytest

from bitext.cancellation import Cancelled
from translucid.serving import queue as fair_scheduler
from translucid.serving import requests as request_context
from translucid.serving.edge.failures import ApiError, ClientLeft
from translucid.serving.queue import Task
from translucid.serving.requests import RequestTask
from translucid.serving.server_options import ServerOptions

from .refusals import stopped_clock


@pytest.fixture
def clock(monkeypatch):
    return stopped_clock(monkeypatch, fair_scheduler, 100.0)


@pytest.fixture
def timeouts(monkeypatch):
    """The timeouts with which tasks wait for their results; the waits themselves are short."""
    seconds, wait = [], asyncio.wait

    async def wait_briefly(futures, timeout, return_when):
        seconds.append(timeout)
        return await wait(futures, timeout=min(timeout, 0.01), return_when=return_when)

    monkeypatch.setattr(request_context.asyncio, "wait", wait_briefly)
    return seconds


def request(*messages):
    """Return a request that receives these messages, and nothing afterwards."""
    incoming = [{"type": f"http.{name}"} for name in messages]

    async def receive():
        return incoming.pop(0) if incoming else await asyncio.sleep(60)

    return SimpleNamespace(receive=receive)


def task_of(seconds):
    context = SimpleNamespace(options=ServerOptions(seconds=seconds), worker_pool=Pool())
    return RequestTask(context, request(), "somebody")


class Pool:
    def submit(self, task, work):
        return finished_future((task, work()))


def result(task, future, *messages):
    task.request = request(*messages)

    async def main():
        value = await task.result(future)
        await asyncio.sleep(0)
        pending_tasks = asyncio.all_tasks() - {asyncio.current_task()}
        assert not pending_tasks, "a task still waits for the client"
        return value

    return asyncio.run(main())


def finished_future(value=None, error=None):
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
    abandoned = Task("somebody", 60)
    abandoned.abandoned = True
    assert abandoned.over()


def test_a_result_is_waited_for_until_the_time_limit(clock, timeouts):
    task = task_of(60)
    clock.now = 110
    assert result(task, finished_future("done"), "request") == "done" and not task.abandoned
    clock.now = 200  # a finished result is returned although the time is up
    assert result(task, finished_future("done")) == "done"
    assert timeouts == [50, 0]


@pytest.mark.parametrize("error", [None, Cancelled()])
def test_work_that_takes_too_long_is_cancelled(timeouts, error):
    task, future = task_of(2.5), finished_future(error=error) if error else Future()
    with pytest.raises(ApiError) as refusal:
        result(task, future, "request", "request")
    assert (refusal.value.status, refusal.value.retry_after) == (503, 10)
    assert refusal.value.message == "It took more than 2.5 seconds"
    assert task.abandoned is (error is None) and future.cancelled() is (error is None)


def test_work_ends_when_the_client_leaves():
    task, future = task_of(60), Future()
    with pytest.raises(ClientLeft):
        result(task, future, "request", "disconnect")
    assert task.abandoned and future.cancelled()


def test_an_error_of_the_work_is_raised(timeouts):
    task = task_of(60)
    with pytest.raises(ZeroDivisionError):
        result(task, finished_future(error=ZeroDivisionError()))
    assert not task.abandoned


def test_work_is_done_in_the_worker_pool_within_the_time_of_a_request_or_another_one(timeouts):
    task = task_of(60)
    assert asyncio.run(task.run(lambda: "done")) == (task, "done") and task.seconds == 60
    longer_task = RequestTask(task.context, task.request, "somebody", 3600)
    assert (longer_task.client, longer_task.seconds) == ("somebody", 3600)
