"""A document's segments over HTTP: they are listed and corrected, and each later download contains the corrections."""

import io
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from bitext.cancellation import Cancelled
from bitext.documents.document import Segment, Target, read_document
from bitext.documents.tagged_text import Mark, Side, TaggedText
from tests.growth import assert_linear_seconds
from translucid.api.translator import Translator
from translucid.serving import documents
from translucid.serving.job_files import JobFiles
from translucid.serving.routes import editing

from .test_documents import finished_job, send, wait_until


def test_segments_are_read_and_corrected(client, run):
    job = finished_job(client, send(client, b"<p>I <b>sing</b>.<br>And you?</p><p>You sing.</p>", "a.html").json())
    rows = client.get(f"/documents/{job['id']}/segments").json()
    assert [row["source"] for row in rows] == ["I ⟨1⟩sing⟨/1⟩. ⟨2/⟩And you?", "You sing."]
    assert rows[0]["tags"] == {"⟨1⟩": "<b>", "⟨/1⟩": "</b>", "⟨2/⟩": "<br>"}
    assert rows[1]["target"] == Translator.load(run).translate("You sing.").text
    assert (rows[1]["origin"], rows[1]["accepted"]) == ("model", False)
    assert client.get(f"/documents/{job['id']}/segments?first=1&count=1").json() == rows[1:]

    def correct(number, text):
        return client.put(f"/documents/{job['id']}/segments/{number}", json={"text": text})

    row = correct(0, "⟨1⟩Canto⟨/1⟩ yo & tú.⟨2/⟩ ¿Y <tú>?").json()
    assert (row["origin"], row["accepted"], row["target"]) == ("person", True, "⟨1⟩Canto⟨/1⟩ yo & tú.⟨2/⟩ ¿Y <tú>?")
    result_text = client.get(f"/documents/{job['id']}/result").text
    assert result_text == f"<p><b>Canto</b> yo &amp; tú.<br> ¿Y &lt;tú&gt;?</p><p>{rows[1]['target']}</p>"
    for text, message in (
        ("⟨1⟩Canto⟨/1⟩", "⟨2/⟩ is missing"),
        ("⟨1⟩Canto⟨1⟩ ⟨/1⟩ ⟨2/⟩", "⟨1⟩ is there twice"),
        ("⟨/1⟩Canto⟨1⟩ ⟨2/⟩", "⟨/1⟩ does not close"),
        (" ", "empty"),
    ):
        response = correct(0, text)
        assert response.status_code == 400
        assert message in response.json()["error"]
    assert correct(2, "x").status_code == 404
    assert client.get(f"/documents/{job['id']}/result").text == result_text


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.srt", b"1\n00:00:01,000 --> 00:00:02,000\nI sing.\n\n2\n00:00:03,000 --> 00:00:04,000\nYou sing.\n"),
        ("a.vtt", b"WEBVTT\n\n00:01.000 --> 00:02.000\nI sing.\n\n00:03.000 --> 00:04.000\nYou sing.\n"),
        ("a.txt", b"I sing.\nYou sing.\n"),
        ("a.md", b"| I sing. |\n|-|\n| You sing. |\n"),
        ("a.csv", b"en,es\nI sing.,\nYou sing.,\n"),
        ("a.po", b'msgid "I sing."\nmsgstr ""\n\nmsgid "You sing."\nmsgstr ""\n'),
    ],
)
def test_line_ends_in_a_correction_break_no_document(client, name, content):
    job = finished_job(client, send(client, content, name).json())
    text = "Yo\n\n3\n00:00:05,000 --> 00:00:06,000\r\n# canto |.\u2028"
    assert client.put(f"/documents/{job['id']}/segments/0", json={"text": text}).status_code == 200
    result_content = client.get(f"/documents/{job['id']}/result").content
    reread = read_document(name, result_content, ("en", "es")).segments
    assert len(reread) == 2 and "canto" in (reread[0].existing or reread[0].source).text


@pytest.mark.parametrize(("path", "method"), [("segments", "rows"), ("result", "open_result")])
def test_what_is_deleted_while_it_is_asked_for_is_not_there(serve, jobs, monkeypatch, path, method):
    client = serve()
    job = finished_job(client, send(client).json())
    (job_store,) = jobs
    original = getattr(JobFiles, method)

    def delete_first(self, *arguments, **keywords):
        job_store.delete(job_store.jobs[job["id"]])
        return original(self, *arguments, **keywords)

    monkeypatch.setattr(JobFiles, method, delete_first)
    response = client.get(f"/documents/{job['id']}/{path}")
    assert (response.status_code, response.json()) == (404, {"error": "There is no such file, or not any more"})
    assert not any(job_store.folder.iterdir())


def test_a_document_that_is_being_sent_comes_whole(tmp_path):
    files = JobFiles(tmp_path / "job", io.BytesIO(b"x"))
    files.store_result(b"a" * 200_000)
    parts, size = files.open_result()
    first_part = next(parts)
    files.delete()
    assert size == 200_000 and first_part + b"".join(parts) == b"a" * 200_000
    assert not any(tmp_path.iterdir())


def test_what_a_person_writes_meanwhile_stays(client, release):
    job = send(client).json()
    wait_until(lambda: client.get(f"/documents/{job['id']}").json()["segments"])
    client.put(f"/documents/{job['id']}/segments/1", json={"text": "Tú cantas."})
    release.set()
    finished_job(client, job)
    assert client.get(f"/documents/{job['id']}/result").text.endswith("\n\nTú cantas.\n")


