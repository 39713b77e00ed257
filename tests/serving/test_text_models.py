"""POST /classify and /generate."""

import json
import math

import pytest

from translucid import Generator, TextClassifier
from translucid.cli.main import run as command
from translucid.inspection.explain import explain, faithfulness, random_faithfulness
from translucid.language.label_case import LabelCase, contrast_labels

from .refusals import why_invalid

GOOD, BAD = "the film was good and warm", "the film was awful and dull"


@pytest.fixture(scope="session")
def models(made_once):
    """A classifier and the language model that it was initialized from, both trained on a few words."""
    folder = made_once("judging", train_models)
    return str(folder / "mood"), str(folder / "language")


def train_models(folder):
    folder.mkdir()
    rows = [(f"{text} {suffix}", label) for suffix in ("", "so", "really", "quite", "its end", "the house")
            for text, label in ((GOOD, "good"), (BAD, "bad"), ("good", "good"), ("dull", "bad"))] * 8  # fmt: skip
    (folder / "train.jsonl").write_text("".join(json.dumps({"text": t, "label": label}) + "\n" for t, label in rows))
    files = ["--train", folder / "train.jsonl", "--valid", folder / "train.jsonl"]
    model_settings = ["model.width=16", "model.hidden=24", "data.tokenizer.vocabulary=60", "training.batch_tokens=320"]
    limits = ["training.window=20", "training.max_steps=40", "training.averaging=0.9"]
    learning = ["training.batch_tokens=256", "training.max_epochs=6", "training.averaging=0.9"]
    learning += ["training.learning_rate=0.03", "training.layer_decay=1.3"]
    language_model = ["--model", "lm-lstm", *files, "--out", folder / "language", "--set", *model_settings, *limits]
    classifier = ["--init-from", folder / "language", *files, "--out", folder / "mood", "--set", *learning]
    for arguments in (language_model, ["--model", "classifier", *classifier]):
        assert command(["train", *map(str, arguments)]) == 0


@pytest.fixture(scope="module")
def client(serve_for_all, models):
    return serve_for_all(*models)


def case_of(run, label):
    member = TextClassifier.load(run).members[0]
    (ids,) = member.ids([BAD])
    return LabelCase(member.model, member.tokenizer, ids, label)


def test_models_are_listed_by_what_they_read(client):
    assert client.get("/models").json() == [
        {"name": "mood", "reads": "texts"},
        {"name": "language", "reads": "prompts"},
    ]


def test_a_text_is_judged_as_the_library_does(client, models):
    answer = client.post("/classify", json={"q": BAD}).json()
    expected = TextClassifier.load(models[0]).classify(BAD)
    assert (answer["model"], answer["label"]) == ("mood", "bad")
    assert answer["probabilities"] == pytest.approx(expected.probabilities, abs=1e-5)
    assert [row["word"] for row in answer["words"]] == BAD.split()
    assert "explanation" not in answer
    expected_probabilities = case_of(models[0], "bad").unfolding().tolist()
    assert [row["probability"] for row in answer["words"]] == pytest.approx(expected_probabilities, abs=1e-4)


@pytest.mark.parametrize("method", ["erasure", "gradients"])
def test_why_is_told_with_a_test_of_it(client, models, method):
    pytest.importorskip("captum")
    answer = client.post("/classify", json={"q": BAD, "explain": method, "label": "good"}).json()
    assert answer["explanation"]["label"] == "good"
    expected = explain(case_of(models[0], "good"), method)
    assert [row["importance"] for row in answer["words"]] == pytest.approx(expected.importance[0].tolist(), abs=1e-3)
    assert answer["explanation"].keys() >= {"faithfulness", "random"}


