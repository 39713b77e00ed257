"""Document jobs in isolation: the tests control the worker pool and the clock."""

import asyncio
import io
from concurrent.futures import Future
from types import SimpleNamespace

import pytest

from bitext.cancellation import Cancelled
from bitext.documents.document import Segment, SegmentList, Target, kind_of, max_segments
from bitext.documents.tagged_text import Mark, TaggedText
from translucid.ground.errors import UserError
from translucid.ground.lock import LOCK
from translucid.serving import documents
from translucid.serving.documents import DocumentJobs
from translucid.serving.edge.failures import INTERNAL, ApiError, GoneError
from translucid.serving.requests import RequestContext
from translucid.serving.server_options import ServerOptions

from .refusals import refusal_of, stopped_clock


class Pool:
    """A worker pool that runs its work when a test says so."""

    def __init__(self):
        self.pending, self.room = [], 99

    def submit(self, task, work):
        if not self.room:
            raise ApiError(503, "The server is busy")
        self.room -= 1
        self.pending.append((task, work, Future()))
        return self.pending[-1][2]

    def run(self, number=0):
        """Run one pending work item to its end."""
        _, work, future = self.pending.pop(number)
        try:
            future.set_result(work())
        except Exception as error:
            future.set_exception(error)


@pytest.fixture
def clock(monkeypatch):
    clock = stopped_clock(monkeypatch, documents, 100.0)
    clock.sleep = lambda seconds: setattr(clock, "now", clock.now + seconds)
    monkeypatch.setattr(documents, "time", clock)
    return clock


@pytest.fixture
def make(clock, monkeypatch):
    """Return a function that creates the document jobs of a server whose Spanish is English in capitals."""
    created = []

    def translated(served, sources, nbest=1):
        for source, *_ in sources:
            clock.now += 1
            yield Target(TaggedText(source.text.upper(), source.marks))

    def find(*arguments):
        if arguments[:2] not in (("en", "es"), ("en", "fr")):
            raise ApiError(400, "not available")
        found.append(arguments)
        return SimpleNamespace(
            source="en",
            target="es",
            translator=SimpleNamespace(context=None, has_formality=False),
            batcher=SimpleNamespace(sentences=0),
        )

    def candidates(target):
        if target != "es":
            raise ApiError(400, "no candidates")
        return ["en", "es"]

    found = []
    monkeypatch.setattr(documents, "translated", translated)

    def create(**options):
        catalog = SimpleNamespace(languages=["en", "es"], find=find, candidates=candidates)
        catalog.addressing = lambda served, formality: served
        options = ServerOptions(**options)
        context = RequestContext(catalog, options, None, worker_pool=Pool())
        jobs = DocumentJobs(context)
        jobs.found = found
        created.append(jobs)
        return jobs

    yield create
    for jobs in created:
        jobs.clean()


def send(jobs, content=b"I sing.\n\nYou sing.\n", name="a.txt", client="somebody", source="en", target="es", **options):
    return jobs.submit(client, name, io.BytesIO(content), source, target, **options)


def test_a_job_from_its_beginning_to_its_end(make, clock):
    jobs = make()
    job = send(jobs, client="client", model="tiny", terms={"a": "b"})
    assert (job.client, job.name, job.kind, job.source, job.target) == ("client", "a.txt", kind_of("a.txt"), "en", "es")
    assert (job.model, job.terms, job.state, job.segments, job.done, job.seconds_left) == (
        ("tiny", {"a": "b"}, "waiting", 0, 0, None)
    )
    assert jobs.find(job.id) is job and (len(job.id), len(job.key)) == (32, 64) and jobs.working == 1
    assert job.task.client == "client" and job.task.seconds == 3600
    job.terms = {}
    jobs.context.worker_pool.run()
    assert (job.state, job.error, job.segments, job.done, job.characters, job.characters_done) == (
        "done",
        "",
        2,
        2,
        16,
        16,
    )
    assert jobs.working == 0 and job.ended.is_set()
    assert job.last_request == clock.now == 102 and job.seconds_left is None
    assert job.written_corrections == job.corrections == 0
    assert job.files.result.read_bytes() == b"I SING.\n\nYOU SING.\n"
    assert jobs.found == [("en", "es", "tiny")] * 2
    assert [sample.value for sample in jobs.context.usage.characters.collect()[0].samples[:1]] == [16]
    clock.now = 110
    assert jobs.find(job.id).last_request == 110
    for key in ("", job.key):
        with pytest.raises(GoneError):
            jobs.find(key)


