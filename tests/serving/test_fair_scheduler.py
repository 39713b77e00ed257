"""Who works when: newcomers before those that have worked long, and nobody for whom nobody waits."""

import threading
import time

import pytest

from translucid.ground.cancellation import Cancelled, between_steps
from translucid.serving.edge.failures import ApiError
from translucid.serving.queue import fair_scheduler as turns
from translucid.serving.queue.fair_scheduler import FairScheduler, Task
from translucid.serving.queue.worker_pool import PLACES, SHARE, WorkerPool

from .refusals import stopped_clock


def until(condition):
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


class Worker:
    """Works in steps of its own until it is told to end."""

    def __init__(self, place):
        self.place, self.steps, self.left, self.done = place, 0, False, False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        try:
            with self.place.taken(lambda: self.left):
                while not self.done:
                    between_steps()
                    self.steps += 1
                    time.sleep(0.002)
        except Cancelled:
            pass


def test_one_works_at_a_time_and_one_that_is_new_is_not_kept_waiting():
    place = FairScheduler(0.02)
    old = Worker(place)
    until(lambda: old.steps > 50)
    new = Worker(place)
    until(lambda: new.steps > 5)
    before = old.steps
    until(lambda: new.steps > 20)
    assert old.steps == before, "two work at the same time"
    new.done = True
    until(lambda: old.steps > before)
    old.done = True
    for worker in (old, new):
        worker.thread.join(10)


def test_two_that_take_long_get_on_alike():
    place = FairScheduler(0.005)
    workers = [Worker(place) for _ in range(2)]
    until(lambda: sum(worker.steps for worker in workers) > 300)
    for worker in workers:
        worker.done = True
    for worker in workers:
        worker.thread.join(10)
    assert min(worker.steps for worker in workers) > 50


@pytest.mark.parametrize("waits", [True, False])
def test_who_has_left_ends_at_work_or_waiting(waits):
    place = FairScheduler(1000)
    first, second = Worker(place), None
    until(lambda: first.steps)
    second = Worker(place)
    gone, there = (second, first) if waits else (first, second)
    gone.left = True
    gone.thread.join(1)
    assert not gone.thread.is_alive()
    steps = there.steps
    until(lambda: there.steps > steps)
    there.done = True
    there.thread.join(10)
    assert not place.waiting and place.working is None


def test_who_has_worked_long_is_not_kept_waiting_for_ever(monkeypatch):
    """However many newcomers there are."""
    monkeypatch.setattr(turns, "PATIENCE", 0.5)
    place = FairScheduler(0.01)
    old = Worker(place)
    until(lambda: old.steps > 100)
    end = time.monotonic() + 10
    newcomers = [Worker(place) for _ in range(2)]
    before = old.steps
    while old.steps < before + 20:
        assert time.monotonic() < end
        for i, one in enumerate(newcomers):
            if one.steps > 10:
                one.done = True
                newcomers[i] = Worker(place)
        time.sleep(0.005)
    for worker in (old, *newcomers):
        worker.done = True


def test_in_the_workshop_one_works_at_a_time_in_turns():
    worker_pool = WorkerPool()
    inside, most, order = 0, 0, []

    def work(name, steps):
        def run():
            nonlocal inside, most
            for _ in range(steps):
                between_steps()
                inside += 1
                most = max(most, inside)
                time.sleep(0.002)
                inside -= 1
            order.append(name)
            return name

        return run

    task = Task("somebody", 60)
    futures = [worker_pool.submit(task, work(f"long {i}", 200)) for i in range(2)]
    time.sleep(0.1)
    futures.append(worker_pool.submit(task, work("short", 2)))
    assert [future.result(60) for future in futures] == ["long 0", "long 1", "short"]
    assert most == 1
    assert order[0] == "short"
    assert not worker_pool.inside
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


def line_up(place, **used):
    """Let work that has used its time so far, and which nobody wants once it has to wait, line up for its turn."""
    asked = iter([False])
    turn = turns._Turn(lambda: next(asked, True), **used)
    with place.lock:
        place._line_up(turn)
    return turn


def test_waiting_reduces_the_time_that_counts_as_used():
    assert [turns._Turn(bool, worked=1.0, waited=waited).rank() for waited in (0, 4, 10, 20)] == [1, 0.6, 0, 0]


def test_a_turn_lasts_its_seconds_and_then_the_work_that_used_least_is_next(clock):
    place = FairScheduler(1.0)
    first = line_up(place)
    assert place.working is first and first.go.is_set()
    clock.now = 100.5
    others = [line_up(place, worked=worked) for worked in (0.75, 0.5, 0.5)]
    assert place.waiting == others
    clock.now = 100.9
    place._ask(first)
    assert place.working is first and (first.worked, first.since) == (0, 100)
    clock.now, first.over = 101, iter([False, True]).__next__
    with pytest.raises(Cancelled):  # while it waits for its next turn
        place._ask(first)
    assert place.working is others[1] and place.waiting == [others[0], others[2]]
    assert (first.worked, first.waited, first.since) == (1, 0, 101)
    assert [(other.waited, other.since) for other in others] == [(0.5, 101)] * 3
    assert not first.go.is_set() and others[1].go.is_set()


def test_work_goes_on_if_the_others_have_used_more(clock):
    place = FairScheduler(1.0)
    first = line_up(place)
    other = line_up(place, worked=9)
    clock.now = 102
    place._ask(first)
    assert place.working is first and place.waiting == [other]
    assert (first.worked, first.since, other.waited, other.since) == (2, 102, 2, 102)


def test_of_equal_work_the_one_that_waits_is_next(clock):
    place = FairScheduler(0.0)
    first, other = line_up(place), line_up(place)
    first.over = iter([False, True]).__next__
    with pytest.raises(Cancelled):
        place._ask(first)
    assert place.working is other and not place.waiting


def test_work_that_leaves_makes_room_for_the_next(clock):
    place = FairScheduler(1.0)
    first, second, third = (line_up(place) for _ in range(3))
    clock.now = 103
    with place.lock:
        place._leave(second)
        assert place.working is first and place.waiting == [third]
        place._leave(second)
        place._leave(first)
        assert place.working is third and not place.waiting and (third.waited, third.worked) == (3, 0)
        place._leave(third)
    assert place.working is None