@pytest.fixture
def reading(monkeypatch):
    """Downloads that reread the document wait until `go` is set; `begun` counts them."""
    state = SimpleNamespace(go=threading.Event(), begun=0)
    read = documents.read_document

    def read_slowly(*arguments):
        state.begun += 1
        while not state.go.wait(0.01):
            documents.between_steps()
        return read(*arguments)

    monkeypatch.setattr(documents, "read_document", read_slowly)
    state.go.set()  # so that the first reading, for the translation, does not wait
    yield state
    state.go.set()


def correct_first(client, job, text):
    assert client.put(f"/documents/{job['id']}/segments/0", json={"text": text}).status_code == 200


def download_result(client, job):
    return client.get(f"/documents/{job['id']}/result").text


@pytest.mark.parametrize("error", [Cancelled(), OSError("no such luck")])
def test_a_download_that_fails_costs_no_correction(client, monkeypatch, error):
    job = finished_job(client, send(client).json())
    download_result(client, job)
    correct_first(client, job, "Yo canto.")
    read = documents.read_document
    errors = iter([error])

    def fail_once(*arguments):
        if error := next(errors, None):
            raise error
        return read(*arguments)

    monkeypatch.setattr(documents, "read_document", fail_once)
    assert client.get(f"/documents/{job['id']}/result").status_code in (500, 503)
    assert download_result(client, job).startswith("Yo canto.\n")


def test_downloads_at_once_have_every_correction(client, reading):
    job = finished_job(client, send(client).json())
    correct_first(client, job, "Yo canto.")
    reading.go.clear()
    with ThreadPoolExecutor(3) as pool:
        downloads = [pool.submit(download_result, client, job) for _ in range(3)]
        wait_until(lambda: reading.begun >= 3)
        reading.go.set()
        assert {download.result().split("\n")[0] for download in downloads} == {"Yo canto."}


def test_an_earlier_download_does_not_bring_an_old_text_back(client, jobs, run, reading, monkeypatch, serve):
    client = serve()
    job = finished_job(client, send(client).json())
    correct_first(client, job, "Primero.")
    keep, started = JobFiles.store_result, threading.Event()

    def keep_slowly(self, content):  # makes the first download finish after the second
        if content.startswith(b"Primero"):
            started.set()
            wait_until(lambda: job_store.jobs[job["id"]].corrections == 2)
            time.sleep(0.2)
        keep(self, content)

    (job_store,) = jobs
    monkeypatch.setattr(JobFiles, "store_result", keep_slowly)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(download_result, client, job)
        wait_until(started.is_set)
        job_store.jobs[job["id"]].files.store([(0, Target(TaggedText("Segundo."), "person"))], accepted=True)
        job_store.jobs[job["id"]].corrections += 1
        second = pool.submit(download_result, client, job)
        assert first.result().startswith(("Primero.", "Segundo."))
        assert second.result().startswith("Segundo.")
    assert download_result(client, job).startswith("Segundo.")


def test_many_tags_are_shown_and_read_off_the_event_loop_in_linear_time(jobs, serve, monkeypatch):
    thread_seconds = []

    def timed(work):
        def run_timed(*arguments):
            assert threading.current_thread().name.startswith("worker_pool")
            started = time.thread_time()
            try:
                return work(*arguments)
            finally:
                thread_seconds.append(time.thread_time() - started)

        return run_timed

    for name in ("read_shown", "shown", "tags_of"):
        monkeypatch.setattr(editing, name, timed(getattr(editing, name)))
    client = serve()
    (job_store,) = jobs
    job = job_store.jobs[finished_job(client, send(client).json())["id"]]

    def seconds(count):
        marks = []
        for pair in range(count):
            marks += [Mark(0, "<b>", Side.opens, pair), Mark(0, "</b>", Side.closes, pair)]
        source = TaggedText("I sing.", tuple(marks))
        (job.files.folder / "segments.sqlite").unlink()
        job.files.store_segments([Segment(source, "line 1")])
        job.files.store([(0, Target(source))])
        thread_seconds.clear()
        (row,) = client.get(f"/documents/{job.id}/segments").json()
        assert row["target"] == row["source"] and len(row["tags"]) == 2 * count
        response = client.put(f"/documents/{job.id}/segments/0", json={"text": "⟨99999⟩" * count})
        assert (response.status_code, "⟨1⟩ is missing" in response.json()["error"]) == (400, True)
        return sum(thread_seconds)

    assert_linear_seconds(seconds, 300, 2400)


def test_a_segment_of_too_many_tags_is_refused(client, monkeypatch):
    monkeypatch.setattr(documents, "MOST_MARKS", 10)
    state = finished_job(client, send(client, b"<p>I sing" + b" <i>a</i>" * 6 + b" song.</p>", "a.html").json())
    assert (state["state"], "more than 10 tags" in state["error"]) == ("failed", True)


def test_a_long_tag_is_shown_in_short(client):
    image = b'<img src="data:image/png;base64,' + b"A" * 5000 + b'">'
    job = finished_job(client, send(client, b"<p>I sing " + image + b" now.</p>", "a.html").json())
    (row,) = client.get(f"/documents/{job['id']}/segments").json()
    (tag,) = row["tags"].values()
    assert tag.startswith('<img src="data:') and len(tag) < 1100
    assert image.decode() in download_result(client, job)
