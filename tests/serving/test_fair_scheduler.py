"""Scheduling of work: new work before work that has already run long, and abandoned work is cancelled."""

import threading
import time

import pytest

from bitext.cancellation import Cancelled, between_steps
from translucid.serving import queue as turns
from translucid.serving.edge.failures import ApiError
from translucid.serving.queue import PLACES, SHARE, FairScheduler, Task, WorkerPool

from .refusals import stopped_clock


def wait_until(condition):
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


class Worker:
    """Works in steps until a test ends it or its client leaves."""

    def __init__(self, scheduler):
        self.scheduler, self.steps, self.left, self.done = scheduler, 0, False, False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        try:
            with self.scheduler.turn(lambda: self.left):
                while not self.done:
                    between_steps()
                    self.steps += 1
                    time.sleep(0.002)
        except Cancelled:
            pass


def test_one_works_at_a_time_and_one_that_is_new_is_not_kept_waiting():
    scheduler = FairScheduler(0.02)
    old = Worker(scheduler)
    wait_until(lambda: old.steps > 50)
    new = Worker(scheduler)
    wait_until(lambda: new.steps > 5)
    before = old.steps
    wait_until(lambda: new.steps > 20)
    assert old.steps == before, "two work at the same time"
    new.done = True
    wait_until(lambda: old.steps > before)
    old.done = True
    for worker in (old, new):
        worker.thread.join(10)


def test_two_that_take_long_get_on_alike():
    scheduler = FairScheduler(0.005)
    workers = [Worker(scheduler) for _ in range(2)]
    wait_until(lambda: sum(worker.steps for worker in workers) > 300)
    for worker in workers:
        worker.done = True
    for worker in workers:
        worker.thread.join(10)
    assert min(worker.steps for worker in workers) > 50


@pytest.mark.parametrize("is_waiting", [True, False])
def test_work_of_clients_that_left_ends_running_or_waiting(is_waiting):
    scheduler = FairScheduler(1000)
    first, second = Worker(scheduler), None
    wait_until(lambda: first.steps)
    second = Worker(scheduler)
    leaving, staying = (second, first) if is_waiting else (first, second)
    leaving.left = True
    leaving.thread.join(1)
    assert not leaving.thread.is_alive()
    steps = staying.steps
    wait_until(lambda: staying.steps > steps)
    staying.done = True
    staying.thread.join(10)
    assert not scheduler.waiting and scheduler.working is None


def test_long_work_does_not_wait_for_ever(monkeypatch):
    """However many new tasks arrive."""
    monkeypatch.setattr(turns, "PATIENCE", 0.5)
    scheduler = FairScheduler(0.01)
    old = Worker(scheduler)
    wait_until(lambda: old.steps > 100)
    end = time.monotonic() + 10
    newcomers = [Worker(scheduler) for _ in range(2)]
    before = old.steps
    while old.steps < before + 20:
        assert time.monotonic() < end
        for i, newcomer in enumerate(newcomers):
            if newcomer.steps > 10:
                newcomer.done = True
                newcomers[i] = Worker(scheduler)
        time.sleep(0.005)
    for worker in (old, *newcomers):
        worker.done = True


def test_in_the_workshop_one_works_at_a_time_in_turns():
    worker_pool = WorkerPool()
    running_now, highest, order = 0, 0, []

    def work(name, steps):
        def run():
            nonlocal running_now, highest
            for _ in range(steps):
                between_steps()
                running_now += 1
                highest = max(highest, running_now)
                time.sleep(0.002)
                running_now -= 1
            order.append(name)
            return name

        return run

    task = Task("somebody", 60)
    futures = [worker_pool.submit(task, work(f"long {i}", 200)) for i in range(2)]
    time.sleep(0.1)
    futures.append(worker_pool.submit(task, work("short", 2)))
    assert [future.result(60) for future in futures] == ["long 0", "long 1", "short"]
    assert highest == 1
    assert order[0] == "short"
    assert not worker_pool.work_counts
    worker_pool.close()


