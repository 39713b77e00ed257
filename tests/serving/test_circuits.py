"""The routes of features and graphs return the library's results, and have the limits of all inspections."""

import shutil

import pytest
import torch

from translucid.api.translator import Translator
from translucid.circuits.cards import card_of
from translucid.circuits.dictionary import Dictionary
from translucid.circuits.features import features_of
from translucid.circuits.graph import attribution_graph
from translucid.circuits.labels import Meaning, Meanings, Unit
from translucid.circuits.scores import head_score
from translucid.circuits.steering import Change, Steering
from translucid.models.kinds import inspector_tabs

PAIR = {"q": "I like soccer", "translation": "Me gusta el fútbol"}
REQUEST = {**PAIR, "source": "en", "target": "es"}
TABS = ["features", "graph"]


@pytest.fixture(scope="module")
def client(serve_for_all, run_with_features):
    return serve_for_all(str(run_with_features))


@pytest.fixture(scope="module")
def translator(run_with_features):
    return Translator.load(run_with_features, "cpu", "torch")


@pytest.fixture(scope="module")
def dictionary(run_with_features):
    return Dictionary.load(run_with_features)


def test_models_with_a_dictionary_have_tabs(client, serve, run, run_with_features):
    (row,) = client.get("/models").json()
    offered = inspector_tabs(run_with_features)
    assert {key: row[key] for key in ("tabs", "parts")} == offered
    assert [tab["name"] for tab in row["tabs"]] == TABS and [part["tab"] for part in row["parts"]] == ["heads"]
    for kind, name in (("tabs", "showTab"), ("parts", "showPart")):
        for shown in row[kind]:
            assert client.get(f"/{shown['module']}").text.count(f"export async function {name}(") == 1
    assert all(not row.keys() & offered.keys() for row in serve(str(run)).get("/models").json())


def test_features_are_those_of_the_library(client, translator, dictionary):
    answer = client.post("/features", json=REQUEST).json()
    expected = features_of(translator, *PAIR.values())
    assert answer["sublayers"] == ["encoder.0", "decoder.0", "decoder.1"]
    assert answer["tokens"] == [token.to_json() for token in expected.tokens]
    strongest = answer["tokens"][0]["features"]["encoder.0"]
    assert strongest[0]["value"] > strongest[-1]["value"] > 0


def test_a_card_is_that_of_the_library(client, translator, dictionary):
    name = client.post("/features", json=REQUEST).json()["tokens"][0]["features"]["encoder.0"][0]["feature"]
    fields = {"feature": name, "source": "en", "target": "es"}
    answer, card = client.post("/features/card", json=fields).json(), card_of(translator, dictionary, name)
    assert {key: answer[key] for key in card.to_json()} == card.to_json() and answer["facts"] == card.facts
    assert len(answer["contexts"]) > 1 and answer["linked"] == "translated as"


def test_labels_are_those_that_were_measured(serve, run_with_features, dictionary, tmp_path):
    folder = shutil.copytree(run_with_features, tmp_path / "labeled")
    name = features_of(Translator.load(folder, "cpu", "torch"), PAIR["q"]).tokens[0].strongest["encoder.0"][0][0]
    unit = Unit(str(name), 1, 0.0, 0.9, 64)
    meaning = Meaning("source", "number", "singular", 60, 100, 0.5, {"feature": unit})
    Meanings(dictionary.digest, [meaning], {str(name): meaning}).save(folder)
    client = serve(str(folder))
    (first, *_) = client.post("/features", json=REQUEST).json()["tokens"][0]["features"]["encoder.0"]
    assert (first["feature"], first["label"]) == (str(name), "number singular")
    fields = {"feature": str(name), "source": "en", "target": "es"}
    assert client.post("/features/card", json=fields).json()["label"].startswith("number: singular (F1 0.90")


def test_a_steered_translation_is_that_of_the_library(client, translator, dictionary):
    """The barely trained model depends on its last features most."""
    names = [f"decoder.1.feature.{number}" for number in range(32)]
    steering = Steering(dictionary, {name: Change(value=3.0) for name in names})
    expected = translator.with_interventions(steering).translate(PAIR["q"]).text
    assert expected != translator.translate(PAIR["q"]).text
    fields = {**REQUEST, "features": [f"{name}=3" for name in names]}
    assert client.post("/features/steer", json=fields).json() == {"text": expected}


def test_graphs_are_those_of_the_library(client, translator, dictionary):
    answer = client.post("/graph", json=REQUEST | {"word": 2, "instead_of": "la"}).json()
    graph = attribution_graph(
        translator, dictionary.transcoders, PAIR["q"], 2, instead_of="la", target=PAIR["translation"]
    )
    picture, figures = answer.pop("svg"), answer.pop("figures")
    assert answer.pop("labels") == {}
    assert answer == graph.to_json() and "logit of" in figures
    assert picture.count('data-node="') == len(graph.nodes) + 1 and "<style>" not in picture


