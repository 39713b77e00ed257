"""Complete answers of our own and LibreTranslate's routes, and their error messages."""

import json

import pytest

from bitext.documents.document import KINDS
from bitext.pair import Pair
from translucid.api.translator import Translator
from translucid.decoding.decoding_options import length_limit
from translucid.models.kinds import page_sections
from translucid.runs.run_folder import RunFolder
from translucid.serving.catalog import Served, name_of
from translucid.serving.dialects.libretranslate import suggested_pairs
from translucid.serving.edge.failures import ApiError
from translucid.serving.routes import inspection

from .refusals import why_invalid

REQUEST = {"q": "I like soccer", "source": "en", "target": "es"}


@pytest.fixture(scope="module")
def client(serve_for_all):
    return serve_for_all()


@pytest.fixture(scope="module")
def translator(run):
    return Translator.load(run, engine="torch")


def error_message(client, path, **fields):
    return why_invalid(client.post(path, json={**REQUEST, **fields}))


def test_translations_with_everything_that_may_be_asked_for(client, translator):
    best = translator.translate("I like soccer", nbest=3).alternatives
    response = client.post("/translate", json={**REQUEST, "alternatives": 2, "confidence": True})
    assert response.json() == {"translatedText": best[0], "alternatives": best[1:], "confidence": None}
    request = {**REQUEST, "q": ["I like soccer", ""], "alternatives": "2"}
    assert client.post("/translate", json=request).json() == {
        "translatedText": [best[0], ""],
        "alternatives": [best[1:], []],
    }
    html = client.post("/translate", json={**REQUEST, "format": "html", "alternatives": 2, "confidence": "true"}).json()
    assert html == {"translatedText": best[0], "alternatives": [], "confidence": None}


def test_a_detected_language(client, many, translator):
    english = "The children are reading a book in the garden"
    answer = client.post("/translate", json={"q": english, "source": "auto", "target": "es"}).json()
    percent = answer["detectedLanguage"].pop("confidence")
    assert answer == {"translatedText": translator.translate(english).text, "detectedLanguage": {"language": "en"}}
    assert isinstance(percent, int) and 90 < percent <= 100
    several = client.post("/translate", json={"q": [english, "?"], "source": "auto", "target": "es"}).json()
    assert several["detectedLanguage"] == [
        {"confidence": percent, "language": "en"},
        {"confidence": 0, "language": "en"},
    ]
    (first, second) = client.post("/detect", json={"q": ["Los niños", "leen un libro"]}).json()
    assert first["language"] == "es" and second == {"confidence": round(100 - first["confidence"], 1), "language": "en"}
    assert first["confidence"] == round(first["confidence"], 1)
    request = {"q": "Los niños leen un libro", "source": "es", "target": "es"}
    assert many.post("/translate", json=request).json() == {"translatedText": request["q"]}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"format": "x" * 30}, "x" * 20 + " format is not supported"),
        ({"alternatives": 6}, "alternatives is more than 5"),
        ({"confidence": 3}, "confidence is neither true nor false"),
        ({"source": "auto", "target": "en"}, "en is not supported"),
        ({"source": "es", "target": "en"}, "en is not available as a target language from es"),
    ],
)
def test_translations_that_are_refused(client, fields, message):
    assert error_message(client, "/translate", **fields) == message


def test_the_settings_of_a_page(client, serve_for_all):
    settings = client.get("/frontend/settings").json()
    methods = ["erasure", "lime", "gradients"]
    assert settings == {
        "apiKeys": False,
        "charLimit": 5000,
        "documentKinds": [{"name": kind.name, "endings": list(kind.endings)} for kind in KINDS],
        "filesTranslation": True,
        "frontendTimeout": 500,
        "explanations": methods,
        "imageExplanations": methods,
        "keyRequired": False,
        "language": {"source": {"code": "en", "name": "English"}, "target": {"code": "es", "name": "Spanish"}},
        "lessons": False,
        "retrieval": False,
        "sections": [{"name": one.name, "label": one.label, "module": one.module} for one in page_sections()],
        "suggestions": False,
        "supportedFilesFormat": [ending for kind in KINDS for ending in kind.endings],
    }
    closed_client = serve_for_all(api_keys={"secret": None}, characters=7)
    changes = {"apiKeys": True, "keyRequired": True, "charLimit": 7}
    assert closed_client.get("/frontend/settings").json() == {**settings, **changes}
    assert client.post("/frontend/key", json={}).json() == {"valid": True}
    response = client.post("/suggest", json={**REQUEST, "s": "b"})
    assert (response.status_code, response.json()) == (403, {"error": "Suggestions are disabled on this server."})


