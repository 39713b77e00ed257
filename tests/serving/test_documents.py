"""Documents over HTTP: jobs with progress, bounds, an end, and nothing left behind."""

import errno
import io
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import SpooledTemporaryFile
from types import SimpleNamespace

import pytest

from translucid.documents.document import Segment, Target
from translucid.documents.kinds import read_document
from translucid.documents.marked import Mark, Marked, Side
from translucid.ground.stopping import Stopped
from translucid.serving import app as application
from translucid.serving import document_jobs, editing, job_files, texts
from translucid.serving.document_jobs import DocumentJobs
from translucid.serving.job_files import JobFiles
from translucid.translator import Translator

LANGUAGES = {"source": "en", "target": "es"}


def send(client, content=b"I sing.\n\nYou sing.\n", name="a.txt", path="/documents", **fields):
    return client.post(path, data={**LANGUAGES, **fields}, files={"file": (name, content)})


def until(true, seconds=60):
    end = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return found


def ended(client, job):
    def told():
        answer = client.get(f"/documents/{job['id']}").json()
        return answer if answer["state"] not in ("waiting", "translating") else None

    return until(told)


@pytest.fixture
def jobs(monkeypatch):
    """The jobs of servers, as they are made."""
    made = []
    begin = DocumentJobs.__init__

    def watched(self, desk):
        begin(self, desk)
        made.append(self)

    monkeypatch.setattr(DocumentJobs, "__init__", watched)
    return made


@pytest.fixture
def held(monkeypatch):
    """Keeps documents from being translated until it is set."""
    go = threading.Event()
    stream = document_jobs.translated

    def waiting(*given):
        while not go.wait(0.01):
            document_jobs.between_steps()
        return stream(*given)

    monkeypatch.setattr(document_jobs, "translated", waiting)
    yield go
    go.set()


def test_a_file_comes_back_translated(client, run):
    of = {text: Translator.load(run).translate(text).text for text in ("You sing.", "I sing.")}
    answer = send(client, path="/translate_file")
    assert answer.status_code == 200, answer.text
    url = answer.json()["translatedFileUrl"]
    for _ in range(2):
        found = client.get(url)
        assert found.text == f"{of['I sing.']}\n\n{of['You sing.']}\n"
        assert found.headers["content-disposition"] == 'attachment; filename="a_es.txt"'
        assert found.headers["x-content-type-options"] == "nosniff"
    page = send(client, b'<p title="I sing.">You sing.</p>', "a.html", path="/translate_file").json()
    assert client.get(page["translatedFileUrl"]).text == f'<p title="{of["I sing."]}">{of["You sing."]}</p>'
    formats = client.get("/frontend/settings").json()
    assert formats["filesTranslation"] is True
    assert {".txt", ".html"} <= set(formats["supportedFilesFormat"])
    for ending in (".txt", ".html"):
        assert send(client, b"", f"a{ending}", path="/translate_file").status_code == 200


def test_a_file_of_an_unknown_language(client):
    spanish = "Los niños leen un libro en el jardín.\n".encode()
    english = b"The children are reading a book in the garden.\n"
    for content, code, same in ((spanish, "es", True), (english, "en", False)):
        told = ended(client, send(client, content, source="auto").json())
        assert (told["state"], told["source"]) == ("done", code)
        assert (client.get(f"/documents/{told['id']}/result").content == content) is same


