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
    for name, layer, more in [("a.npz", "all", 3), ("b.safetensors", "all", 3), ("c.npz", "1", 0), ("d.npz", "mix", 0)]:
        out = tmp_path / name
        done = call("embed", elmo, file, tmp_path / "more.jsonl", "--out", out, "--layer", layer, "--device", "cpu")
        assert done.code == 0, done.err
        assert "10 words of 4 texts" in done.err
        found = load_file(out) if name.endswith("safetensors") else dict(np.load(out))
        assert found["words"].tobytes().decode().split() == " ".join([*LINES, "soccer"]).split()
        assert found["counts"].tolist() == [3, 0, 6, 1]
        assert found["vectors"].shape == (10, *([more] if more else []), 32)
        vectors = np.concatenate(expected)
        wanted = {"all": vectors, "1": vectors[:, 1], "mix": vectors.mean(1)}[layer]
        np.testing.assert_allclose(found["vectors"], wanted, atol=1e-5)
    again = call("embed", elmo, file, "--out", tmp_path / "a.npz")
    assert again.code == 2
    assert "is there already" in again.err


def test_embed_reads_standard_input(call, elmo, tmp_path):
    done = call("embed", elmo, "--input", "-", "--out", tmp_path / "a.npz", stdin=b"I like soccer\r\n\nthe")
    assert done.code == 0, done.err
    assert np.load(tmp_path / "a.npz")["counts"].tolist() == [3, 0, 1]
    assert call("embed", elmo, "--input", "-", "--out", tmp_path / "empty.npz", stdin=b"").code == 0
    assert np.load(tmp_path / "empty.npz")["vectors"].shape == (0, 32)


def test_nearest_finds_the_same_sentence(call, elmo, tmp_path):
    file = tmp_path / "texts.txt"
    words = " ".join(["They sing and dance"] * 4)
    file.write_text(f"The beach is nice\n{words} and then I like soccer and also the beach {words}\nI like soccer\n")
    done = call("nearest", elmo, "I like soccer", "--word", "soccer", "--among", file, file, "--top", 4, "--layer", 2)
    assert done.code == 0, done.err
    lines = [line for line in done.out.strip().splitlines() if line[0].isdigit()]
    assert len(lines) == 4
    assert [line.split()[:4] for line in lines[:2]] == [["1.000", "I", "like", "«soccer»"]] * 2
    same = call("nearest", elmo, "I like Soccer!", "--word", "soccer", "--among", file, "--same", "--jsonl")
    assert same.code == 0, same.err
    found = [json.loads(line) for line in same.out.splitlines()]
    assert [(one["text"], one["place"], one["word"]) for one in sorted(found, key=lambda one: one["text"])] == [
        (1, 20, "soccer"),
        (2, 2, "soccer"),
    ]
    assert all(one["sentence"].split()[one["place"]] == "soccer" for one in found)
    cut = call("nearest", elmo, "I like soccer", "--word", "soccer", "--among", file, "--same")
    assert len(cut.out.split()) < 2 * (1 + 8 + 1 + 8 + 2)
    assert cut.out.count("…") == 2


def test_wrong_input_is_one_clear_line(call, elmo, small_run, language_run, tmp_path):
    file = tmp_path / "texts.txt"
    file.write_text("I like soccer\n")
    (tmp_path / "bad.txt").write_bytes(b"I like \xff soccer\n")
    out = ["--out", tmp_path / "out.npz"]
    near = ["nearest", elmo, "I like soccer", "--word", "soccer", "--among", file]
    one_way = language_run("lm-lstm")
    wrong = {
        "there is no text": ["embed", elmo, *out],
        "no --out was given": ["embed", elmo, file],
        "is of no kind": ["embed", elmo, file, "--out", tmp_path / "out.txt"],
        "--layer 'first' is no layer": ["embed", elmo, file, *out, "--layer", "first"],
        "there is no layer 9. Choose from 0 to 2": ["embed", elmo, file, *out, "--layer", "9"],
        "translates text": ["embed", small_run, file, *out],
        "different widths (16, 24, 16)": ["embed", one_way, file, *out],
        "can't be read": ["embed", elmo, tmp_path / "none.txt", *out],
        "bad.txt:1: not UTF-8": ["embed", elmo, tmp_path / "bad.txt", *out],
        "'tennis' is not in the sentence": ["nearest", elmo, "I like soccer", "--word", "tennis", "--among", file],
        "one vector is wanted": [*near, "--layer", "all"],
        "there is no layer 3": [*near, "--layer", "3"],
        "is a document": [*near[:-1], tmp_path / "x.pdf"],
    }
    for said, arguments in wrong.items():
        done = call(*arguments)
        assert done.code == 2, said
        assert said in done.err
        assert len(done.err.strip().splitlines()) == 1, done.err
        assert not (tmp_path / "out.npz").exists()
    done = call("embed", elmo, "--input", "-", *out, stdin=b"I\n\xff\n")
    assert done.code == 2
    assert "standard input:2: not UTF-8" in done.err
    assert call("embed", one_way, file, *out, "--layer", "1").code == 0
