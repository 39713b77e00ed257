"""POST /classify and /generate, and their part of the page."""

import json
from itertools import pairwise

import pytest
from playwright.sync_api import expect

from translucid import Generator, TextClassifier
from translucid.cli.main import run as command
from translucid.inspection.explain import explain
from translucid.inspection.explain.label_case import LabelCase

from .test_clients import serving
from .test_page import watched

GOOD, BAD = "the film was good and warm", "the film was awful and dull"


@pytest.fixture(scope="session")
def models(made_once):
    """A classifier and the language model that it begins with, both of which know a few words."""
    folder = made_once("judging", train_models)
    return str(folder / "mood"), str(folder / "language")


def train_models(folder):
    folder.mkdir()
    rows = [(f"{text} {more}", label) for more in ("", "so", "really", "quite", "its end", "the house")
            for text, label in ((GOOD, "good"), (BAD, "bad"), ("good", "good"), ("dull", "bad"))] * 8  # fmt: skip
    (folder / "train.jsonl").write_text("".join(json.dumps({"text": t, "label": label}) + "\n" for t, label in rows))
    files = ["--train", folder / "train.jsonl", "--valid", folder / "train.jsonl"]
    shape = ["model.width=16", "model.hidden=24", "data.tokenizer.vocabulary=60", "training.batch_tokens=320"]
    limits = ["training.window=20", "training.max_steps=40", "training.averaging=0.9"]
    learning = ["training.batch_tokens=256", "training.max_epochs=6", "training.averaging=0.9"]
    learning += ["training.learning_rate=0.03", "training.layer_decay=1.3"]
    language = ["--model", "lm-lstm", *files, "--out", folder / "language", "--set", *shape, *limits]
    begun = ["--init-from", folder / "language", *files, "--out", folder / "mood", "--set", *learning]
    for arguments in (language, ["--model", "classifier", *begun]):
        assert command(["train", *map(str, arguments)]) == 0


@pytest.fixture(scope="module")
def client(serve_for_all, models):
    return serve_for_all(*models)


def case_of(run, label):
    judge = TextClassifier.load(run).judges[0]
    (ids,) = judge.ids([BAD])
    return LabelCase(judge.model, judge.tokenizer, ids, label)


def test_models_are_listed_by_what_they_read(client):
    assert client.get("/models").json() == [
        {"name": "mood", "reads": "texts"},
        {"name": "language", "reads": "prompts"},
    ]


def test_a_text_is_judged_as_the_library_does(client, models):
    answer = client.post("/classify", json={"q": BAD}).json()
    found = TextClassifier.load(models[0]).classify(BAD)
    assert (answer["model"], answer["label"]) == ("mood", "bad")
    assert answer["probabilities"] == pytest.approx(found.probabilities, abs=1e-5)
    assert [row["word"] for row in answer["words"]] == BAD.split()
    assert "explanation" not in answer
    after = case_of(models[0], "bad").unfolding().tolist()
    assert [row["probability"] for row in answer["words"]] == pytest.approx(after, abs=1e-4)


@pytest.mark.parametrize("method", ["erasure", "gradients"])
def test_why_is_told_with_a_test_of_it(client, models, method):
    pytest.importorskip("captum")
    answer = client.post("/classify", json={"q": BAD, "explain": method, "label": "good"}).json()
    assert answer["explanation"]["label"] == "good"
    found = explain(case_of(models[0], "good"), method)
    assert [row["importance"] for row in answer["words"]] == pytest.approx(found.importance[0].tolist(), abs=1e-3)
    assert answer["explanation"].keys() >= {"faithfulness", "random"}


def test_a_prompt_is_gone_on_with_as_the_library_does(client, models):
    asked = {"q": "the film", "seed": 3, "temperature": 0.7, "max_tokens": 9, "considered": 4}
    answer = client.post("/generate", json=asked).json()
    found = Generator.load(models[1]).generate("the film", seed=3, temperature=0.7, max_tokens=9)
    assert answer["text"] == found.text
    assert [row["piece"] for row in answer["pieces"]] == [piece.text for piece in found.nbest[0].written]
    for row in answer["pieces"]:
        probabilities = [one["probability"] for one in row["considered"]]
        assert len(probabilities) == 4
        assert probabilities == sorted(probabilities, reverse=True)