def test_a_label_is_contrasted_with_another(client, models):
    answer = client.post(
        "/classify", json={"q": BAD, "explain": "erasure", "label": "bad", "instead_of": "good"}
    ).json()
    expected = explain(contrast_labels(case_of(models[0], "bad"), "good"), "erasure")
    assert [row["importance"] for row in answer["words"]] == pytest.approx(expected.importance[0].tolist(), abs=1e-3)
    assert answer["explanation"]["contrast"]["instead_of"] == "good"


def test_a_prompt_is_gone_on_with_as_the_library_does(client, models):
    request = {"q": "the film", "seed": 3, "temperature": 0.7, "max_tokens": 9, "considered": 4}
    answer = client.post("/generate", json=request).json()
    expected = Generator.load(models[1]).generate("the film", seed=3, temperature=0.7, max_tokens=9)
    assert answer["text"] == expected.text
    assert [row["piece"] for row in answer["pieces"]] == [piece.text for piece in expected.nbest[0].written]
    for row in answer["pieces"]:
        probabilities = [candidate["probability"] for candidate in row["considered"]]
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
        ("/classify", {"q": "good", "instead_of": "bad"}, "instead_of, which needs explain"),
        ("/classify", {"q": "good", "explain": "attention"}, "no explanation by 'attention'"),
        ("/classify", {"q": "good", "model": "language"}, "no model 'language' that classifies texts"),
        ("/generate", {"q": "good", "max_tokens": 201}, "max_tokens is more than 200"),
        ("/generate", {"q": "good", "temperature": "hot"}, "temperature is not a number"),
        ("/generate", {"q": "good", "temperature": -1}, "temperature"),
        ("/generate", {"q": ["good"]}, "q is not a text"),
        ("/translate", {"q": "good", "source": "en", "target": "es"}, "No translator is served here"),
    ],
)
def test_errors_are_one_line(client, path, fields, message):
    response = client.post(path, json=fields)
    assert response.status_code == 400
    assert message in response.json()["error"]
    assert "\n" not in response.json()["error"]


def test_without_such_models_they_are_refused(serve):
    client = serve()
    for path in ("/classify", "/generate"):
        assert "is served here" in client.post(path, json={"q": "good"}).json()["error"]


def test_both_are_documented(client):
    paths = client.get("/spec").json()["paths"]
    for path in ("/classify", "/generate"):
        assert "application/json" in paths[path]["post"]["requestBody"]["content"]


def error_message(client, path, **fields):
    return why_invalid(client.post(path, json=fields))


def test_the_whole_answer_of_a_classifier(client, models):
    answer = client.post("/classify", json={"q": BAD, "model": "mood"}).json()
    expected = TextClassifier.load(models[0]).classify(BAD)
    words = answer.pop("words")
    assert answer == {
        "model": "mood",
        "label": expected.label,
        "probabilities": {name: pytest.approx(value, abs=1e-5) for name, value in expected.probabilities.items()},
    }
    assert all(value == round(value, 6) for value in answer["probabilities"].values())
    assert all(
        set(row) == {"word", "probability"} and row["probability"] == round(row["probability"], 5) for row in words
    )
    expected_probabilities = case_of(models[0], "good").unfolding().tolist()
    labeled = client.post("/classify", json={"q": BAD, "label": "good"}).json()
    assert labeled["label"] == "bad"
    assert [row["probability"] for row in labeled["words"]] == pytest.approx(expected_probabilities, abs=1e-5)


def test_the_whole_explanation_of_a_label(client, models):
    answer = client.post("/classify", json={"q": BAD, "explain": "erasure"}).json()
    case = case_of(models[0], "bad")
    expected = explain(case, "erasure")
    assert answer["explanation"] == {
        "method": "erasure",
        "label": "bad",
        "fit": expected.fit,
        "faithfulness": pytest.approx(faithfulness(case, expected)._asdict(), abs=1e-5),
        "random": pytest.approx(random_faithfulness(case)._asdict(), abs=1e-5),
    }
    values = [row["importance"] for row in answer["words"]]
    assert values == pytest.approx(expected.importance[0].tolist(), abs=1e-4)
    assert values == [round(value, 4) for value in values]