def test_names_of_languages():
    assert [name_of(code) for code in ("es", "pt-BR", "zh-Hans", "xx-nonsense", "")] == [
        "Spanish",
        "Portuguese (Brazil)",
        "Chinese (Simplified)",
        "xx-nonsense",
        "",
    ]


@pytest.mark.parametrize(
    ("text", "better", "pairs"),
    [
        (" a\n\n b \n", "c\n\nd", [("a", "c"), (" b", "d")]),
        ("a\nb", "c\n \n", [("a\nb", "c\n \n")]),
        ("a\nb", "c", [("a\nb", "c")]),
        (" a ", " b ", [(" a ", " b ")]),
        ("a\n\nb", "c\nd\ne", [("a", "c"), ("b", "e")]),
        ("a\nb\nc", "d\n\ne", [("a", "d"), ("c", "e")]),
    ],
)
def test_suggestions_of_several_lines(text, better, pairs):
    assert suggested_pairs(text, better) == [Pair(*pair) for pair in pairs]


def test_a_file_is_translated_by_one_request(client, translator):
    form = {"source": "en", "target": "es"}
    response = client.post("/translate_file", data=form, files={"file": ("a.txt", b"I sing.\n")})
    url = response.json()["translatedFileUrl"]
    assert response.json() == {"translatedFileUrl": url} and url.startswith("http://testserver/download_file/")
    assert client.get(url).text == translator.translate("I sing.").text + "\n"
    missing_response = client.post("/translate_file", data=form, files={"other": ("a.txt", b"x")})
    assert (missing_response.status_code, missing_response.json()) == (
        400,
        {"error": "Invalid request: missing file parameter"},
    )
    for path in ("/download_file/none", "/documents/none", "/documents/none/result", "/documents/none/segments"):
        gone_response = client.get(path)
        assert (gone_response.status_code, gone_response.json()) == (
            404,
            {"error": "There is no such file, or not any more"},
        )


def test_a_sentence_with_its_attention(client, translator):
    answer = client.post("/look", json={**REQUEST, "q": " I like soccer. 足"}).json()
    first, second = answer.pop("sentences")
    best = translator.translate("I like soccer.")
    assert answer == {
        "model": "tiny",
        "source": "en",
        "target": "es",
        "translation": f" {first['text']} {second['text']}",
    }
    (piece,) = first.pop("pieces")
    assert not any(warning.startswith("unknown") for warning in first["warnings"])
    assert len(piece["tokens"]) == len(piece["target"]) == len(piece["probabilities"])
    assert first == {
        "source_text": "I like soccer.",
        "text": best.text,
        "warnings": first["warnings"],
        "confidence": None,
        "origin": "model",
    }
    assert [row["kind"] for row in piece["maps"]] == ["cross"] * 7 + ["rollout"]
    assert [token for word in piece["tokens"] for token in word] == [
        *best.nbest[0].hypotheses[0].tokens,
        translator.model.eos,
    ]
    all_maps = client.post("/look", json={**REQUEST, "maps": "all"}).json()["sentences"][0]["pieces"][0]["maps"]
    assert {row["kind"] for row in all_maps} == {"cross", "encoder", "decoder", "rollout", "content"}
    assert "unknown characters: 足" in second["warnings"]
    empty = client.post("/look", json={**REQUEST, "q": " \n"}).json()
    assert empty == {**answer, "translation": " \n", "sentences": []}