@pytest.mark.parametrize(
    ("path", "fields", "message"),
    [
        ("/classify", {}, "missing q"),
        ("/classify", {"q": " "}, "there are no words"),
        ("/classify", {"q": "x" * 5001}, "exceed the limit of 5000"),
        ("/classify", {"q": "x " * 1500, "explain": "erasure"}, "limit of 2000 for explain"),
        ("/classify", {"q": "good", "label": "soso"}, "no label 'soso'"),
        ("/classify", {"q": "good", "explain": "attention"}, "no explanation by 'attention'"),
        ("/classify", {"q": "good", "model": "language"}, "no model 'language' that says what a text is"),
        ("/generate", {"q": "good", "max_tokens": 201}, "max_tokens is more than 200"),
        ("/generate", {"q": "good", "temperature": "hot"}, "temperature is not a number"),
        ("/generate", {"q": "good", "temperature": -1}, "temperature"),
        ("/generate", {"q": ["good"]}, "q is not a text"),
        ("/translate", {"q": "good", "source": "en", "target": "es"}, "No translator is served here"),
    ],
)
def test_what_is_wrong_is_one_line(client, path, fields, message):
    answer = client.post(path, json=fields)
    assert answer.status_code == 400
    assert message in answer.json()["error"]
    assert "\n" not in answer.json()["error"]


def test_without_such_models_they_are_refused(serve):
    client = serve()
    for path in ("/classify", "/generate"):
        assert "is served here" in client.post(path, json={"q": "good"}).json()["error"]


def test_both_are_documented(client):
    paths = client.get("/spec").json()["paths"]
    for path in ("/classify", "/generate"):
        assert "application/json" in paths[path]["post"]["requestBody"]["content"]


@pytest.fixture(scope="module")
def address(models):
    with serving(*models) as place:
        yield place


def test_the_page_shows_labels_words_and_what_was_considered(context, address, models):
    with watched(context, address) as page:
        expect(page.locator("#judging")).to_be_visible()
        expect(page.locator("#kinds")).to_be_hidden()
        page.fill("#judge-text", BAD)
        expect(page.locator("#labels b").first).to_have_text("bad")
        words = page.locator("#judge-words span")
        assert words.all_inner_texts() == BAD.split()
        after = [0.5, *case_of(models[0], "bad").unfolding().tolist()]
        rises = [now - before for before, now in pairwise(after)]
        highest = words.nth(rises.index(max(rises)))
        assert "rgba(37, 99, 235" in highest.evaluate("one => getComputedStyle(one).backgroundColor")
        page.select_option("#judge-method", "erasure")
        expect(page.locator("#judge-note")).to_contain_text("words support bad")
        page.fill("#judge-text", "the film")
        page.click("#write")
        expect(page.locator("#written button").first).to_be_visible()
        page.locator("#written button").first.hover()
        expect(page.locator("#considered li")).to_have_count(6)
        pieces = [{"piece": one, "probability": 0.5, "considered": []} for one in ("▁was", "▁good", "ness", "</s>")]
        page.route("**/generate", lambda route: route.fulfill(json={"pieces": pieces, "backwards": False}))
        page.click("#write")
        expect(page.locator("#written")).to_have_text("the film was goodness (end)", use_inner_text=True)


def test_beside_a_translator_the_page_has_parts_to_choose(context, models, run):
    with serving(str(run), *models) as place, watched(context, place) as page:
        expect(page.locator("#texts")).to_be_visible()
        expect(page.locator("#on-images")).to_be_hidden()
        page.click("#on-judging")
        expect(page.locator("#judging")).to_be_visible()
        expect(page.locator("#texts")).to_be_hidden()