@pytest.mark.parametrize(
    ("name", "content", "fields", "status", "said"),
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
def test_what_is_wrong_is_said(serve, name, content, fields, status, said):
    client = serve(file_bytes=1000, document_segments=50)
    answer = send(client, content, name, path="/translate_file", **fields)
    assert answer.status_code == status, answer.text
    assert said in answer.json().get("error", "")


def test_a_form_without_a_file(client):
    answer = client.post("/translate_file", data=LANGUAGES, files={"other": ("a.txt", b"x")})
    assert answer.status_code == 400
    assert "missing file" in answer.json()["error"]


def test_progress(client, held):
    job = send(client).json()
    told = until(lambda: (one := client.get(f"/documents/{job['id']}").json())["segments"] and one)
    assert told["state"] == "translating"
    assert (told["segments"], told["done"]) == (2, 0)
    assert client.get(f"/documents/{job['id']}/result").status_code == 503
    held.set()
    told = ended(client, job)
    assert (told["state"], told["done"], told["kind"], told["name"]) == ("done", 2, "text", "a.txt")
    assert client.get(f"/documents/{job['id']}/result").status_code == 200


def test_cancelling_ends_the_work_and_deletes_the_files(client, held, jobs, serve):
    client = serve()
    (own,) = jobs
    job = send(client).json()
    until(lambda: client.get(f"/documents/{job['id']}").json()["state"] == "translating")
    assert list(own.folder.iterdir())
    assert client.delete(f"/documents/{job['id']}").json() == {"state": "cancelled"}
    until(lambda: own.working == 0)
    assert not list(own.folder.iterdir())
    assert client.get(f"/documents/{job['id']}").status_code == 404


def test_one_that_waits_can_be_cancelled(serve, held, jobs):
    client = serve()
    sent = [send(client).json() for _ in range(4)]
    assert client.get(f"/documents/{sent[3]['id']}").json()["state"] == "waiting"
    client.delete(f"/documents/{sent[3]['id']}")
    held.set()
    assert [ended(client, one)["state"] for one in sent[:3]] == ["done"] * 3
    assert len(list(jobs[0].folder.iterdir())) == 3


def test_there_are_only_so_many(serve, held, monkeypatch):
    client = serve(documents=3)
    sent = [send(client) for _ in range(4)]
    assert [one.status_code for one in sent] == [200, 200, 200, 503]
    assert sent[3].headers["retry-after"]
    monkeypatch.setattr(document_jobs, "SHARE", 1)
    client = serve(documents=3)
    assert [send(client).status_code for _ in range(2)] == [200, 503]


def test_the_time_has_an_end(serve, held):
    client = serve(document_seconds=0.1)
    told = ended(client, send(client).json())
    assert told["state"] == "cancelled"
    assert "more than 0.1 seconds" in told["error"]
    assert send(client, path="/translate_file").status_code == 503


def test_nobody_asks_and_it_is_forgotten(serve, jobs, monkeypatch):
    client = serve(keep_seconds=0.2)
    job = ended(client, send(client).json())
    assert list(jobs[0].folder.iterdir())
    time.sleep(0.3)
    jobs[0].tidy_up()
    assert not list(jobs[0].folder.iterdir())
    assert client.get(f"/documents/{job['id']}").status_code == 404
    monkeypatch.setattr(document_jobs, "KEPT", 2)
    client = serve()
    sent = [ended(client, send(client).json()) for _ in range(4)]
    assert [client.get(f"/documents/{one['id']}").status_code for one in sent] == [404, 404, 200, 200]
    monkeypatch.setattr(document_jobs, "KEPT", 200)
    monkeypatch.setattr(document_jobs, "KEPT_BYTES", 60_000)
    client = serve()
    sent = [ended(client, send(client, b"1" * 25_000 + b"\n").json()) for _ in range(3)]
    jobs[-1].tidy_up()
    assert [client.get(f"/documents/{one['id']}").status_code for one in sent] == [404, 404, 200]


def test_long_segments_come_a_few_at_a_time(client, monkeypatch):
    monkeypatch.setattr(job_files, "MOST_CHARACTERS", 20)
    job = ended(client, send(client, b"I like soccer.\n" * 5).json())
    rows = client.get(f"/documents/{job['id']}/segments").json()
    assert [row["number"] for row in rows] == [0, 1]
    assert client.get(f"/documents/{job['id']}/result").text.count("\n") == 5


def test_nothing_is_left_when_the_server_ends(serve, jobs, held):
    client = serve()
    send(client), send(client)
    (own,) = jobs
    assert own.folder.stat().st_mode & 0o777 == 0o700
    client.__exit__(None, None, None)
    assert not own.folder.exists()
    client.__enter__ = lambda *_: None
    client.__exit__ = lambda *_: None


def test_names_are_never_paths(serve, jobs):
    client = serve()
    for name in ("../../etc/a.txt", "/srv/a.txt", "..\\..\\a.txt", "C:\\a.txt", "a\0b.txt", "x" * 500 + ".txt"):
        told = ended(client, send(client, name=name).json())
        assert told["state"] == "done"
        assert "/" not in told["name"] and "\\" not in told["name"] and len(told["name"]) <= 200
    inside = sorted(path.relative_to(jobs[0].folder) for path in jobs[0].folder.rglob("*"))
    assert all(len(path.parts[0]) == 32 for path in inside)
    assert {path.name for path in inside if len(path.parts) > 1} == {"document", "result", "segments.sqlite"}


def test_others_are_served_meanwhile(client):
    long = send(client, b"The children are reading a book in the garden.\n" * 3000).json()
    until(lambda: client.get(f"/documents/{long['id']}").json()["done"] > 0)
    begun = time.monotonic()
    for _ in range(5):
        assert client.post("/translate", json={"q": "I sing", **LANGUAGES}).status_code == 200
    assert client.get(f"/documents/{long['id']}").json()["state"] == "translating", "it was too short for this test"
    assert time.monotonic() - begun < 30
    client.delete(f"/documents/{long['id']}")


def test_segments_are_read_and_corrected(client, run):
    job = ended(client, send(client, b"<p>I <b>sing</b>.<br>And you?</p><p>You sing.</p>", "a.html").json())
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
    result = client.get(f"/documents/{job['id']}/result").text
    assert result == f"<p><b>Canto</b> yo &amp; tú.<br> ¿Y &lt;tú&gt;?</p><p>{rows[1]['target']}</p>"
    for text, said in (
        ("⟨1⟩Canto⟨/1⟩", "⟨2/⟩ is missing"),
        ("⟨1⟩Canto⟨1⟩ ⟨/1⟩ ⟨2/⟩", "⟨1⟩ is there twice"),
        ("⟨/1⟩Canto⟨1⟩ ⟨2/⟩", "⟨/1⟩ does not close"),
        (" ", "empty"),
    ):
        refused = correct(0, text)
        assert refused.status_code == 400
        assert said in refused.json()["error"]
    assert correct(2, "x").status_code == 404
    assert client.get(f"/documents/{job['id']}/result").text == result


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
    job = ended(client, send(client, content, name).json())
    text = "Yo\n\n3\n00:00:05,000 --> 00:00:06,000\r\n# canto |.\u2028"
    assert client.put(f"/documents/{job['id']}/segments/0", json={"text": text}).status_code == 200
    after = client.get(f"/documents/{job['id']}/result").content
    again = read_document(name, after, ("en", "es")).segments
    assert len(again) == 2 and "canto" in (again[0].existing or again[0].source.text)


@pytest.mark.parametrize(("asked", "work"), [("segments", "rows"), ("result", "sent")])
def test_what_is_deleted_while_it_is_asked_for_is_not_there(serve, jobs, monkeypatch, asked, work):
    client = serve()
    job = ended(client, send(client).json())
    (own,) = jobs
    begin = getattr(JobFiles, work)

    def deleted_before(self, *given, **named):
        own.delete(own.jobs[job["id"]])
        return begin(self, *given, **named)

    monkeypatch.setattr(JobFiles, work, deleted_before)
    answer = client.get(f"/documents/{job['id']}/{asked}")
    assert (answer.status_code, answer.json()) == (404, {"error": "There is no such file, or not any more"})
    assert not any(own.folder.iterdir())


def test_a_document_that_is_being_sent_comes_whole(tmp_path):
    files = JobFiles(tmp_path / "job", io.BytesIO(b"x"))
    files.keep(b"a" * 200_000)
    parts, size = files.sent()
    begun = next(parts)
    files.delete()
    assert size == 200_000 and begun + b"".join(parts) == b"a" * 200_000
    assert not any(tmp_path.iterdir())


def test_what_a_person_writes_meanwhile_stays(client, held):
    job = send(client).json()
    until(lambda: client.get(f"/documents/{job['id']}").json()["segments"])
    client.put(f"/documents/{job['id']}/segments/1", json={"text": "Tú cantas."})
    held.set()
    ended(client, job)
    assert client.get(f"/documents/{job['id']}/result").text.endswith("\n\nTú cantas.\n")


@pytest.fixture
def reading(monkeypatch):
    """Downloads wait, while they read the document anew, until its event is set; `begun` counts them."""
    state = SimpleNamespace(go=threading.Event(), begun=0)
    read = document_jobs.read_document

    def slowly(*given):
        state.begun += 1
        while not state.go.wait(0.01):
            document_jobs.between_steps()
        return read(*given)

    monkeypatch.setattr(document_jobs, "read_document", slowly)
    state.go.set()  # the document is read once to be translated
    yield state
    state.go.set()


def corrected(client, job, text):
    assert client.put(f"/documents/{job['id']}/segments/0", json={"text": text}).status_code == 200


def result(client, job):
    return client.get(f"/documents/{job['id']}/result").text


@pytest.mark.parametrize("error", [Stopped(), OSError("no such luck")])
def test_a_download_that_fails_costs_no_correction(client, monkeypatch, error):
    job = ended(client, send(client).json())
    result(client, job)
    corrected(client, job, "Yo canto.")
    read = document_jobs.read_document
    coming = iter([error])

    def failing(*given):
        if error := next(coming, None):
            raise error
        return read(*given)

    monkeypatch.setattr(document_jobs, "read_document", failing)
    assert client.get(f"/documents/{job['id']}/result").status_code in (500, 503)
    assert result(client, job).startswith("Yo canto.\n")


def test_downloads_at_once_have_every_correction(client, reading):
    job = ended(client, send(client).json())
    corrected(client, job, "Yo canto.")
    reading.go.clear()
    with ThreadPoolExecutor(3) as pool:
        downloads = [pool.submit(result, client, job) for _ in range(3)]
        until(lambda: reading.begun >= 3)
        reading.go.set()
        assert {download.result().split("\n")[0] for download in downloads} == {"Yo canto."}


def test_an_earlier_download_does_not_bring_an_old_text_back(client, jobs, run, reading, monkeypatch, serve):
    client = serve()
    job = ended(client, send(client).json())
    corrected(client, job, "Primero.")
    keep, held = JobFiles.keep, threading.Event()

    def slowly(self, content):  # the first download comes to its end after the second one
        if content.startswith(b"Primero"):
            held.set()
            until(lambda: own.jobs[job["id"]].corrections == 2)
            time.sleep(0.2)
        keep(self, content)

    (own,) = jobs
    monkeypatch.setattr(JobFiles, "keep", slowly)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(result, client, job)
        until(held.is_set)
        own.jobs[job["id"]].files.accept({0: Target(Marked("Segundo."), "person")})
        own.jobs[job["id"]].corrections += 1
        second = pool.submit(result, client, job)
        assert first.result().startswith(("Primero.", "Segundo."))
        assert second.result().startswith("Segundo.")
    assert result(client, job).startswith("Segundo.")


def test_many_tags_are_shown_and_read_off_the_event_loop_in_linear_time(client, jobs, serve, monkeypatch):
    spent = []

    def watched(work):
        def watching(*given):
            assert threading.current_thread().name.startswith("workshop")
            begun = time.thread_time()
            try:
                return work(*given)
            finally:
                spent[-1] += time.thread_time() - begun

        return watching

    for name in ("read_shown", "shown", "tags_of"):
        monkeypatch.setattr(editing, name, watched(getattr(editing, name)))
    client = serve()
    (own,) = jobs
    for count in (500, 4000):
        job = own.jobs[ended(client, send(client).json())["id"]]
        marks = [Mark(0, "<b>" if i % 2 == 0 else "</b>", list(Side)[i % 2], i // 2) for i in range(2 * count)]
        source = Marked("I sing.", tuple(marks))
        (job.files.folder / "segments.sqlite").unlink()
        job.files.begin([Segment(source, "line 1")])
        job.files.translated([(0, Target(source))])
        spent.append(0.0)
        (row,) = client.get(f"/documents/{job.id}/segments").json()
        assert row["target"] == row["source"] and len(row["tags"]) == 2 * count
        answer = client.put(f"/documents/{job.id}/segments/0", json={"text": "⟨99999⟩" * count})
        assert (answer.status_code, "⟨1⟩ is missing" in answer.json()["error"]) == (400, True)
    assert spent[1] < 30 * spent[0] + 0.1


def test_a_segment_of_too_many_tags_is_refused(client, monkeypatch):
    monkeypatch.setattr(document_jobs, "MOST_MARKS", 10)
    told = ended(client, send(client, b"<p>I sing" + b" <i>a</i>" * 6 + b" song.</p>", "a.html").json())
    assert (told["state"], "more than 10 tags" in told["error"]) == ("failed", True)


def test_a_long_tag_is_shown_in_short(client):
    image = b'<img src="data:image/png;base64,' + b"A" * 5000 + b'">'
    job = ended(client, send(client, b"<p>I sing " + image + b" now.</p>", "a.html").json())
    (row,) = client.get(f"/documents/{job['id']}/segments").json()
    (tag,) = row["tags"].values()
    assert tag.startswith('<img src="data:') and len(tag) < 1100
    assert image.decode() in result(client, job)


def test_what_disappears_while_files_are_counted_counts_nothing(tmp_path):
    files = JobFiles(tmp_path / "job", io.BytesIO(b"12345"))
    (files.folder / "segments.sqlite-journal").symlink_to("nowhere")  # its figures can't be had, as of one just deleted
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
    (own,) = jobs
    job = ended(client, send(client).json())
    monkeypatch.setattr(DocumentJobs, "tidy_up", failing)
    until(lambda: "strange" in caplog.text)
    until(lambda: job["id"] not in own.jobs)
    assert not list(own.folder.iterdir())


def test_documents_come_in_when_the_folder_was_cleared_away(serve, jobs):
    client = serve()
    (own,) = jobs
    ended(client, send(client).json())
    shutil.rmtree(own.folder)
    assert ended(client, send(client).json())["state"] == "done"
    assert own.folder.stat().st_mode & 0o777 == 0o700


class FullDisk(io.BytesIO):
    """A document that comes in until the disk is full."""

    def read(self, size=-1):
        if self.tell():
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().read(3)


def test_a_full_disk_is_no_fault_of_the_request_and_nothing_is_left(client, jobs, tmp_path, serve, monkeypatch):
    with pytest.raises(OSError, match="space"):
        JobFiles(tmp_path / "job", FullDisk(b"123456"))
    files = JobFiles(tmp_path / "other", io.BytesIO(b"1"))
    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="space"):
        files.keep(b"result")
    assert [path.name for path in tmp_path.rglob("*")] == ["other", "document"]
    client = serve()
    told = ended(client, send(client).json())
    assert (told["state"], "disk is full" in told["error"]) == ("failed", True)
    assert client.get(f"/documents/{told['id']}/result").status_code == 503
    monkeypatch.setattr(SpooledTemporaryFile, "write", full)
    refused = send(client)
    assert (refused.status_code, "disk is full" in refused.json()["error"]) == (503, True)


def full(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_failure_of_ours_is_told_as_one(client, monkeypatch, caplog):
    monkeypatch.setattr(texts, "SegmentTranslator", lambda *_, **__: 1 / 0)
    told = ended(client, send(client).json())
    assert told["state"] == "failed"
    assert "Internal error" in told["error"] and "zero" not in told["error"]
    assert "ZeroDivisionError" in caplog.text
    assert client.get(f"/documents/{told['id']}/result").status_code == 500
    answer = send(client, path="/translate_file")
    assert (answer.status_code, "Internal error" in answer.json()["error"]) == (500, True)


def test_short_requests_go_first_for_some_time(monkeypatch):
    served = SimpleNamespace(batcher=SimpleNamespace(sentences=1))
    begun = time.monotonic()
    document_jobs._give_way(served, 0.3)
    assert 0.3 <= time.monotonic() - begun < 5
    steps = []

    def step():
        steps.append(1)
        served.batcher.sentences = 5 - len(steps)

    monkeypatch.setattr(document_jobs, "between_steps", step)
    document_jobs._give_way(served, 1000)  # until nobody waits
    assert len(steps) == 5
