"""The fields of a request for a caption, and the numbers in its answer."""

import math
from types import SimpleNamespace

import pytest
import torch

from translucid.api.captioner import Captioner
from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.limits import length_penalty
from translucid.serving.edge.failures import ApiError
from translucid.serving.edge.incoming import ContrastFields
from translucid.serving.routes import captioning
from translucid.serving.routes.captioning import CaptionRoutes
from translucid.serving.server_options import ServerOptions

from .test_captioning import ask

OWN = DecodingOptions(beam=4, nbest=1)


def parsed(fields, own=OWN):
    return CaptionRoutes(SimpleNamespace(options=ServerOptions(alternatives=5)))._parsed(fields, own)


def test_fields_that_are_missing():
    wanted = parsed({})
    assert wanted == (OWN, "", 0, "", False, False, "", ContrastFields("", None))


def test_fields_that_are_there():
    fields = {"nbest": "3", "beam": "2", "ways": 8, "prefix": " a red ", "caption": " star", "maps": "true"}
    wanted = parsed({**fields, "explain": "erasure"})
    options = OWN.model_copy(update={"nbest": 3, "beam": 3})
    assert wanted == (options, "a red", 8, "star", True, False, "erasure", ContrastFields("", None))
    assert parsed({"tree": True}).tree and not parsed({"tree": True}).maps
    assert (parsed({"beam": 10}).options.beam, parsed({"nbest": 6}).options.beam) == (10, 6)
    wide = DecodingOptions(beam=12)
    assert parsed({}, wide).options.beam == parsed({"beam": 12}, wide).options.beam == 12
    assert parsed({"prefix": f" {'a' * 500} ", "caption": "b" * 500}).prefix == "a" * 500


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"nbest": 7}, "nbest is more than 6"),
        ({"nbest": 0}, "nbest is less than 1"),
        ({"beam": 11}, "beam is more than 10"),
        ({"beam": 0}, "beam is less than 1"),
        ({"ways": 9}, "ways is more than 8"),
        ({"prefix": "a" * 501}, "prefix or caption exceeds the limit of 500 characters"),
        ({"caption": "a" * 501}, "prefix or caption exceeds the limit of 500 characters"),
        ({"maps": "x"}, "maps is neither true nor false"),
        ({"tree": "x"}, "tree is neither true nor false"),
        ({"explain": "x"}, "there is no explanation by 'x' here"),
    ],
)
def test_fields_that_are_refused(fields, message):
    with pytest.raises(ApiError) as error:
        parsed(fields)
    assert (error.value.status, error.value.message) == (400, f"Invalid request: {message}")


def test_a_score_is_the_log_probability_after_the_length_penalty():
    assert captioning._score([-1.0, -0.5, -0.123456], 0.0) == -1.6235
    assert captioning._score([-1.0, -0.5], 1.0) == round(-1.5 / length_penalty(2, 1.0), 4)


@pytest.fixture(scope="module")
def client(serve_for_all, eyes):
    return serve_for_all(str(eyes))


@pytest.fixture(scope="module")
def captioner(eyes):
    return Captioner.load(eyes)


def test_the_whole_answer_for_an_image(client, captioner, scene):
    found = captioner.caption(scene, nbest=3)
    alpha = captioner.configuration.decoding.length_penalty
    answer = ask(client, scene, nbest=3).json()
    words, looked = answer.pop("words"), found.looked
    token_log_probs = looked.inspected.log_probs
    assert answer == {
        "model": "eyes",
        "caption": found.text,
        "score": pytest.approx(sum(token_log_probs) / length_penalty(len(token_log_probs), alpha), abs=1e-3),
        "alternatives": [
            {"caption": other.text, "score": pytest.approx(other.score, abs=1e-3)} for other in found.nbest[1:]
        ],
        "grid": [8, 8],
        "heads": 1,
        "size": 64,
    }
    spans = looked.inspected.target_spans
    assert [(row["word"], row["pieces"]) for row in words] == [
        (word, after - first) for word, first, after in spans[:-1]
    ]
    for row, log_prob in zip(words, looked.log_probs, strict=True):
        assert row["probability"] == pytest.approx(math.exp(log_prob), abs=2e-4)
        assert all(weight == round(weight, 4) for line in row["weights"] for weight in line)
    weights = torch.tensor([row["weights"] for row in words])
    torch.testing.assert_close(weights, looked.weights(), atol=2e-4, rtol=0)


def test_continuations_of_a_prefix(client, captioner, scene):
    picture = captioner.picture(scene)
    found = captioner.continued(picture, "a red", 3, captioner.configuration.decoding)
    begun = len(captioner.tokenizer.encode_target(["a red"])[0])
    answer = ask(client, scene, prefix="a red", ways=3, nbest=2).json()
    assert answer["caption"] == found[0].text
    assert [other["caption"] for other in answer["alternatives"]] == [found[1].text]
    rows = [
        {
            "next": way["next"],
            "probability": pytest.approx(math.exp(one.hypothesis.token_log_probabilities[begun]), abs=1e-4),
            "caption": one.text,
        }
        for way, one in zip(answer["ways"], found, strict=True)
    ]
    assert answer["ways"] == rows
    for way in answer["ways"]:
        assert way["caption"].removeprefix("a red").split()[:1] in ([way["next"]], [])
    more = ask(client, scene, prefix="a red", ways=1, nbest=3).json()
    assert (len(more["ways"]), len(more["alternatives"])) == (1, 2)
    assert "ways" not in ask(client, scene, prefix="a red").json()


def test_a_model_without_attention_has_no_maps(client, scene, monkeypatch):
    monkeypatch.setattr("translucid.inspection.saliency_overlay.AttentionResult.looks", property(lambda _: False))
    answer = ask(client, scene, maps="true").json()
    assert (answer["grid"], answer["heads"], answer["maps"]) == (None, 0, [])
    assert all(set(row) == {"word", "probability", "pieces"} for row in answer["words"])


def test_characters_that_the_model_does_not_know(client, scene):
    for name in ("prefix", "caption"):
        answer = ask(client, scene, **{name: "足"})
        message = f"Invalid request: {name} has characters that this model does not know"
        assert (answer.status_code, answer.json()) == (400, {"error": message})
