"""An alignment layer trained by `tune alignments`, and all that reads its word links."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from bitext.documents.tagged_text import Mark, Side, TaggedText
from tests.probes.common import run_in_process
from translucid import Translator
from translucid.api.fitting.alignment_fitting import choose_alignment
from translucid.api.segment_translator import SegmentTranslator
from translucid.corpora.phrasebook import generate
from translucid.evaluation.alignment_error import AlignmentOptions, to_pharaoh
from translucid.ground.console import Console
from translucid.inspection.alignment import weights_of
from translucid.inspection.forced_decoding import forced_decoding
from translucid.runs.run_folder import RunFolder
from translucid.runs.tensor_file import load_tensors, save_tensors


def weights_on_one_piece(pieces, mask, position):
    """Return weights that link every target piece to one source piece."""
    weights = torch.full((*pieces.shape[:2], mask.size(1)), 1e-6)
    weights[:, :, position] = 1
    return weights


@pytest.fixture(scope="module", autouse=True)
def _few_updates():
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("translucid.inspection.alignment.UPDATES", 60)
        yield


FEW = 16
"""The number of pairs that are aligned with models."""


@pytest.fixture(scope="module")
def gold(tmp_path_factory):
    """Word links of pairs as .jsonl, and the same as two files."""
    folder = tmp_path_factory.mktemp("gold")
    phrases = list(generate(150, split="train", max_words=7))
    rows = [{"source": p.source, "target": p.target, "alignment": to_pharaoh(p.alignment)} for p in phrases]
    (folder / "gold.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "pairs.tsv").write_text("".join(f"{row['source']}\t{row['target']}\n" for row in rows))
    (folder / "links.txt").write_text("".join(row["alignment"] + "\n" for row in rows))
    for name in ("pairs.tsv", "links.txt"):
        lines = (folder / name).read_text().splitlines(keepends=True)
        (folder / f"few-{name}").write_text("".join(lines[:FEW]))
    return folder


@pytest.fixture(scope="module")
def taught(small_run, gold, tmp_path_factory):
    """A run with a trained alignment layer, and what the command showed."""
    run = shutil.copytree(small_run, tmp_path_factory.mktemp("taught") / "run")
    code, shown = run_in_process("tune", "links", run, gold / "links.txt", "--train", gold / "pairs.tsv")
    assert code == 0, shown
    return run, shown


@pytest.fixture
def run(taught, tmp_path):
    return shutil.copytree(taught[0], tmp_path / "run")


def test_tune_reports_the_error_rate_and_reads_two_files(taught):
    run, shown = taught
    assert "learned from 135 pairs, compared on 15 others" in shown
    lines = shown.splitlines()
    (learned,) = [number for number, line in enumerate(lines) if line.startswith("learned from")]
    first, second = lines[learned + 2 : learned + 4]  # below the head of the table
    assert first.startswith("alignment layer") and first.endswith("← used") and "← used" not in second
    assert (run / "alignment.safetensors").exists()


def test_without_links_tune_uses_statistical_links(small_run, gold, tmp_path, call, monkeypatch):
    monkeypatch.setattr("translucid.api.fitting.alignment_fitting.FEWEST_LINKED", 300)
    monkeypatch.setattr("translucid.api.fitting.alignment_fitting.LEARNED", 150)
    run = shutil.copytree(small_run, tmp_path / "run")
    result = call("tune", "alignments", run)
    assert result.code == 0, result.err
    assert "against statistical links" in result.out and result.out.count("← used") == 1
    (used,) = [line for line in result.out.splitlines() if "← used" in line]
    # The attention of a barely trained model is worse than a layer trained on the links.
    assert used.startswith("alignment layer") and (run / "alignment.safetensors").exists()


def test_align_by_statistics_asks_no_model(small_run, gold, call, tmp_path):
    result = call("align", small_run, "--pairs", gold / "pairs.tsv", "--statistics")
    assert result.code == 0, result.err
    links = [line.split() for line in result.out.splitlines()]
    gold_links = [line.split() for line in (gold / "links.txt").read_text().splitlines()]
    assert len(links) == len(gold_links) == 150
    matches = sum(len(set(predicted) & set(reference)) for predicted, reference in zip(links, gold_links, strict=True))
    # The attention of a barely trained model has less than half of them.
    assert (
        2 * matches
        > 1.4 * sum(len(predicted) + len(reference) for predicted, reference in zip(links, gold_links, strict=True)) / 2
    )
    alone = call("align", "--pairs", gold / "pairs.tsv", "--statistics")
    assert alone.code == 0 and len(alone.out.splitlines()) == 150
    # The files of a run may be gone: it was moved, or came from elsewhere.
    moved = shutil.copytree(small_run, tmp_path / "moved")
    configuration = (moved / "config.yaml").read_text()
    names = RunFolder(moved).configuration().data
    for name in (*names.train, *names.valid):
        configuration = configuration.replace(name, f"/elsewhere/{Path(name).name}")
    (moved / "config.yaml").write_text(configuration)
    without_files = call("align", moved, "--pairs", gold / "pairs.tsv", "--statistics")
    assert without_files.out == alone.out and "is not there any more, so the links come from these pairs alone" in (
        without_files.err
    )
    assert call("align", moved, "--pairs", gold / "few-pairs.tsv").code == 0
    failure = call("align", "--pairs", gold / "pairs.tsv")
    assert failure.code == 2 and "there is no run whose attention is read" in failure.err
    failure = call("align", small_run, "--pairs", gold / "pairs.tsv", "--statistics", "--layer", "0")
    assert failure.code == 2 and "--statistics does not ask a model" in failure.err


def test_the_end_of_a_training_chooses_how_attention_is_read(small_run, tmp_path, monkeypatch):
    run = shutil.copytree(small_run, tmp_path / "run")
    quiet = Console(quiet=True)
    assert choose_alignment(run, console=quiet, device="cpu") == {}
    assert RunFolder(run).configuration().alignment == AlignmentOptions()
    monkeypatch.setattr("translucid.api.fitting.alignment_fitting.FEWEST_LINKED", 300)
    ranked = choose_alignment(run, console=quiet, device="cpu")
    assert RunFolder(run).configuration().alignment == next(iter(ranked))
    rates = [score.error_rate for score in ranked.values()]
    assert len(rates) == 16 and rates == sorted(rates)


def test_all_commands_with_alignments_use_the_layer(run, small_run, gold, call):
    pairs = gold / "few-pairs.tsv"
    after, before = (call("align", folder, "--pairs", pairs).out for folder in (run, small_run))
    assert after != before and len(after.splitlines()) == FEW
    for attention in (["--layer", "0"], ["--no-shift"]):
        assert call("align", run, "--pairs", pairs, *attention).out == before
    translator, base = Translator.load(run, "cpu"), Translator.load(small_run, "cpu")
    text = "She likes the red book."
    assert translator.translate(text).text == base.translate(text).text
    (after,), (before,) = (
        loaded.inspector.inspect([(text, "Le gusta el libro rojo.")]) for loaded in (translator, base)
    )
    options = translator.configuration.alignment
    assert before.links is None and weights_of(after, options).soft_links() != weights_of(before, options).soft_links()
    line = call("translate", run, "--alignments", text).out.strip()
    assert line.split("\t")[1] == to_pharaoh(translator.translate(text).alignment)


def test_tags_are_placed_by_the_layer(run):
    """A layer that links every target word to the last source word puts an element of that word around all of them."""
    translator = Translator.load(run, "cpu")
    layer = translator.inspector.alignment_layer
    layer.forward = lambda features, pieces, states, mask: weights_on_one_piece(pieces, mask, -2)
    source = "The house is red"
    marks = Mark(13, "<b>", Side.opens, 0), Mark(16, "</b>", Side.closes, 0)
    (segment,) = SegmentTranslator(translator).stream([TaggedText(source, marks)])
    text = translator.translate(source).text
    assert text and segment.marked.full_text == f"<b>{text}</b>"


def test_evaluate_shows_the_layer_beside_the_attention(run, gold, call):
    result = call("evaluate", run, "--test", gold / "few-pairs.tsv", "--gold", gold / "few-links.txt", "--json")
    methods = json.loads(result.out)["alignment"]
    assert methods[0]["learned"] and len(methods) == 18 and methods[0]["aer"] < methods[-1]["aer"]
    table = call("evaluate", run, "--test", gold / "few-pairs.tsv", "--gold", gold / "few-links.txt").out
    (used,) = [line for line in table.splitlines() if "← used" in line]
    assert used.startswith("alignment layer") and "both sides" in used


def test_a_layer_no_better_than_the_attention_is_not_kept(small_run, gold, tmp_path, call, monkeypatch):
    run = shutil.copytree(small_run, tmp_path / "run")
    config = (run / "config.yaml").read_bytes()

    def attention_links(*args, layer, **kwargs):
        return [replace(inspection, links=inspection.cross()) for inspection in forced_decoding(*args)]

    monkeypatch.setattr("translucid.api.fitting.alignment_fitting.forced_decoding", attention_links)
    result = call("tune", "links", run, gold / "gold.jsonl")
    assert result.code == 0 and "not kept: the attention is right at least as often" in result.out
    assert not (run / "alignment.safetensors").exists() and (run / "config.yaml").read_bytes() == config


def test_the_layer_applies_only_to_its_model(run, train, tmp_path, call):
    assert Translator.load(run, "cpu").inspector.alignment_layer
    assert Translator.load(run, "cpu", "torch", others=[run]).inspector.alignment_layer is None
    other_run = tmp_path / "other"
    train(other_run, "training.max_steps=8")
    shutil.copy(run / "alignment.safetensors", other_run)
    result = call("translate", other_run, "--alignments", "I like soccer.")
    assert result.code == 2 and "alignment.safetensors: belongs to another model" in result.err
    assert call("translate", other_run, "I like soccer.").code == 0
    translator = Translator.load(run, "cpu")
    translator.loaded.folder.save_model(translator.model, translator.tokenizer, {})
    assert not (run / "alignment.safetensors").exists()


def test_a_damaged_file_is_one_line(run, call):
    file = run / "alignment.safetensors"
    content, (tensors, facts) = file.read_bytes(), load_tensors(file)
    for damaged in (content[: len(content) // 2], content[:-4] + b"\0\0\1\0"):
        file.write_bytes(damaged)
        result = call("translate", run, "--alignments", "I like soccer.")
        assert result.code == 2 and "alignment.safetensors: is damaged" in result.err
        assert len(result.err.splitlines()) == 1
    key = tensors.pop("key.weight")
    for changes in ({}, {"key.weight": key[:, :-1]}, {"key.weight": key, "state_norm.weight": torch.ones(3)}):
        save_tensors(file, {**tensors, **changes}, facts)
        result = call("translate", run, "--alignments", "I like soccer.")
        assert result.code == 2 and "alignment.safetensors: does not fit the model" in result.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["alignments", "RUN"], "has 320 pairs, too few to learn links from"),
        (["links", "RUN", "few.jsonl"], "few.jsonl: holds 3 pairs that can be learned from"),
        (["links", "RUN", "wrong.txt", "--train", "pairs.tsv"], "wrong.txt:2: is not a line of word links"),
        (
            ["links", "RUN", "few.jsonl", "--train", "pairs.tsv"],
            "few.jsonl: holds 3 lines for 150 sentence pairs",
        ),
        (["links", "RUN", "links.txt"], "links.txt"),
        (["links", "RUN", "missing.jsonl"], "missing.jsonl"),
    ],
)
def test_invalid_options_are_one_line(small_run, gold, call, monkeypatch, options, message):
    monkeypatch.chdir(gold)
    (gold / "few.jsonl").write_text("".join((gold / "gold.jsonl").read_text().splitlines(keepends=True)[:3]))
    (gold / "wrong.txt").write_text("0-0\nzero\n")
    result = call("tune", *(small_run if option == "RUN" else option for option in options))
    assert result.code == 2 and message in result.err and len(result.err.splitlines()) == 1
    assert not (small_run / "alignment.safetensors").exists()
