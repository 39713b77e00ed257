"""Malicious run folders cannot read or write other files, block the program or exhaust memory."""

import os
from pathlib import Path

import pytest
import torch

from translucid.api.translator import Translator
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions
from translucid.ground.atomic import write_atomically
from translucid.ground.errors import UserError
from translucid.models.build import build_model, meta_model
from translucid.models.model_options import TransformerOptions
from translucid.runs.configuration import resolve
from translucid.runs.presets import all_presets
from translucid.runs.run_folder import RunFolder
from translucid.runs.tensor_file import load_tensors, save_tensors, weight_shapes

READ = ["config.yaml", "model.safetensors", "tokenizer.model"]


@pytest.mark.parametrize("name", READ)
def test_a_link_that_leads_out_is_not_followed(run, name, tmp_path):
    (run.path / name).rename(tmp_path / "elsewhere")
    (run.path / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match=f"{name}: is a link that leads out"):
        Translator.load(run.path, "cpu")


@pytest.mark.parametrize(
    "name", [*READ, "tuned.json", "shortlist.tsv", "confidence.json", "ranking.json", "alignment.safetensors"]
)
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_pipe_or_a_folder_in_the_place_of_a_file_is_refused_at_once(run, name, make):
    (run.path / name).unlink(missing_ok=True)
    make(run.path / name)
    with pytest.raises(UserError, match=f"{name}: is not a file"):
        Translator.load(run.path, "cpu")


@pytest.mark.parametrize("name", [".lock", "state", "metrics.jsonl"])
def test_nothing_is_written_through_a_link(run, train, name, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    if (run.path / name).is_dir():
        elsewhere.mkdir()
        (run.path / name).rename(tmp_path / "old")
    else:
        elsewhere.write_text("precious")
        (run.path / name).unlink()
    (run.path / name).symlink_to(elsewhere)
    for resume, message in ((True, "is a link"), (False, "holds a run already")):
        with pytest.raises(UserError, match=message):
            train(run.path, "training.max_steps=4", resume=resume)
    assert elsewhere.is_dir() or elsewhere.read_text() == "precious"


def test_the_folder_itself_may_be_a_link(run, tmp_path):
    (tmp_path / "alias").symlink_to(run.path)
    assert Translator.load(tmp_path / "alias", "cpu").translate("I like soccer").text


@pytest.mark.parametrize("change", [("width: 16", "width: 16384"), ("encoder_layers: 1", "encoder_layers: 256")])
def test_a_configuration_that_asks_for_more_than_the_file_holds_is_refused_before_it_is_built(run, change, monkeypatch):
    def build(*_):
        raise AssertionError("memory was asked for")

    for target in ("translucid.models.build.build_model", "translucid.runs.run_folder.fill"):
        monkeypatch.setattr(target, build)
    run.config_file.write_text(run.config_file.read_text().replace(*change))
    with pytest.raises(UserError, match=r"model\.safetensors: does not fit the model"):
        Translator.load(run.path, "cpu")


def test_a_tokenizer_that_the_model_does_not_know_is_not_parsed(run, monkeypatch):
    def parse(*_, **__):
        raise AssertionError("SentencePiece was shown a strange file")

    content = bytearray((run.path / "tokenizer.model").read_bytes())
    content[len(content) // 2] ^= 1
    (run.path / "tokenizer.model").write_bytes(content)
    monkeypatch.setattr("sentencepiece.SentencePieceProcessor", parse)
    with pytest.raises(UserError, match="tokenizer is not the model's"):
        Translator.load(run.path, "cpu")


def test_facts_that_are_none_are_refused(run):
    tensors, _ = load_tensors(run.model_file)
    save_tensors(run.model_file, tensors, ["not", "a", "dictionary"])
    with pytest.raises(UserError, match=r"model\.safetensors: was not written by translucid"):
        Translator.load(run.path, "cpu")


def test_a_header_of_absurd_size_is_refused_unread(run):
    content = run.model_file.read_bytes()
    for size in (2**63, 2**31, 2**24 + 1):
        run.model_file.write_bytes(size.to_bytes(8, "little") + content[8:])
        with pytest.raises(UserError, match=r"model\.safetensors: is damaged or not ours"):
            Translator.load(run.path, "cpu")


@pytest.mark.parametrize("size", [1 << 40, 1 << 33])
def test_a_file_full_of_holes_is_not_read(run, size, monkeypatch):
    def read(*_):
        raise AssertionError("it was read")

    monkeypatch.setattr("translucid.runs.run_folder.digest", read)
    os.truncate(run.model_file, size)
    for use in (run.model_digest, lambda: Translator.load(run.path, "cpu")):
        with pytest.raises(UserError, match=r"model\.safetensors: (has [\d,]+ bytes, more|is damaged or cut short)"):
            use()


def test_embeddings_shared_between_two_vocabularies_are_one_line(run, corpora):
    (run.path / "tokenizer.model").rename(run.path / "source.model")
    other_tokenizer = Tokenizer.learn(corpora.train[0], TokenizerOptions(vocabulary=150), seed=1)
    write_atomically(run.path / "target.model", next(iter(other_tokenizer._models.values())))
    save_tensors(run.model_file, load_tensors(run.model_file)[0], {})
    with pytest.raises(UserError, match=r"config\.yaml: source and target embeddings can't be shared"):
        Translator.load(run.path, "cpu")


def test_metrics_are_rows_and_nothing_else(run):
    rows = run.metrics()
    invalid_lines = [
        b"[1]",
        b'"x"',
        b"null",
        b"\xff\xfe",
        b"[" * 100_000,
        b"9" * 5000,
        b'{"step": "x"}',
        b"{}",
        b"\0" * 100,
    ]
    with run.metrics_file.open("ab") as file:
        file.write(b"\n".join([b"", *invalid_lines, b""]))
    assert run.metrics() == rows
    run.forget_metrics_after(1000)
    assert run.metrics() == rows
    with run.metrics_file.open("ab") as file:
        file.write(rb'{"kind": "validation", "step": 5, "note": "\ud800"}' + b"\n")
    run.forget_metrics_after(1000)
    assert run.metrics() == [*rows, {"kind": "validation", "step": 5, "note": "?"}]


@pytest.mark.parametrize("preset", all_presets())
def test_shapes_are_told_without_building_or_drawing(preset):
    options = resolve(preset=preset).model
    before = torch.get_rng_state()
    hollow = meta_model(options, 50, 50)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(weight.is_meta for weight in hollow.parameters() if weight.numel() > 1)
    assert weight_shapes(hollow) == weight_shapes(build_model(options, 50, 50))


def test_a_model_larger_than_the_memory_is_not_begun():
    huge = TransformerOptions(width=16384, feed_forward=65536, encoder_layers=64, decoder_layers=64, heads=16)
    with pytest.raises(UserError, match=r"million weights, which take [\d,]+ GiB; this machine has"):
        build_model(huge, 1_000_000, 1_000_000)


def test_a_sentence_in_the_place_of_a_folder_is_said():
    with pytest.raises(UserError, match="File name too long"):
        RunFolder(Path("I like soccer. " * 100)).configuration()