def test_the_workshop_has_room_for_others_than_one_client():
    worker_pool = WorkerPool()
    go = threading.Event()

    def wait():
        assert go.wait(60)

    futures = [worker_pool.submit(Task("one", 60), wait) for _ in range(SHARE)]
    with pytest.raises(ApiError, match="busy"):
        worker_pool.submit(Task("one", 60), wait)
    futures += [worker_pool.submit(Task("other", 60), wait) for _ in range(PLACES - SHARE)]
    with pytest.raises(ApiError, match="busy"):
        worker_pool.submit(Task("third", 60), wait)
    go.set()
    for future in futures:
        future.result(60)
    worker_pool.submit(Task("one", 60), wait).result(60)
    worker_pool.close()


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr(turns, "_POLL_SECONDS", 0.001)
    return stopped_clock(monkeypatch, turns, 100.0)


def enqueue(scheduler, **time_used):
    """Let work queue for its turn: it has used this much time, and is abandoned when it has to wait."""
    answers = iter([False])
    turn = turns._Turn(lambda: next(answers, True), **time_used)
    with scheduler.lock:
        scheduler._line_up(turn)
    return turn


def test_waiting_reduces_the_time_that_counts_as_used():
    assert [turns._Turn(bool, worked=1.0, waited=waited).rank() for waited in (0, 4, 10, 20)] == [1, 0.6, 0, 0]


def test_a_turn_lasts_its_seconds_and_then_the_work_that_used_least_is_next(clock):
    scheduler = FairScheduler(1.0)
    first = enqueue(scheduler)
    assert scheduler.working is first and first.started.is_set()
    clock.now = 100.5
    waiting_turns = [enqueue(scheduler, worked=worked) for worked in (0.75, 0.5, 0.5)]
    assert scheduler.waiting == waiting_turns
    clock.now = 100.9
    scheduler._ask(first)
    assert scheduler.working is first and (first.worked, first.since) == (0, 100)
    clock.now, first.over = 101, iter([False, True]).__next__
    with pytest.raises(Cancelled):  # while it waits for its next turn
        scheduler._ask(first)
    assert scheduler.working is waiting_turns[1] and scheduler.waiting == [waiting_turns[0], waiting_turns[2]]
    assert (first.worked, first.waited, first.since) == (1, 0, 101)
    assert [(turn.waited, turn.since) for turn in waiting_turns] == [(0.5, 101)] * 3
    assert not first.started.is_set() and waiting_turns[1].started.is_set()


def test_work_goes_on_if_the_others_have_used_more(clock):
    scheduler = FairScheduler(1.0)
    first = enqueue(scheduler)
    second = enqueue(scheduler, worked=9)
    clock.now = 102
    scheduler._ask(first)
    assert scheduler.working is first and scheduler.waiting == [second]
    assert (first.worked, first.since, second.waited, second.since) == (2, 102, 2, 102)


def test_of_equal_work_the_one_that_waits_is_next(clock):
    scheduler = FairScheduler(0.0)
    first, second = enqueue(scheduler), enqueue(scheduler)
    first.over = iter([False, True]).__next__
    with pytest.raises(Cancelled):
        scheduler._ask(first)
    assert scheduler.working is second and not scheduler.waiting


def test_work_that_leaves_makes_room_for_the_next(clock):
    scheduler = FairScheduler(1.0)
    first, second, third = (enqueue(scheduler) for _ in range(3))
    clock.now = 103
    with scheduler.lock:
        scheduler._leave(second)
        assert scheduler.working is first and scheduler.waiting == [third]
        scheduler._leave(second)
        scheduler._leave(first)
        assert scheduler.working is third and not scheduler.waiting and (third.waited, third.worked) == (3, 0)
        scheduler._leave(third)
    assert scheduler.working is None