def test_given_translations(client, translator):
    request = {**REQUEST, "q": "I sing.  We sing.", "translations": ["Canto.", "Cantamos."]}
    answer = client.post("/look", json=request).json()
    assert answer["translation"] == "Canto.  Cantamos."
    for row, (source, target) in zip(
        answer["sentences"], (("I sing.", "Canto."), ("We sing.", "Cantamos.")), strict=True
    ):
        (piece,) = row.pop("pieces")
        assert row == {"source_text": source, "text": target, "warnings": [], "confidence": None, "origin": "model"}
        tokens = translator.tokenizer.encode_target([target])[0]
        assert [token for word in piece["tokens"] for token in word] == [*tokens, translator.model.eos]
        assert piece["target"] == [target, "</s>"]


@pytest.mark.parametrize(
    ("path", "fields", "message"),
    [
        ("/look", {"q": "a" * 501}, "501 characters exceed the limit of 500"),
        ("/look", {"q": None}, "missing q parameter"),
        ("/look", {"source": None}, "missing source parameter"),
        ("/look", {"target": None}, "missing target parameter"),
        ("/look", {"maps": "some"}, "maps is none of cross, all, contributions"),
        ("/look", {"explain": "magic"}, "there is no explanation by 'magic' here"),
        ("/look", {"model": "other"}, "there is no model 'other' for en to es"),
        ("/look", {"translations": "a"}, "translations is not a list of texts"),
        ("/look", {"translations": ["a", 3]}, "translations is not a list of texts"),
        ("/look", {"translations": [" "]}, "translations is not a list of texts"),
        ("/look", {"translations": []}, "translations are not 1 texts of up to 1000 characters"),
        ("/look", {"translations": ["a" * 1001]}, "translations are not 1 texts of up to 1000 characters"),
        ("/look", {"translations": ["a", "b"]}, "translations are not 1 texts of up to 1000 characters"),
        ("/beam", {"source": "auto"}, "auto is not supported"),
        ("/continue", {"prefix": None}, "prefix is not a list of token ids"),
        ("/continue", {"prefix": "x"}, "prefix is not a list of token ids"),
        ("/continue", {"prefix": [3]}, "the ids of prefix are not between 4 and {last}"),
        ("/continue", {"prefix": [True]}, "the ids of prefix are not between 4 and {last}"),
        ("/continue", {"prefix": [4.0]}, "the ids of prefix are not between 4 and {last}"),
        ("/continue", {"prefix": [4] * 99}, "prefix is longer than a translation of this text may be"),
    ],
)
def test_inspections_that_are_refused(client, translator, path, fields, message):
    last = translator.tokenizer.target_size - 1
    assert error_message(client, path, **fields) == message.format(last=last)
    if "last" in message:
        assert error_message(client, path, prefix=[last + 1]) == message.format(last=last)
        assert client.post(path, json={**REQUEST, "prefix": [last]}).status_code == 200


def test_texts_of_the_greatest_length_are_inspected(client):
    response = client.post("/look", json={**REQUEST, "q": "I " * 250, "translations": ["y" * 1000]})
    assert response.status_code == 200 and response.json()["translation"] == "y" * 1000 + " "


def test_continuations_of_a_prefix(client, translator):
    piece = translator.pipeline.encode("I like soccer")
    limit = length_limit(len(piece.ids) - 1, translator.configuration.decoding, translator.model.max_length)
    first = client.post("/continue", json={**REQUEST, "prefix": []}).json()
    assert len(first) == 8 and set(first[0]) == {"next", "probability", "text", "tokens"}
    for row in first:
        assert (
            row["text"] == translator.tokenizer.decode(row["tokens"])
            and row["text"].split()[:1] == [row["next"]][: len(row["text"])]
        )
    probabilities = [row["probability"] for row in first]
    assert (
        probabilities == sorted(probabilities, reverse=True) and len({tuple(row["tokens"][:1]) for row in first}) == 8
    )
    tokens = first[0]["tokens"]
    continued = client.post("/continue", json={**REQUEST, "prefix": tokens[:2]}).json()
    assert continued[0]["tokens"] == tokens and all(row["tokens"][:2] == tokens[:2] for row in continued)
    longest = [tokens[0]] * limit
    assert client.post("/continue", json={**REQUEST, "prefix": longest}).status_code == 200
    assert client.post("/continue", json={**REQUEST, "prefix": [*longest, tokens[0]]}).status_code == 400


