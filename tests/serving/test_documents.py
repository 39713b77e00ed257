"""Documents over HTTP: jobs report progress, are bounded, end, and leave no files behind."""

import errno
import io
import shutil
import threading
import time
from pathlib import Path
from tempfile import SpooledTemporaryFile
from types import SimpleNamespace

import pytest

from translucid.api.translator import Translator
from translucid.serving import app as application
from translucid.serving import documents, job_files, texts
from translucid.serving.documents import DocumentJobs, Job, disposition
from translucid.serving.job_files import JobFiles

LANGUAGES = {"source": "en", "target": "es"}


def send(client, content=b"I sing.\n\nYou sing.\n", name="a.txt", path="/documents", **fields):
    return client.post(path, data={**LANGUAGES, **fields}, files={"file": (name, content)})


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return value


def finished_job(client, job):
    def finished_state():
        state = client.get(f"/documents/{job['id']}").json()
        return state if state["state"] not in ("waiting", "translating") else None

    return wait_until(finished_state)


def test_a_file_comes_back_translated(client, run):
    translations = {text: Translator.load(run).translate(text).text for text in ("You sing.", "I sing.")}
    response = send(client, path="/translate_file")
    assert response.status_code == 200, response.text
    url = response.json()["translatedFileUrl"]
    for _ in range(2):
        download = client.get(url)
        assert download.text == f"{translations['I sing.']}\n\n{translations['You sing.']}\n"
        assert download.headers["content-disposition"] == 'attachment; filename="a_es.txt"'
        assert download.headers["x-content-type-options"] == "nosniff"
    html_job = send(client, b'<p title="I sing.">You sing.</p>', "a.html", path="/translate_file").json()
    assert (
        client.get(html_job["translatedFileUrl"]).text
        == f'<p title="{translations["I sing."]}">{translations["You sing."]}</p>'
    )
    formats = client.get("/frontend/settings").json()
    assert formats["filesTranslation"] is True
    assert {".txt", ".html"} <= set(formats["supportedFilesFormat"])
    for ending in (".txt", ".html"):
        assert send(client, b"", f"a{ending}", path="/translate_file").status_code == 200


def test_a_file_of_an_unknown_language(client):
    spanish = "Los niños leen un libro en el jardín.\n".encode()
    english = b"The children are reading a book in the garden.\n"
    for content, code, same in ((spanish, "es", True), (english, "en", False)):
        state = finished_job(client, send(client, content, source="auto").json())
        assert (state["state"], state["source"]) == ("done", code)
        assert (client.get(f"/documents/{state['id']}/result").content == content) is same


@pytest.mark.parametrize(
    ("name", "content", "fields", "status", "message"),
    [
        ("a.exe", b"x", {}, 400, "no kind"),
        ("", b"x", {}, 400, ""),
        ("a.txt", b"\xff", {}, 400, "UTF-8"),
        ("a.txt", b"x", {"source": "es", "target": "en"}, 400, "not available"),
        ("a.txt", b"x", {"source": "auto", "target": "xx"}, 400, "not supported"),
        ("a.txt", b"x" * 2_000, {}, 413, "more than 1000 bytes"),
        ("a.txt", b"x" * 30_000, {}, 413, "more than"),
        ("a.html", b"<div>" * 190, {}, 200, ""),
        ("a.txt", b"x\n" * 60, {}, 400, "more than 50 texts"),
    ],
)
def test_errors_are_reported(serve, name, content, fields, status, message):
    client = serve(file_bytes=1000, document_segments=50)
    response = send(client, content, name, path="/translate_file", **fields)
    assert response.status_code == status, response.text
    assert message in response.json().get("error", "")


def test_progress(client, release):
    job = send(client).json()
    state = wait_until(lambda: (current := client.get(f"/documents/{job['id']}").json())["segments"] and current)
    assert state["state"] == "translating"
    assert (state["segments"], state["done"]) == (2, 0)
    assert client.get(f"/documents/{job['id']}/result").status_code == 503
    release.set()
    state = finished_job(client, job)
    assert (state["state"], state["done"], state["kind"], state["name"]) == ("done", 2, "text", "a.txt")
    assert client.get(f"/documents/{job['id']}/result").status_code == 200