@pytest.mark.parametrize(
    ("file_name", "name"),
    [
        ("a.txt", "a.txt"),
        ("../x/a.txt", "a.txt"),
        ("C:\\x\\a.txt", "a.txt"),
        ("x/y\\a\0\n.txt", "a.txt"),
        ("x" * 300 + ".txt", "x" * 196 + ".txt"),
    ],
)
def test_names_have_no_folders(make, file_name, name):
    assert send(make(), name=file_name).name == name


def test_documents_that_are_refused(make):
    jobs = make(file_bytes=10)
    name = "x" * 60
    assert refusal_of(send, jobs, name=name) == (
        400,
        f"Invalid request: {'x' * 50!r} is of no kind that is translated here",
        None,
    )
    assert send(jobs, b"0123456789").files.content == b"0123456789"
    assert refusal_of(send, jobs, b"0123456789a") == (413, "Invalid request: the file has more than 10 bytes", None)
    assert refusal_of(send, jobs, b"x", source=None, target="fr")[1] == "no candidates"
    assert refusal_of(send, jobs, b"x", source="es", target="en")[1] == "not available"
    assert refusal_of(send, jobs, b"x", source="xx", target="xx")[1] == "not available"
    assert send(jobs, b"x", source="en", target="en").source == "en"
    assert send(jobs, b"x", source=None).source is None
    assert len(jobs.jobs) == len(list(jobs.folder.iterdir())) == 3


def test_the_number_of_documents_is_limited(make, monkeypatch):
    busy = (503, "Too many documents are being translated, please come again", 30)
    jobs = make(documents=3)
    for _ in range(3):
        send(jobs)
    assert refusal_of(send, jobs) == busy
    jobs.context.worker_pool.run()
    send(jobs)
    monkeypatch.setattr(documents, "SHARE", 2)
    jobs = make(documents=3)
    for client in ("one", "one", "other"):
        send(jobs, client=client)
    assert refusal_of(send, jobs, client="third") == busy
    jobs = make(documents=9)
    for client in ("one", "one", "other", "third"):
        send(jobs, client=client)
    assert refusal_of(send, jobs, client="one") == busy
    assert len(jobs.jobs) == 4


def test_two_documents_are_translated_at_once(make):
    jobs = make()
    pool = jobs.context.worker_pool
    sent_jobs = [send(jobs) for _ in range(4)]
    assert (len(pool.pending), jobs.working, [*jobs.waiting]) == (2, 2, sent_jobs[2:])
    pool.run(1)
    assert (len(pool.pending), jobs.working, [*jobs.waiting]) == (2, 2, sent_jobs[3:])
    assert [job.state for job in sent_jobs] == ["waiting", "done", "waiting", "waiting"]
    while pool.pending:
        pool.run()
    assert (jobs.working, [job.state for job in sent_jobs]) == (0, ["done"] * 4)


def test_a_document_waits_for_room_in_the_pool(make):
    jobs = make()
    pool, pool.room = jobs.context.worker_pool, 0
    job = send(jobs)
    assert (jobs.working, [*jobs.waiting]) == (0, [job])
    pool.room = 1
    jobs.tidy_up()
    assert (jobs.working, [*jobs.waiting]) == (1, [])


@pytest.mark.parametrize(
    ("error", "state", "status", "message"),
    [
        (Cancelled(), "cancelled", 503, "It took more than 2.5 seconds"),
        (UserError("is no text", file="a.txt"), "failed", 400, "a.txt: is no text."),
        (ZeroDivisionError(), "failed", 500, INTERNAL),
    ],
)
def test_jobs_that_fail(make, error, state, status, message):
    jobs = make(document_seconds=2.5)
    job = send(jobs)
    jobs.context.worker_pool.pending.pop()[2].set_exception(error)
    assert (job.state, job.status, job.error, job.ended.is_set(), jobs.working) == (state, status, message, True, 0)
    retry = None if state == "failed" else 5
    assert refusal_of(asyncio.run, jobs.answer(None, job)) == (status, message, retry)
    waiting = jobs.wait(SimpleNamespace(receive=lambda: asyncio.sleep(60)), job)
    assert refusal_of(asyncio.run, waiting) == (status, message, None)
    assert job.id not in jobs.jobs and not list(jobs.folder.iterdir())