def test_a_text_as_long_as_the_model_reads_is_continued(translator, monkeypatch):
    served = Served("tiny", "en", "es", translator, None)
    size = len(translator.pipeline.encode("I like soccer").ids)
    monkeypatch.setattr(translator.model, "max_length", size)
    assert len(inspection._continuations(served, "I like soccer", [])) == 8
    monkeypatch.setattr(translator.model, "max_length", size - 1)
    with pytest.raises(ApiError, match="the text is too long for this model"):
        inspection._continuations(served, "I like soccer", [])


def test_trees_of_the_first_three_sentences(client, translator):
    trees = client.post("/beam", json={**REQUEST, "q": "I sing. We sing. You sing. They sing."}).json()["trees"]
    texts = [tree["finished"][0]["text"] for tree in trees]
    assert texts == [translator.translate(text).text for text in ("I sing.", "We sing.", "You sing.")]
    assert {(tree["beam"], tree["own"]) for tree in trees} == {(translator.configuration.decoding.beam,) * 2}


def test_a_detected_language_to_inspect(many, serve_for_all, run):
    spanish = "Los niños leen un libro en el jardín"
    answer = many.post("/look", json={"q": spanish, "source": "auto", "target": "es"}).json()
    percent = answer["detectedLanguage"]["confidence"]
    assert (answer["source"], answer["target"]) == ("es", "en") and percent == round(percent, 1) > 90
    assert answer["detectedLanguage"] == {"language": "es", "confidence": percent}
    answer = many.post("/look", json={"q": spanish, "source": "auto", "target": "en", "model": "none"}).json()
    assert (answer["source"], answer["target"], answer["model"]) == ("es", "en", "many")
    two_models = serve_for_all(str(run), f"fr-de={run}")
    for text, source, target in (
        ("Les enfants lisent un livre dans le jardin", "fr", "de"),
        ("12", "en", "es"),
    ):
        answer = two_models.post("/look", json={"q": text, "source": "auto", "target": "es", "model": "x"}).json()
        assert (answer["source"], answer["target"]) == (source, target)


def test_routes_for_all_models(client, many, run):
    (row,) = client.get("/models").json()
    assert row.pop("package_version", None) == RunFolder(run).last_version()
    assert row == {"name": "tiny", "reads": "text", "sources": ["en"], "targets": ["es"]}
    assert client.get("/examples").json() == {"tiny": []}
    assert many.get("/models").json()[0]["sources"] == ["en", "es"]


def limits_of(schema):
    """Return the numeric bounds of a field, and the maximum length of a text."""
    return {name: schema[name] for name in ("minimum", "maximum", "maxLength") if name in schema}


def test_the_described_errors_and_what_is_required(client):
    paths = client.get("/spec").json()["paths"]
    errors = {"400", "401", "403", "408", "413", "415", "421", "429", "503"}
    for path, operations in paths.items():
        for method, operation in operations.items():
            extra = {"404", "456"} if path.startswith(("/v2", "/v3")) else set()
            allowed = {"200", "201", "204", "422"} | errors | extra
            assert errors | extra <= set(operation["responses"]) <= allowed, (path, method)
            name = "message" if extra or path.startswith("/deeplx") else "error"
            schema = operation["responses"]["400"]["content"]["application/json"]["schema"]
            assert schema == {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}
            assert operation.get("requestBody", {"required": True})["required"] is True
    created = [path for path in paths if "201" in paths[path].get("post", {"responses": {}})["responses"]]
    assert created == ["/v2/glossaries", "/v3/glossaries"]
    entries = paths["/v3/glossaries/{glossary_id}/entries"]["get"]["parameters"]
    assert {parameter["name"]: parameter["required"] for parameter in entries} == {
        "glossary_id": True,
        "source_lang": True,
        "target_lang": True,
    }


