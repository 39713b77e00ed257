"""Documents over HTTP: jobs with progress, bounds, an end, and nothing left behind."""

import io
import threading
import time
from types import SimpleNamespace

import pytest

from translucid.serving import document_jobs, job_files, texts
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
        ("a.txt", b"x\n" * 60, {}, 400, "60 segments"),
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


def test_a_failure_of_ours_is_told_as_one(client, monkeypatch, caplog):
    monkeypatch.setattr(texts, "SegmentTranslator", lambda *_, **__: 1 / 0)
    told = ended(client, send(client).json())
    assert told["state"] == "failed"
    assert "Internal error" in told["error"] and "zero" not in told["error"]
    assert "ZeroDivisionError" in caplog.text


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