def test_a_cancelled_job_ends_and_leaves_nothing(make):
    jobs = make()
    pool = jobs.context.worker_pool
    first, second, third = (send(jobs) for _ in range(3))
    jobs.delete(third)
    assert third.ended.is_set() and not jobs.waiting and len(list(jobs.folder.iterdir())) == 2
    jobs.delete(first)
    assert (first.state, first.error, first.task.abandoned, first.ended.is_set()) == (
        ("cancelled", "It was cancelled", True, False)
    )
    assert len(list(jobs.folder.iterdir())) == 2
    pool.run()
    assert first.ended.is_set() and first.state == "cancelled" and [*jobs.jobs] == [second.id]
    assert [folder.name for folder in jobs.folder.iterdir()] == [second.files.folder.name]
    jobs.close()
    assert second.task.abandoned and not jobs.jobs


def finished_jobs(jobs, count):
    """Return this many finished jobs, with last requests one second apart."""
    jobs_done = []
    for number in range(count):
        jobs_done.append(send(jobs))
        jobs.context.worker_pool.run()
        jobs_done[-1].last_request = 200.0 + number
    return jobs_done


def test_documents_are_kept_for_some_time_after_the_last_request(make, clock):
    jobs = make(keep_seconds=60)
    first, second = finished_jobs(jobs, 2)
    clock.now = 260
    jobs.tidy_up()
    assert [*jobs.jobs] == [first.id, second.id]
    clock.now = 260.5
    jobs.tidy_up()
    assert [*jobs.jobs] == [second.id]
    assert len(list(jobs.folder.iterdir())) == 1


def test_a_number_of_documents_and_of_bytes_is_kept(make, clock, monkeypatch):
    clock.now = 300
    jobs = make()
    stored = finished_jobs(jobs, 4)
    stored[1].last_request = 210.0
    waiting = send(jobs)
    monkeypatch.setattr(documents, "MAX_STORED", 4)
    jobs.tidy_up()
    assert [*jobs.jobs] == [job.id for job in (stored[1], stored[2], stored[3], waiting)]
    size = stored[1].files.size
    assert {job.files.size for job in stored[1:]} == {size}
    monkeypatch.setattr(documents, "MAX_STORED_BYTES", 2 * size)
    jobs.tidy_up()
    assert [*jobs.jobs] == [stored[1].id, stored[3].id, waiting.id]
    monkeypatch.setattr(documents, "MAX_STORED_BYTES", 2 * size - 1)
    jobs.tidy_up()
    assert [*jobs.jobs] == [stored[1].id, waiting.id]


def test_a_folder_that_the_system_deleted_is_made_again(make):
    jobs = make()
    jobs.clean()
    send(jobs)
    jobs.context.worker_pool.run()
    assert len(list(jobs.folder.iterdir())) == 1 and jobs.folder.stat().st_mode & 0o777 == 0o700
    assert jobs.folder.parent.name.startswith("translucid-documents-")


def test_the_next_server_removes_the_folders_of_killed_ones_of_this_user(make, monkeypatch, tmp_path):
    monkeypatch.setattr(documents.tempfile, "tempdir", str(tmp_path))
    killed, running = make(), make()
    send(killed)
    send(running)
    killed._folder._lock.release()  # as the system does when the process is killed
    starting = tmp_path / "translucid-documents-starting"
    starting.mkdir()
    (starting / LOCK).touch()  # its server has not acquired it yet
    (tmp_path / "translucid-documents-link").symlink_to(running.folder.parent)
    other = make()
    assert not killed.folder.parent.exists() and other.folder.exists() and starting.exists()
    assert len(list(running.folder.iterdir())) == 1


def test_large_segments_are_refused(make, monkeypatch):
    marks = tuple(Mark(0, "<br>") for _ in range(3))
    jobs = make(document_segments=7)
    limits = []
    for text, count, message in (
        ("x" * 5, 3, ""),
        ("x" * 6, 3, "line 1 has more than 5 characters"),
        ("x", 4, "3 tags"),
    ):
        segments = SegmentList("a.txt")
        segments.add(Segment(TaggedText(text, (*marks, marks[0])[:count]), "line 1"))

        def read(name, content, languages, segments=segments):
            limits.append(max_segments())
            return SimpleNamespace(segments=segments, filled=lambda targets: b"")

        monkeypatch.setattr(documents, "segments_to_translate", lambda document, retranslate: [0])
        monkeypatch.setattr(documents, "read_document", read)
        monkeypatch.setattr(documents, "LONGEST_SEGMENT", 5)
        monkeypatch.setattr(documents, "MOST_MARKS", 3)
        job = send(jobs)
        jobs.context.worker_pool.run()
        assert job.state == ("failed" if message else "done") and message in job.error
        assert not message or (job.status, job.error.endswith("Split it.")) == (400, True)
    assert limits == [7] * 3