def test_the_described_limits_are_those_of_the_server(serve_for_all, run, captioner_run, scene):
    client = serve_for_all(str(run), str(captioner_run))
    paths = client.get("/spec").json()["paths"]
    checked = set()
    for path in ("/caption", "/translate"):
        (kind, content), *_ = paths[path]["post"]["requestBody"]["content"].items()
        for name, schema in content["schema"]["properties"].items():
            if name in ("instead_of", "word"):  # these need an explanation and a word that the model knows
                continue
            for limit, value in limits_of(schema).items():
                for number in map(int, (value, value + (-1 if limit == "minimum" else 1))):
                    if kind == "multipart/form-data":
                        text = "a " * (number // 2) + "a" * (number % 2) if limit == "maxLength" else str(number)
                        response = client.post(
                            path, data={"caption": "a red star", name: text}, files={"file": ("a.png", scene)}
                        )
                    else:
                        response = client.post(path, json={**REQUEST, name: number})
                    assert (response.status_code == 400) is (number != value), (
                        path,
                        name,
                        limit,
                        number,
                        response.text,
                    )
                checked.add((path, name, limit))
    assert checked == {
        ("/translate", "alternatives", "minimum"),
        ("/translate", "max_length", "minimum"),
        ("/translate", "max_length", "maximum"),
        *(("/caption", name, limit) for name in ("beam", "ways") for limit in ("minimum", "maximum")),
        ("/caption", "nbest", "minimum"),
        *(("/caption", name, "maxLength") for name in ("prefix", "caption")),
    }
    segments = {
        parameter["name"]: limits_of(parameter["schema"])
        for parameter in paths["/documents/{key}/segments"]["get"]["parameters"]
        if parameter["in"] == "query"
    }
    assert segments == {
        "first": {"minimum": 0},
        "count": {"minimum": 0, "maximum": 500},
        "doubtful": {"minimum": 0, "maximum": 1},
    }
    generate = paths["/generate"]["post"]["requestBody"]["content"]["application/json"]["schema"]["properties"]
    assert {name: limits_of(generate[name]) for name in ("max_tokens", "considered", "beam")} == {
        "max_tokens": {"minimum": 1, "maximum": 200},
        "considered": {"minimum": 0, "maximum": 8},
        "beam": {"minimum": 1, "maximum": 10},
    }
    assert json.dumps(paths).count('"null"') == 1  # the grid of a captioner without attention


def test_every_described_request_has_an_example_that_the_server_answers(client):
    """Without what a route needs (other models, a memory, a dictionary, `--share-models`), the server says so."""
    refused = {"/weights", "/suggest", "/memory/entry", "/memory/find", "/memory/remove", "/classify", "/generate"}
    refused |= {"/features", "/features/card", "/features/steer", "/graph", "/graph/ablate", "/graph/score"}
    for path, operations in client.get("/spec").json()["paths"].items():
        for method, operation in operations.items():
            content = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if content is None or path == "/frontend/key":
                continue
            assert set(content["example"]) >= set(content["schema"]["required"]), path
            assert set(content["example"]) <= set(content["schema"]["properties"]), path
            if "{" not in path:  # others need the key of a document or a glossary
                response = client.request(method, path, json=content["example"])
                assert (response.status_code in (200, 201)) is (path not in refused), (path, response.text)


def test_every_field_that_is_missing_or_of_another_type_is_refused_by_its_name(client):
    skipped = {"/suggest", "/classify", "/generate"}  # refused without a memory and without such models
    only_for_xml = {"ignore_tags", "splitting_tags", "non_splitting_tags", "outline_detection"}
    refused = 0
    for path, operations in client.get("/spec").json()["paths"].items():
        for method, operation in operations.items():
            content = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if content is None or path in skipped:
                continue
            example, schema = content.get("example", {}), content["schema"]
            wrong = {name: {**example, name: {"a": 1}} for name in schema["properties"]}
            missing = {name: {key: example[key] for key in example if key != name} for name in schema["required"]}
            for name, fields in [*wrong.items(), *missing.items()]:
                if name == "api_key" or name in only_for_xml:
                    continue
                response = client.request(method, path, json=fields)
                assert response.status_code == 400, (path, fields, response.text)
                (message,) = {value for value in response.json().values() if isinstance(value, str)}
                assert name in message, (path, fields)
                refused += 1
    assert refused > 120
