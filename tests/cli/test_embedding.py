"""`embed` and `nearest`."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file

from translucid import Embedder


@pytest.fixture(scope="module")
def elmo(language_run):
    return language_run("lm-bilstm")


LINES = ["I like soccer", "", "She likes the beach, 漢字 too"]


def test_embed_writes_a_vector_for_each_word(call, elmo, tmp_path):
    file = tmp_path / "texts.txt"
    file.write_text("\n".join(LINES) + "\n")
    (tmp_path / "more.jsonl").write_text(json.dumps({"text": "soccer"}) + "\n")
    expected = Embedder.load(elmo, "cpu").embed([*LINES, "soccer"], "all")
    for name, layer, layers in [
        ("a.npz", "all", 3),
        ("b.safetensors", "all", 3),
        ("c.npz", "1", 0),
        ("d.npz", "mix", 0),
    ]:
        out = tmp_path / name
        result = call(
            "embed", "write", elmo, file, tmp_path / "more.jsonl", "--out", out, "--layer", layer, "--device", "cpu"
        )
        assert result.code == 0, result.err
        assert "10 words of 4 texts" in result.err
        arrays = load_file(out) if name.endswith("safetensors") else dict(np.load(out))
        assert arrays["words"].tobytes().decode().split() == " ".join([*LINES, "soccer"]).split()
        assert arrays["counts"].tolist() == [3, 0, 6, 1]
        assert arrays["vectors"].shape == (10, *([layers] if layers else []), 32)
        vectors = np.concatenate(expected)
        expected_vectors = {"all": vectors, "1": vectors[:, 1], "mix": vectors.mean(1)}[layer]
        np.testing.assert_allclose(arrays["vectors"], expected_vectors, atol=1e-5)
    failure = call("embed", "write", elmo, file, "--out", tmp_path / "a.npz")
    assert failure.code == 2
    assert "is there already" in failure.err


def test_embed_reads_standard_input(call, elmo, tmp_path):
    result = call("embed", "write", elmo, "--input", "-", "--out", tmp_path / "a.npz", stdin=b"I like soccer\r\n\nthe")
    assert result.code == 0, result.err
    assert np.load(tmp_path / "a.npz")["counts"].tolist() == [3, 0, 1]
    assert call("embed", "write", elmo, "--input", "-", "--out", tmp_path / "empty.npz", stdin=b"").code == 0
    assert np.load(tmp_path / "empty.npz")["vectors"].shape == (0, 32)


def test_nearest_finds_the_same_sentence(call, elmo, tmp_path):
    file = tmp_path / "texts.txt"
    words = " ".join(["They sing and dance"] * 4)
    file.write_text(f"The beach is nice\n{words} and then I like soccer and also the beach {words}\nI like soccer\n")
    result = call(
        "embed", "nearest", elmo, "I like soccer", "--word", "soccer", "--among", file, file, "--top", 4, "--layer", 2
    )
    assert result.code == 0, result.err
    lines = [line for line in result.out.strip().splitlines() if line[0].isdigit()]
    assert len(lines) == 4
    assert [line.split()[:4] for line in lines[:2]] == [["1.000", "I", "like", "«soccer»"]] * 2
    same = call("embed", "nearest", elmo, "I like Soccer!", "--word", "soccer", "--among", file, "--same", "--jsonl")
    assert same.code == 0, same.err
    matches = [json.loads(line) for line in same.out.splitlines()]
    assert [
        (match["text"], match["place"], match["word"]) for match in sorted(matches, key=lambda match: match["text"])
    ] == [
        (1, 20, "soccer"),
        (2, 2, "soccer"),
    ]
    assert all(match["sentence"].split()[match["place"]] == "soccer" for match in matches)
    shortened = call("embed", "nearest", elmo, "I like soccer", "--word", "soccer", "--among", file, "--same")
    assert len(shortened.out.split()) < 2 * (1 + 8 + 1 + 8 + 2)
    assert shortened.out.count("…") == 2


def test_wrong_input_is_one_clear_line(call, elmo, small_run, language_run, tmp_path):
    file = tmp_path / "texts.txt"
    file.write_text("I like soccer\n")
    (tmp_path / "bad.txt").write_bytes(b"I like \xff soccer\n")
    out = ["--out", tmp_path / "out.npz"]
    near = ["embed", "nearest", elmo, "I like soccer", "--word", "soccer", "--among", file]
    unidirectional = language_run("lm-lstm")
    cases = {
        "there is no text": ["embed", "write", elmo, *out],
        "no --out was given": ["embed", "write", elmo, file],
        "is of no kind": ["embed", "write", elmo, file, "--out", tmp_path / "out.txt"],
        "--layer 'first' is no layer": ["embed", "write", elmo, file, *out, "--layer", "first"],
        "there is no layer 9. Choose from 0 to 2": ["embed", "write", elmo, file, *out, "--layer", "9"],
        "translates text": ["embed", "write", small_run, file, *out],
        "different widths (16, 24, 16)": ["embed", "write", unidirectional, file, *out],
        "can't be read": ["embed", "write", elmo, tmp_path / "none.txt", *out],
        "bad.txt:1: not UTF-8": ["embed", "write", elmo, tmp_path / "bad.txt", *out],
        "'tennis' is not in the sentence": [
            "embed",
            "nearest",
            elmo,
            "I like soccer",
            "--word",
            "tennis",
            "--among",
            file,
        ],
        "one vector is wanted": [*near, "--layer", "all"],
        "there is no layer 3": [*near, "--layer", "3"],
        "is a document": [*near[:-1], tmp_path / "x.pdf"],
    }
    for message, arguments in cases.items():
        result = call(*arguments)
        assert result.code == 2, message
        assert message in result.err
        assert len(result.err.strip().splitlines()) == 1, result.err
        assert not (tmp_path / "out.npz").exists()
    result = call("embed", "write", elmo, "--input", "-", *out, stdin=b"I\n\xff\n")
    assert result.code == 2
    assert "standard input:2: not UTF-8" in result.err
    assert call("embed", "write", unidirectional, file, *out, "--layer", "1").code == 0
