"""Complete responses of the document routes."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from bitext.documents.document import Segment, Target
from bitext.documents.tagged_text import Mark, TaggedText
from bitext.pair import Pair
from bitext.review.review_file import read_review, written_review
from translucid.api.translator import Translator
from translucid.serving.job_files import Counts, JobFiles, Row
from translucid.serving.routes import editing

from .test_documents import finished_job, send

HTML = b"<p>I <b>sing</b>.<br>And you?</p><p>You sing.</p><p>I like \xe8\xb6\xb3\xe7\x90\x83.</p>"


@pytest.fixture(scope="module")
def client(serve_for_all):
    return serve_for_all()


@pytest.fixture(scope="module")
def translation_of(run):
    return lambda text: Translator.load(run).translate(text).text


def refusal_of(response):
    (name,) = response.json()
    return response.status_code, response.json()[name].removeprefix("Invalid request: ")


def test_the_progress_of_a_document(client):
    first = send(client, HTML, "a.html", model="tiny").json()
    progress = finished_job(client, first)
    assert progress == {
        "id": first["id"],
        "name": "a.html",
        "kind": "HTML",
        "source": "en",
        "target": "es",
        "state": "done",
        "error": "",
        "remarks": [],
        "segments": 3,
        "done": 3,
        "accepted": 0,
        "doubtful": progress["doubtful"],
        "seconds_left": None,
    }
    assert progress["doubtful"] >= 1 and set(first) == set(progress)
    assert send(client, b"", "a.txt").json()["segments"] == 0
    assert refusal_of(send(client, model="other")) == (400, "there is no model 'other' for en to es")
    without_file = client.post("/documents", data={"source": "en", "target": "es"}, files={"other": ("a.txt", b"x")})
    assert refusal_of(without_file) == (400, "missing file parameter")
    deleted = client.delete(f"/documents/{first['id']}")
    assert deleted.json() == {"state": "cancelled"}
    assert client.get(f"/documents/{first['id']}").status_code == 404


def test_a_document_that_is_done_has_its_final_counts(jobs, serve, monkeypatch):
    client = serve()
    job = finished_job(client, send(client).json())
    stored_job = jobs[-1].jobs[job["id"]]
    stored_job.state = "translating"

    def counts(files):
        stored_job.state = "done"  # as if it finished just after the segments were counted
        return Counts(0, 0)

    monkeypatch.setattr(JobFiles, "counts", counts)
    assert client.get(f"/documents/{job['id']}").json()["state"] == "translating"


def test_segments_and_corrections(client, translation_of):
    path = f"/documents/{finished_job(client, send(client, HTML, 'a.html').json())['id']}/segments"
    rows = client.get(path).json()
    defaults = {"note": None, "longest": None, "existing": None, "accepted": False}
    assert rows[1] == {
        **defaults,
        "number": 1,
        "place": rows[1]["place"],
        "source": "You sing.",
        "tags": {},
        "target": translation_of("You sing."),
        "origin": "model",
        "confidence": None,
        "doubts": rows[1]["doubts"],
    }
    assert [row["place"] for row in rows] == ["line 1"] * 3
    assert rows[0]["tags"] == {"⟨1⟩": "<b>", "⟨/1⟩": "</b>", "⟨2/⟩": "<br>"}
    corrected = client.put(f"{path}/1", json={"text": "Tú cantas."}).json()
    accepted = {**rows[1], "target": "Tú cantas.", "origin": "person", "doubts": [], "accepted": True}
    assert corrected == {**accepted, "remembered": False}
    assert client.get(path, params={"first": 1, "count": 1}).json() == [accepted]
    doubtful = [row for row in rows if row["doubts"] and row["number"] != 1]
    assert client.get(f"{path}?doubtful=1").json() == doubtful and doubtful
    assert client.get(f"{path}?doubtful=0&first=3").json() == []
    unchanged = client.put(f"{path}/2", json={"text": rows[2]["target"]}).json()
    assert unchanged == {**rows[2], "accepted": True, "remembered": False} and unchanged["doubts"]
    for query, message in (
        ("first=4", "first is more than 3"),
        ("count=501", "count is more than 500"),
        ("doubtful=2", "doubtful is more than 1"),
        ("count=x", "count is not a whole number"),
    ):
        assert refusal_of(client.get(f"{path}?{query}")) == (400, message)
    for number, text, status, message in (
        (3, "x", 404, "There is no such segment"),
        (-1, "x", 404, "There is no such segment"),
        (1, " \n", 400, "The translation is empty"),
        (1, None, 400, "missing text parameter"),
        (0, "x", 400, "⟨1⟩ is missing. Put it where it belongs."),
    ):
        assert refusal_of(client.put(f"{path}/{number}", json={"text": text})) == (status, message)
    for number in (-1, 3):
        assert refusal_of(client.get(f"{path}/{number}/hints")) == (404, "There is no such segment")
    assert client.get(f"{path}/0/hints").json() == {"matches": [], "terms": []}


def test_at_first_there_are_100_segments(client):
    job = finished_job(client, send(client, b"I\n" * 101).json())
    assert len(client.get(f"/documents/{job['id']}/segments").json()) == 100
    assert len(client.get(f"/documents/{job['id']}/segments?count=101").json()) == 101


def test_an_empty_document_has_no_segments(client):
    job = finished_job(client, send(client, b"").json())
    assert client.get(f"/documents/{job['id']}/segments").json() == []
    assert client.post(f"/documents/{job['id']}/accept", json={"rest": True}).json() == {
        "accepted": 0,
        "numbers": [],
        "problems": {},
        "remembered": False,
    }


def test_a_document_that_is_not_read_yet(jobs, serve, monkeypatch):
    client = serve()
    job = finished_job(client, send(client).json())
    stored_job = jobs[-1].jobs[job["id"]]
    stored_job.segments = 0
    stored_job.ended.clear()
    for path in ("segments", "segments/0/hints"):
        response = client.get(f"/documents/{job['id']}/{path}")
        assert refusal_of(response) == (503, "The document is not read yet") and response.headers["retry-after"] == "2"
    stored_job.error = "It is wrong"
    assert refusal_of(client.get(f"/documents/{job['id']}/segments")) == (503, "It is wrong")
    stored_job.ended.set()


@pytest.mark.parametrize(
    ("texts", "status", "message"),
    [
        (["a"], 400, "texts does not name translations by the number of their segment"),
        ({"0": 3}, 400, "texts does not name translations by the number of their segment"),
        ({"0": " "}, 400, "texts does not name translations by the number of their segment"),
        ({"x": "a"}, 400, "texts does not name translations by the number of their segment"),
        ({"-1": "a"}, 400, "texts does not name translations by the number of their segment"),
        ({"٣": "a"}, 400, "texts does not name translations by the number of their segment"),
        ({f"{0:010}": "a"}, 400, "texts does not name translations by the number of their segment"),
        ({f"{i}": "a" for i in range(501)}, 400, "501 texts exceed the limit of 500"),
        ({"3": "a"}, 404, "There is no such segment"),
    ],
)
def test_accepted_texts_that_are_refused(client, texts, status, message):
    job = finished_job(client, send(client, HTML, "a.html").json())
    response = client.post(f"/documents/{job['id']}/accept", json={"texts": texts})
    assert refusal_of(response) == (status, message)


def test_numbers_of_segments():
    texts = {f"{i:09}": "a" for i in range(500)}
    assert editing.AcceptSeveralFields.of({"texts": texts}, None).texts == dict.fromkeys(range(500), "a")
    assert editing.AcceptSeveralFields.of({}, None).texts == {}


def test_accepting_several_translations(client):
    path = f"/documents/{finished_job(client, send(client, HTML, 'a.html').json())['id']}"
    rows = client.get(f"{path}/segments").json()
    without_warnings = [row["number"] for row in rows if not row["doubts"] and row["number"] > 1]
    texts = {"texts": {"0": "sin marcas", "1": "Tú cantas."}}
    answer = client.post(f"{path}/accept", json=texts).json()
    problem = {"0": "⟨1⟩ is missing. Put it where it belongs."}
    assert answer == {"accepted": 1, "numbers": [1], "problems": problem, "remembered": False}
    answer = client.post(f"{path}/accept", json={**texts, "rest": True}).json()
    numbers = [1, *without_warnings]
    assert answer == {"accepted": len(numbers), "numbers": numbers, "problems": problem, "remembered": False}
    answer = client.post(f"{path}/accept", json={"rest": True, "doubtful": True}).json()
    numbers = [0] + [2] * (not without_warnings)
    assert answer == {"accepted": len(numbers), "numbers": numbers, "problems": {}, "remembered": False}
    reviewed = client.get(f"{path}/segments").json()
    assert [row["accepted"] for row in reviewed] == [True] * 3
    assert [row["origin"] for row in reviewed] == ["model", "person", "model"]
    assert [row["doubts"] for row in reviewed] == [rows[0]["doubts"], [], rows[2]["doubts"]]
    assert [row["target"] for row in reviewed] == [rows[0]["target"], "Tú cantas.", rows[2]["target"]]
    withdrawn = client.post(f"{path}/withdraw", json={"numbers": [2, 1]}).json()
    assert withdrawn == {"segments": rows[1:], "staying": 0}
    assert client.get(f"{path}/segments").json() == [reviewed[0], *rows[1:]]
    assert client.get(f"{path}").json()["accepted"] == 1
    for name in ("rest", "doubtful"):
        invalid = client.post(f"{path}/accept", json={name: 3})
        assert refusal_of(invalid) == (400, f"{name} is neither true nor false")


@pytest.mark.parametrize(
    ("numbers", "status", "message"),
    [
        (3, 400, "numbers is not a list of numbers of segments"),
        ([True], 400, "numbers is not a list of numbers of segments"),
        ([-1], 400, "numbers is not a list of numbers of segments"),
        ([0] * 501, 400, "501 numbers exceed the limit of 500"),
        (None, 400, "missing numbers parameter"),
        ([3], 404, "There is no such segment"),
    ],
)
def test_withdrawn_numbers_that_are_refused(client, numbers, status, message):
    job = finished_job(client, send(client, HTML, "a.html").json())
    response = client.post(f"/documents/{job['id']}/withdraw", json={"numbers": numbers})
    assert refusal_of(response) == (status, message)


def test_all_segments_are_gone_through_in_parts(monkeypatch):
    steps, calls = [], []
    monkeypatch.setattr(editing, "between_steps", lambda: steps.append(1))

    def rows(first, count):
        calls.append((first, count))
        return [SimpleNamespace(number=number) for number in range(first, min(first + 2, 5))]

    all_rows = editing._all_rows(SimpleNamespace(files=SimpleNamespace(rows=rows)))
    assert [row.number for row in all_rows] == [0, 1, 2, 3, 4]
    assert calls == [(0, 500), (2, 500), (4, 500), (5, 500)] and len(steps) == 3


def review_of(rows):
    """Return a function that accepts translations of these rows without a server."""
    stored = {}
    files = SimpleNamespace(rows=lambda first, count: rows[first : first + count])
    jobs = SimpleNamespace(correct=lambda job, targets: stored.update(targets))
    review = editing.Editing(None, jobs)

    def accept(texts, **selection):
        stored.clear()
        pairs, problems = review._accept(SimpleNamespace(files=files), texts, **selection)
        return {number: target.marked.text for number, target in stored.items()}, pairs, problems

    return accept


def test_the_rest_is_what_nobody_has_accepted_and_what_is_not_doubtful():
    def row(number, target="x", *, accepted=False, doubts=()):
        marked = None if target is None else Target(TaggedText(target), "model", doubts=doubts)
        return Row(number, Segment(TaggedText(f"s{number}"), ""), marked, accepted)

    accept = review_of(
        [row(0, "a"), row(1, None), row(2, "c", accepted=True), row(3, "d", doubts=("lost: 1",)), row(4, "e")]
    )
    assert accept({}, rest=False, doubtful=True) == ({}, {}, {})
    assert accept({}, rest=True, doubtful=False) == ({0: "a", 4: "e"}, {0: Pair("s0", "a"), 4: Pair("s4", "e")}, {})
    stored, pairs, _ = accept({4: "y", 2: "z"}, rest=True, doubtful=True)
    assert stored == {4: "y", 2: "z", 0: "a", 3: "d"}
    assert pairs == {4: Pair("s4", "y"), 2: Pair("s2", "z"), 0: Pair("s0", "a"), 3: Pair("s3", "d")}


def test_pairs_for_the_memory_are_read_as_the_model_reads_them():
    source, target = TaggedText("dogscats", (Mark(4, " \n"),)), TaggedText("perrosgatos", (Mark(6, " \n"),))
    accept = review_of([Row(0, Segment(source, ""), Target(target, "model"), accepted=False)])
    assert accept({}, rest=True)[1] == {0: Pair("dogs cats", "perros gatos")}


def test_a_long_tag_is_shortened():
    for length, expected in ((1000, "x" * 1000), (1001, "x" * 1000 + "…")):
        source = TaggedText("", (Mark(0, "x" * length),))
        record = editing._record(Row(0, Segment(source, "line 1"), None, accepted=False))
        assert record["tags"] == {"⟨1/⟩": expected}
    assert record == {
        "number": 0,
        "place": "line 1",
        "note": None,
        "longest": None,
        "source": "⟨1/⟩",
        "tags": record["tags"],
        "existing": None,
        "target": None,
        "origin": None,
        "confidence": None,
        "doubts": [],
        "accepted": False,
    }


def test_a_review_file_comes_back(client):
    path = f"/documents/{finished_job(client, send(client, HTML, 'a.html').json())['id']}"
    client.put(f"{path}/segments/1", json={"text": "Tú cantas."})
    rows = client.get(f"{path}/segments").json()
    table, xliff = (client.get(f"{path}/review?format={name}") for name in ("docx", "xlf"))
    assert client.get(f"{path}/review").content == table.content
    assert table.headers["content-disposition"] == 'attachment; filename="a_es.review.docx"'
    assert xliff.headers["content-type"].startswith("application/xliff+xml")
    review = read_review("a.xlf", xliff.content)
    assert [row.state for row in review.rows] == ["translated", "reviewed", "translated"]
    assert [row.target for row in read_review("a.docx", table.content).rows] == [row["target"] for row in rows]
    client.put(f"{path}/segments/1", json={"text": "Cantas."})  # later: the review leaves it alone
    client.put(f"{path}/segments/2", json={"text": "Otra."})
    texts = ["Sin marcas", rows[1]["target"], "Me gusta 足球."]
    changed = [replace(row, target=text, who="Eva") for row, text in zip(review.rows, texts, strict=True)]
    file = {"file": ("b.docx", written_review("b.docx", replace(review, rows=changed)))}
    answer = client.post(f"{path}/review", files=file).json()
    assert (answer["numbers"], answer["corrected"], answer["remembered"]) == ([2], 1, False)
    assert answer["problems"] == ["row 1: ⟨1⟩ is missing. Put it where it belongs."]
    assert len(answer["warnings"]) == 1 and answer["warnings"][0].startswith("row 3: the translation was changed after")
    targets = [row["target"] for row in client.get(f"{path}/segments").json()]
    assert targets == [rows[0]["target"], "Cantas.", "Me gusta 足球."]
    for name, message in (("a.txt", "is no file for review"), ("a.docx", "a.docx")):
        status, text = refusal_of(client.post(f"{path}/review", files={"file": (name, b"x")}))
        assert status == 400 and message in text
    assert refusal_of(client.get(f"{path}/review?format=pdf")) == (400, "format is none of docx, xlf")
    assert refusal_of(client.post(f"{path}/review", files={"other": ("a", b"")})) == (400, "missing file parameter")