def test_cancelling_ends_the_work_and_deletes_the_files(client, release, jobs, serve):
    client = serve()
    (job_store,) = jobs
    job = send(client).json()
    wait_until(lambda: client.get(f"/documents/{job['id']}").json()["state"] == "translating")
    assert list(job_store.folder.iterdir())
    assert client.delete(f"/documents/{job['id']}").json() == {"state": "cancelled"}
    wait_until(lambda: job_store.working == 0 and not list(job_store.folder.iterdir()))
    assert client.get(f"/documents/{job['id']}").status_code == 404


def test_the_time_for_a_document_is_limited(serve, release):
    client = serve(document_seconds=0.1)
    state = finished_job(client, send(client).json())
    assert state["state"] == "cancelled"
    assert "more than 0.1 seconds" in state["error"]
    assert send(client, path="/translate_file").status_code == 503


def test_long_segments_come_a_few_at_a_time(client, monkeypatch):
    monkeypatch.setattr(job_files, "MOST_CHARACTERS", 110)  # sources, translations and other texts of a row count
    job = finished_job(client, send(client, b"I like soccer.\n" * 5).json())
    rows = client.get(f"/documents/{job['id']}/segments").json()
    assert [row["number"] for row in rows] == [0, 1]
    assert client.get(f"/documents/{job['id']}/result").text.count("\n") == 5


def test_nothing_is_left_when_the_server_ends(serve, jobs, release):
    client = serve()
    send(client), send(client)
    (job_store,) = jobs
    assert job_store.folder.stat().st_mode & 0o777 == 0o700
    client.__exit__(None, None, None)
    assert not job_store.folder.exists()
    client.__enter__ = lambda *_: None
    client.__exit__ = lambda *_: None


def test_names_are_never_paths(serve, jobs):
    client = serve()
    for name in ("../../etc/a.txt", "/srv/a.txt", "..\\..\\a.txt", "C:\\a.txt", "a\0b.txt", "x" * 500 + ".txt"):
        state = finished_job(client, send(client, name=name).json())
        assert state["state"] == "done"
        assert "/" not in state["name"] and "\\" not in state["name"] and len(state["name"]) <= 200
    stored_paths = sorted(path.relative_to(jobs[0].folder) for path in jobs[0].folder.rglob("*"))
    assert all(len(path.parts[0]) == 32 for path in stored_paths)
    names = {path.name.partition("-")[0] for path in stored_paths if len(path.parts) > 1}
    assert names == {"document", "result", "segments.sqlite"}


def test_others_are_served_meanwhile(client):
    long_job = send(client, b"The children are reading a book in the garden.\n" * 3000).json()
    wait_until(lambda: client.get(f"/documents/{long_job['id']}").json()["done"] > 0)
    for _ in range(5):
        assert client.post("/translate", json={"q": "I sing", **LANGUAGES}).status_code == 200
    assert client.get(f"/documents/{long_job['id']}").json()["state"] == "translating", "it was too short for this test"
    client.delete(f"/documents/{long_job['id']}")


def test_what_disappears_while_files_are_counted_counts_nothing(tmp_path):
    files = JobFiles(tmp_path / "job", io.BytesIO(b"12345"))
    (files.folder / "segments.sqlite-journal").symlink_to(
        "nowhere"
    )  # its size can't be read, as if it had just been deleted
    assert files.size == 5
    files.delete()
    assert files.size == 0


def test_old_documents_are_forgotten_after_an_error_in_between(serve, jobs, monkeypatch, caplog):
    monkeypatch.setattr(application, "TIDY_SECONDS", 0.02)
    tidy, failures = DocumentJobs.tidy_up, iter([OSError("gone"), RuntimeError("strange")])

    def failing(self):
        if threading.current_thread() is not threading.main_thread() and (error := next(failures, None)):
            raise error
        tidy(self)

    client = serve(keep_seconds=0.1)
    (job_store,) = jobs
    job = finished_job(client, send(client).json())
    monkeypatch.setattr(DocumentJobs, "tidy_up", failing)
    wait_until(lambda: "strange" in caplog.text)
    wait_until(lambda: job["id"] not in job_store.jobs)
    assert not list(job_store.folder.iterdir())