def test_ablation_at_a_position_recomputes_the_model(client, translator, dictionary):
    """By hand: the output of the last sublayer without what a feature writes there, where the word is predicted."""
    (pair,) = translator.inspector.encoded([(PAIR["q"], PAIR["translation"])])
    model, (source, target) = translator.model, pair.input_ids
    (inspected,) = translator.inspector.inspect([(PAIR["q"], PAIR["translation"])])
    word, position, _ = inspected.target_spans[3]
    tokens = [token for token in client.post("/features", json=REQUEST).json()["tokens"] if token["side"] == "target"]
    name = tokens[position]["features"]["decoder.1"][0]["feature"]
    fields = REQUEST | {"word": 3, "features": [f"{name} @ {position}"]}
    answer = client.post("/graph/ablate", json=fields).json()
    number, transcoder = dictionary.parse_feature(name).number, dictionary.transcoders["decoder.1"]

    def without_feature(module, inputs, output):
        changed = output.clone()
        changed[0, -1] -= transcoder.features(inputs[0])[0, -1, number] * transcoder.decoder_weight[number]
        return changed

    @torch.inference_mode()
    def logit():
        memory = model.encode(torch.tensor([source]))
        logits = model.output(model.features(memory, torch.tensor([[model.bos, *target[:position]]])))[0, -1]
        return float(logits[target[position]] - logits.mean())

    before = logit()
    handle = model.get_submodule("decoder.1.feed_forward").register_forward_hook(without_feature)
    after = logit()
    handle.remove()
    assert abs(before - after) > 0.01
    assert [answer["logit"], answer["without"]] == pytest.approx([before, after], abs=1e-3)
    assert answer["word"] == word == "fútbol"


def test_scores_of_heads_are_those_of_the_library(client, translator, dictionary):
    """Query and key are a row and a column of the head's map, of which the first one of the decoder's is `<s>`."""
    (inspected,) = translator.inspector.inspect([tuple(PAIR.values())])
    for attention, query, key in (("decoder.1.cross", 3, 2), ("encoder.0.self", 0, 3), ("decoder.0.self", 1, 0)):
        head, words = f"{attention}.head.1", inspected.word_map(attention, 1)
        answer = client.post("/graph/score", json=REQUEST | {"head": head, "query": query, "key": key}).json()
        assert answer.pop("labels") == {}
        score = head_score(translator, dictionary.transcoders, PAIR["q"], head, query, key, target=PAIR["translation"])
        assert answer == score.to_json() and (score.query, score.key) == (words.target[query], words.source[key])


@pytest.mark.parametrize(
    ("path", "invalid"),
    [
        ("features", {"translation": " "}),
        ("features", {"q": "a" * 501}),
        ("features/card", {}),
        ("features/card", {"feature": "decoder.1.feature.64"}),
        ("features/steer", {}),
        ("features/steer", {"features": []}),
        ("features/steer", {"features": ["decoder.1.feature.3"]}),
        ("features/steer", {"features": ["decoder.1.feature.64=0"]}),
        ("features/steer", {"features": ["decoder.1.feature.3=-1"]}),
        ("features/steer", {"features": ["decoder.1.feature.3=0"] * 33}),
        ("graph", {}),
        ("graph", {"word": -1}),
        ("graph", {"word": 4}),
        ("graph", {"word": "el"}),
        ("graph", {"word": 2, "instead_of": "el"}),
        ("graph", {"word": 2, "instead_of": "a" * 101}),
        ("graph/ablate", {"word": 2}),
        ("graph/ablate", {"word": 2, "features": ["decoder.1.feature.3"]}),
        ("graph/ablate", {"word": 2, "features": ["decoder.1.feature.3 @ 99"]}),
        ("graph/ablate", {"word": 2, "features": ["decoder.9.feature.3 @ 0"]}),
        ("graph/score", {"query": 1, "key": 0}),
        ("graph/score", {"head": "decoder.9.cross.head.0", "query": 1, "key": 0}),
        ("graph/score", {"head": "decoder.0.cross.head.0", "query": 5, "key": 0}),
        ("graph/score", {"head": "decoder.0.self.head.0", "query": 1, "key": 2}),
    ],
)
def test_invalid_requests_are_refused(client, path, invalid):
    response = client.post(f"/{path}", json=REQUEST | invalid)
    assert response.status_code == 400 and response.json()["error"]


@pytest.mark.parametrize("path", ["features", "features/steer", "graph", "graph/ablate", "graph/score"])
def test_a_model_without_a_dictionary_is_refused(serve_for_all, run, path):
    fields = {"word": 0, "features": ["a=0"], "head": "decoder.0.cross.head.0", "query": 0, "key": 0}
    response = serve_for_all(str(run)).post(f"/{path}", json={**REQUEST, **fields})
    assert (response.status_code, response.json()["error"]) == (
        400,
        "Invalid request: this model has no dictionary of features",
    )