def test_texts_of_the_greatest_length(client):
    assert client.post("/classify", json={"q": "good ".ljust(5000)}).status_code == 200
    assert error_message(client, "/classify", q="good ".ljust(5001)) == "5001 characters exceed the limit of 5000"
    request = {"explain": "erasure", "q": "good ".ljust(2000)}
    assert client.post("/classify", json=request).status_code == 200
    message = error_message(client, "/classify", explain="erasure", q="good ".ljust(2001))
    assert message == "2001 characters exceed the limit of 2000 for explain"
    assert error_message(client, "/generate", q="x" * 5001) == "5001 characters exceed the limit of 5000"


def test_a_text_of_which_nothing_is_left_has_no_words(client):
    response = client.post("/classify", json={"q": "\u200b", "explain": "erasure"})
    assert response.status_code == 200 and response.json()["words"] == [] and "explanation" not in response.json()


def test_the_whole_answer_of_a_language_model(client, models):
    request = {"q": "the film", "seed": 3, "temperature": 0.7, "max_tokens": 3}
    answer = client.post("/generate", json=request).json()
    expected = Generator.load(models[1]).generate("the film", seed=3, temperature=0.7, max_tokens=3)
    (hypothesis,) = expected.nbest
    assert answer == {
        "model": "language",
        "text": expected.text,
        "ended": hypothesis.ended,
        "backwards": expected.backwards,
        "pieces": [
            {"piece": piece.text, "probability": pytest.approx(math.exp(piece.log_probability), abs=1e-4)}
            for piece in hypothesis.written
        ],
    }
    assert len(answer["pieces"]) <= 3
    empty = client.post("/generate", json={"beam": 2, "max_tokens": 1}).json()
    assert len(empty["pieces"]) == 1


def test_the_settings_of_a_language_model(client, models):
    generator = Generator.load(models[1])
    types = {"temperature": float, "top_p": float}
    for settings in (
        {"top_k": 1},
        {"top_p": 0.01},
        {"beam": 3},
        {"temperature": "0.2", "seed": 5},
        {"top_k": "2", "seed": 7},
    ):
        numbers = {name: types.get(name, int)(value) for name, value in settings.items()}
        expected = generator.generate("the film", **numbers, max_tokens=50)
        answer = client.post("/generate", json={"q": "the film", **settings}).json()
        assert answer["text"] == expected.text, settings
    assert client.post("/generate", json={"q": "good", "max_tokens": 200, "considered": 8}).status_code == 200


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"max_tokens": 0}, "max_tokens is less than 1"),
        ({"max_tokens": 201}, "max_tokens is more than 200"),
        ({"considered": 9}, "considered is more than 8"),
        ({"temperature": None}, "temperature is not a number"),
        ({"top_p": "x"}, "top_p is not a number"),
        ({"top_k": 1_000_001}, "top_k is more than 1000000"),
        ({"seed": 2**31 + 1}, "seed is more than 2147483648"),
        ({"beam": 11}, "beam is more than 10"),
        ({"beam": 1.5}, "beam is not a whole number"),
        ({"model": "mood"}, "there is no model 'mood' that continues texts"),
    ],
)
def test_settings_of_a_language_model_that_are_refused(client, fields, message):
    assert error_message(client, "/generate", q="good", **fields) == message


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"label": "x" * 60}, f"there is no label {'x' * 50!r}"),
        ({"explain": "m" * 30}, f"there is no explanation by {'m' * 20!r} here"),
        ({"explain": "attention"}, "there is no explanation by 'attention' here"),
        ({"q": "\n "}, "there are no words to classify"),
        ({"q": None}, "missing q parameter"),
    ],
)
def test_classifications_that_are_refused(client, fields, message):
    assert error_message(client, "/classify", **{"q": "good", **fields}) == message