def test_progress_counts_what_is_already_translated(make, monkeypatch, clock):
    jobs = make()
    content = b'msgid "I sing."\nmsgstr "Canto."\n\nmsgid "You sing"\nmsgstr ""\n\nmsgid "We"\nmsgstr ""\n'
    job = send(jobs, content, "a.po")
    monkeypatch.setattr(documents, "in_chunks", lambda numbers, size: ([number] for number in numbers))
    states, store = [], job.files.store

    def record_progress(targets):
        store(targets)
        states.append((job.state, job.done, job.characters, job.characters_done, job.seconds_left))

    job.files.store = record_progress
    jobs.context.worker_pool.run()
    first = job.characters_done - len("You sing") - len("We")
    assert (job.state, job.done, job.segments, job.characters_done) == ("done", 3, 3, job.characters)
    assert first == len("I sing.")
    assert states == [("translating", 1, 17, 7, 1 / 7 * 10), ("translating", 2, 17, 15, 2 / 15 * 2)]


def test_short_requests_come_between_the_parts_of_a_document(make, monkeypatch, clock):
    paused = []
    monkeypatch.setattr(documents, "_pause_for_short_requests", lambda served, seconds: paused.append(seconds))
    monkeypatch.setattr(documents, "in_chunks", lambda numbers, size: [[0], [1]])
    jobs = make()
    send(jobs)
    jobs.context.worker_pool.run()
    assert paused == [0, 3]  # three times as long as the first part took


def test_the_language_of_a_document_is_detected_by_its_first_texts(make, monkeypatch):
    calls = []

    def detect(texts, languages):
        calls.append((texts, languages))
        return [("es", 90.0)]

    monkeypatch.setattr(documents, "detect_sources", detect)
    jobs = make()
    job = send(jobs, b"a" * 1500 + b"\n" + b"b" * 1500 + b"\nc\n", source=None)
    jobs.context.worker_pool.run()
    assert calls == [(["a" * 1500 + " " + "b" * 500], ["en", "es"])]
    assert (job.source, job.state, job.done) == ("es", "done", 0)  # already in the target language
    assert job.files.result.read_bytes() == job.files.content
    texts = [SimpleNamespace(source=TaggedText(text)) for text in ("a" * 2000, "b")]
    assert list(documents._first_texts(SimpleNamespace(segments=texts))) == ["a" * 2000]


def result_of(jobs, job):
    async def result(future):
        jobs.context.worker_pool.run()
        return future.result()

    async def answer():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(documents.RequestTask, "result", lambda self, *arguments: result(*arguments))
            response = await jobs.answer(None, job)
        return response, b"".join([part async for part in response.body_iterator])

    return asyncio.run(answer())


def test_an_answer_has_all_corrections(make):
    jobs = make()
    job = send(jobs)
    assert refusal_of(asyncio.run, jobs.answer(None, job)) == (503, "The document is not translated yet", 5)
    jobs.context.worker_pool.run()
    response, content = result_of(jobs, job)
    assert content == b"I SING.\n\nYOU SING.\n" and response.media_type == "text/plain"
    assert {name: value for name, value in response.headers.items() if name != "content-type"} == {
        "content-disposition": 'attachment; filename="a_es.txt"',
        "x-content-type-options": "nosniff",
        "content-length": str(len(content)),
    }
    jobs.correct(job, {1: Target(TaggedText("Cantas."), "person")})
    assert (job.corrections, job.written_corrections) == (1, 0)
    assert result_of(jobs, job)[1] == b"I SING.\n\nCantas.\n" and job.written_corrections == 1
    before = job.files.result
    assert result_of(jobs, job)[1] == b"I SING.\n\nCantas.\n" and job.files.result == before
    documents.write_result(job)  # nothing has changed since the last write
    assert job.files.result == before
