"""The fields of a caption request, and the numbers in its response."""

import math
from types import SimpleNamespace

import pytest
import torch

from translucid.captions import routes as captioning
from translucid.captions.captioner import Captioner
from translucid.captions.fields import CaptionFields
from translucid.captions.routes import CaptionRoutes
from translucid.decoding.decoding_options import DecodingOptions, length_penalty
from translucid.serving.edge.failures import ApiError
from translucid.serving.server_options import ServerOptions

from .test_captioning import ask

CONTEXT = SimpleNamespace(options=ServerOptions())


def parse_fields(**fields):
    return CaptionFields.of({"file": b"pixels", **fields}, CONTEXT)


def test_fields_that_are_missing():
    fields = parse_fields().model_dump()
    assert [fields.pop(name) for name in ("file", "nbest", "ways")] == [b"pixels", 1, 0]
    assert not any(fields.values())


def test_fields_that_are_there():
    fields = {"nbest": "3", "beam": "2", "ways": 8, "prefix": " a red ", "caption": " star", "maps": "true"}
    parsed = parse_fields(**fields, explain="erasure")
    assert (parsed.nbest, parsed.beam, parsed.ways, parsed.prefix, parsed.caption) == (3, 2, 8, "a red", "star")
    assert (parsed.maps, parsed.tree, parsed.explain, parsed.instead_of, parsed.word) == (
        True,
        False,
        "erasure",
        "",
        None,
    )
    assert parse_fields(tree=True).tree and not parse_fields(tree=True).maps
    assert parse_fields(prefix=f" {'a' * 500} ", caption="b" * 500).prefix == "a" * 500


def test_the_beam_of_a_request_and_of_the_run():
    routes = CaptionRoutes(SimpleNamespace(options=ServerOptions(alternatives=5)))
    decoding = DecodingOptions(beam=4, nbest=1)

    def options(defaults=decoding, **fields):
        return routes._options(parse_fields(**fields), defaults)

    assert options() == decoding
    assert options(nbest=3, beam=2) == decoding.model_copy(update={"nbest": 3, "beam": 3})
    assert (options(beam=10).beam, options(nbest=6).beam) == (10, 6)
    wide = DecodingOptions(beam=12)
    assert options(wide).beam == options(wide, beam=12).beam == 12
    for fields, message in (({"nbest": 7}, "nbest is more than 6"), ({"beam": 11}, "beam is more than 10")):
        with pytest.raises(ApiError, match=f"Invalid request: {message}"):
            options(**fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"nbest": 0}, "nbest is less than 1"),
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
        parse_fields(**fields)
    assert (error.value.status, error.value.message) == (400, f"Invalid request: {message}")


def test_a_score_is_the_log_probability_after_the_length_penalty():
    assert captioning._score([-1.0, -0.5, -0.123456], 0.0) == -1.6235
    assert captioning._score([-1.0, -0.5], 1.0) == round(-1.5 / length_penalty(2, 1.0), 4)


@pytest.fixture(scope="module")
def client(serve_for_all, captioner_run):
    return serve_for_all(str(captioner_run))


@pytest.fixture(scope="module")
def captioner(captioner_run):
    return Captioner.load(captioner_run)


def test_the_whole_answer_for_an_image(client, captioner, scene):
    caption = captioner.caption(scene, nbest=3)
    alpha = captioner.configuration.decoding.length_penalty
    answer = ask(client, scene, nbest=3).json()
    words, attention_result = answer.pop("words"), caption.looked
    token_log_probs = attention_result.inspected.log_probs
    assert answer == {
        "model": "eyes",
        "caption": caption.text,
        "score": pytest.approx(sum(token_log_probs) / length_penalty(len(token_log_probs), alpha), abs=1e-3),
        "alternatives": [
            {"caption": hypothesis.text, "score": pytest.approx(hypothesis.score, abs=1e-3)}
            for hypothesis in caption.nbest[1:]
        ],
        "grid": [8, 8],
        "heads": 1,
        "size": 64,
    }
    spans = attention_result.inspected.target_spans
    assert [(row["word"], row["pieces"]) for row in words] == [
        (word, after - first) for word, first, after in spans[:-1]
    ]
    for row, log_prob in zip(words, attention_result.log_probs, strict=True):
        assert row["probability"] == pytest.approx(math.exp(log_prob), abs=2e-4)
        assert all(weight == round(weight, 4) for line in row["weights"] for weight in line)
    weights = torch.tensor([row["weights"] for row in words])
    torch.testing.assert_close(weights, attention_result.weights(), atol=2e-4, rtol=0)


def test_continuations_of_a_prefix(client, captioner, scene):
    picture = captioner.picture(scene)
    continuations = captioner.continued(picture, "a red", 3, captioner.configuration.decoding)
    prefix_length = len(captioner.tokenizer.encode_target(["a red"])[0])
    answer = ask(client, scene, prefix="a red", ways=3, nbest=2).json()
    assert answer["caption"] == continuations[0].text
    assert [row["caption"] for row in answer["alternatives"]] == [continuations[1].text]
    rows = [
        {
            "next": row["next"],
            "probability": pytest.approx(
                math.exp(continuation.hypothesis.token_log_probabilities[prefix_length]), abs=1e-4
            ),
            "caption": continuation.text,
        }
        for row, continuation in zip(answer["ways"], continuations, strict=True)
    ]
    assert answer["ways"] == rows
    for row in answer["ways"]:
        assert row["caption"].removeprefix("a red").split()[:1] in ([row["next"]], [])
    second_answer = ask(client, scene, prefix="a red", ways=1, nbest=3).json()
    assert (len(second_answer["ways"]), len(second_answer["alternatives"])) == (1, 2)
    assert "ways" not in ask(client, scene, prefix="a red").json()


def test_a_model_without_attention_has_no_maps(client, scene, monkeypatch):
    monkeypatch.setattr("translucid.captions.saliency_overlay.AttentionResult.has_attention", property(lambda _: False))
    answer = ask(client, scene, maps="true").json()
    assert (answer["grid"], answer["heads"], answer["maps"]) == (None, 0, [])
    assert all(set(row) == {"word", "probability", "pieces"} for row in answer["words"])


def test_characters_that_the_model_does_not_know(client, scene):
    for name in ("prefix", "caption"):
        response = ask(client, scene, **{name: "足"})
        message = f"Invalid request: {name} has characters that this model does not know"
        assert (response.status_code, response.json()) == (400, {"error": message})