def test_documents_come_in_when_the_folder_was_cleared_away(serve, jobs):
    client = serve()
    (job_store,) = jobs
    finished_job(client, send(client).json())
    shutil.rmtree(job_store.folder)
    assert finished_job(client, send(client).json())["state"] == "done"
    assert job_store.folder.stat().st_mode & 0o777 == 0o700


class FullDisk(io.BytesIO):
    """An upload during which the disk becomes full."""

    def read(self, size=-1):
        if self.tell():
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().read(3)


def test_a_full_disk_is_no_fault_of_the_request_and_nothing_is_left(client, jobs, tmp_path, serve, monkeypatch):
    with pytest.raises(OSError, match="space"):
        JobFiles(tmp_path / "job", FullDisk(b"123456"))
    files = JobFiles(tmp_path / "other", io.BytesIO(b"1"))
    monkeypatch.setattr(Path, "write_bytes", raise_disk_full)
    with pytest.raises(OSError, match="space"):
        files.store_result(b"result")
    assert [path.name for path in tmp_path.rglob("*")] == ["other", "document"]
    client = serve()
    state = finished_job(client, send(client).json())
    assert (state["state"], "disk is full" in state["error"]) == ("failed", True)
    assert client.get(f"/documents/{state['id']}/result").status_code == 503
    monkeypatch.setattr(SpooledTemporaryFile, "write", raise_disk_full)
    response = send(client)
    assert (response.status_code, "disk is full" in response.json()["error"]) == (503, True)


def raise_disk_full(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_internal_failures_are_reported_as_such(client, monkeypatch, caplog):
    monkeypatch.setattr(texts, "SegmentTranslator", lambda *_, **__: 1 / 0)
    state = finished_job(client, send(client).json())
    assert state["state"] == "failed"
    assert "Internal error" in state["error"] and "zero" not in state["error"]
    assert "ZeroDivisionError" in caplog.text
    assert client.get(f"/documents/{state['id']}/result").status_code == 500
    response = send(client, path="/translate_file")
    assert (response.status_code, "Internal error" in response.json()["error"]) == (500, True)


def test_the_estimated_time():
    job = Job("", "notes.v2.txt", None, "en", "es", None, None, {}, state="translating", started=100.0, characters=50)
    assert job.seconds_left is None and job.file_name == "notes.v2_es.txt"
    job.characters_done = 20
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(documents, "time", SimpleNamespace(monotonic=lambda: 110.0))
        assert job.seconds_left == 15
        job.state = "done"
        assert job.seconds_left is None


def test_a_document_gives_way_for_some_time_while_requests_wait(monkeypatch):
    clock, steps = SimpleNamespace(now=100.0), []
    clock.monotonic, clock.sleep = (lambda: clock.now), (lambda seconds: setattr(clock, "now", clock.now + seconds))
    monkeypatch.setattr(documents, "time", clock)
    monkeypatch.setattr(documents, "between_steps", lambda: steps.append(clock.now))
    served = SimpleNamespace(batcher=SimpleNamespace(sentences=1))
    documents._pause_for_short_requests(served, 0.025)
    assert steps == pytest.approx([100, 100.01, 100.02, 100.03])
    served.batcher.sentences = 0
    documents._pause_for_short_requests(served, 9)
    assert len(steps) == 5


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("a b.txt", 'attachment; filename="a b.txt"'),
        ("Über uns.txt", "attachment; filename*=UTF-8''%C3%9Cber%20uns.txt"),
        ('a"\r\n.txt', "attachment; filename*=UTF-8''a%22%0D%0A.txt"),
        ("a\ud800.txt", "attachment; filename*=UTF-8''a%3F.txt"),
    ],
)
def test_the_name_under_which_a_file_is_saved(name, header):
    assert disposition(name) == header
