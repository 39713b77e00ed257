"""Word links taught to a run by `tune --alignments`, and all that reads them afterwards."""

import json
import shutil
from dataclasses import replace

import pytest
import torch

from translucid import Translator
from translucid.api.alignment_choice import choose_alignment
from translucid.api.segment_translator import SegmentTranslator
from translucid.corpora.phrasebook import generate
from translucid.documents.tagged_text import Mark, Side, TaggedText
from translucid.evaluation.alignment_error import AlignmentOptions, to_pharaoh
from translucid.ground.console import Console
from translucid.inspection.alignment import weights_of
from translucid.inspection.forced_decoding import forced_decoding
from translucid.runs.run_folder import RunFolder
from translucid.runs.tensor_file import load_tensors, save_tensors


def at_one_place(pieces, mask, place):
    """Weights that link every target piece to one source piece."""
    weights = torch.full((*pieces.shape[:2], mask.size(1)), 1e-6)
    weights[:, :, place] = 1
    return weights


@pytest.fixture(scope="module", autouse=True)
def _few_updates():
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("translucid.inspection.alignment.UPDATES", 60)
        yield


@pytest.fixture(scope="module")
def gold(tmp_path_factory):
    """Word links of pairs as .jsonl, and the same as two files."""
    folder = tmp_path_factory.mktemp("gold")
    phrases = list(generate(150, split="train", max_words=7))
    rows = [{"source": p.source, "target": p.target, "alignment": to_pharaoh(p.alignment)} for p in phrases]
    (folder / "gold.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "pairs.tsv").write_text("".join(f"{row['source']}\t{row['target']}\n" for row in rows))
    (folder / "links.txt").write_text("".join(row["alignment"] + "\n" for row in rows))
    return folder


@pytest.fixture(scope="module")
def taught(small_run, gold, tmp_path_factory):
    """A run that was taught, and the folder it is in."""
    from translucid.api.alignment_fitting import fit_alignment

    run = tmp_path_factory.mktemp("taught") / "run"
    shutil.copytree(small_run, run)
    found = fit_alignment(run, links=gold / "gold.jsonl", console=Console(quiet=True))
    assert found.kept and (found.pairs, found.held_out, found.skipped) == (135, 15, 0)
    assert [way.learned for way in found.scores] == [True, False]
    return run


@pytest.fixture
def run(taught, tmp_path):
    return shutil.copytree(taught, tmp_path / "run")


def test_it_says_how_right_it_is_and_reads_two_files_as_well(small_run, gold, tmp_path, call):
    run = shutil.copytree(small_run, tmp_path / "run")
    outcome = call("tune", run, "--alignments", "--links", gold / "links.txt", "--train", gold / "pairs.tsv")
    assert outcome.code == 0, outcome.err
    assert "learned from 135 pairs, compared on 15 others" in outcome.out
    first, second = outcome.out.splitlines()[2:4]
    assert first.startswith("alignment layer") and first.endswith("← used") and "← used" not in second
    assert (run / "alignment.safetensors").exists()


def test_without_links_it_makes_them_by_statistics(small_run, gold, tmp_path, call, monkeypatch):
    monkeypatch.setattr("translucid.api.alignment_choice.FEWEST_LINKED", 300)
    monkeypatch.setattr("translucid.api.alignment_fitting.LEARNED", 150)
    run = shutil.copytree(small_run, tmp_path / "run")
    outcome = call("tune", run, "--alignments")
    assert outcome.code == 0, outcome.err
    assert "against statistical links" in outcome.out and outcome.out.count("← used") == 1
    (used,) = [line for line in outcome.out.splitlines() if "← used" in line]
    # The model has learned next to nothing, so a layer that was trained on the links is better than its attention.
    assert used.startswith("alignment layer") and (run / "alignment.safetensors").exists()
    ranked = json.loads(
        call("evaluate", run, "--test", gold / "pairs.tsv", "--alignments", gold / "links.txt", "--json").out
    )["alignment"]
    assert ranked[0]["learned"]


def test_align_by_statistics_asks_no_model(small_run, gold, call):
    outcome = call("align", small_run, "--pairs", gold / "pairs.tsv", "--statistics")
    assert outcome.code == 0, outcome.err
    links = [line.split() for line in outcome.out.splitlines()]
    right = [line.split() for line in (gold / "links.txt").read_text().splitlines()]
    assert len(links) == len(right) == 150
    agreed = sum(len(set(one) & set(other)) for one, other in zip(links, right, strict=True))
    # The model's attention, which has learned next to nothing, has less than half of them.
    assert 2 * agreed > 1.4 * sum(len(one) + len(other) for one, other in zip(links, right, strict=True)) / 2
    refused = call("align", small_run, "--pairs", gold / "pairs.tsv", "--statistics", "--layer", "0")
    assert refused.code == 2 and "--statistics does not ask a model" in refused.err


def test_the_end_of_a_training_chooses_how_attention_is_read(small_run, tmp_path, monkeypatch):
    run = shutil.copytree(small_run, tmp_path / "run")
    quiet = Console(quiet=True)
    assert choose_alignment(run, console=quiet, device="cpu") == {}
    assert RunFolder(run).configuration().alignment == AlignmentOptions()
    monkeypatch.setattr("translucid.api.alignment_choice.FEWEST_LINKED", 300)
    ranked = choose_alignment(run, console=quiet, device="cpu")
    assert RunFolder(run).configuration().alignment == next(iter(ranked))
    rates = [score.error_rate for score in ranked.values()]
    assert len(rates) == 12 and rates == sorted(rates)


def test_all_readers_of_alignments_read_it(run, small_run, gold, call):
    pairs = gold / "pairs.tsv"
    now, before = (call("align", folder, "--pairs", pairs).out for folder in (run, small_run))
    assert now != before and len(now.splitlines()) == 150
    for attention in (["--layer", "0"], ["--no-shift"]):
        assert call("align", run, "--pairs", pairs, *attention).out == before
    t, untaught = Translator.load(run, "cpu"), Translator.load(small_run, "cpu")
    text = "She likes the red book."
    assert t.translate(text).text == untaught.translate(text).text
    (now,), (before,) = (one.inspect([(text, "Le gusta el libro rojo.")]) for one in (t, untaught))
    options = t.configuration.alignment
    assert before.links is None and weights_of(now, options).soft_links() != weights_of(before, options).soft_links()
    line = call("translate", run, "--alignments", text).out.strip()
    assert line.split("\t")[1] == to_pharaoh(t.translate(text).alignment)


def test_tags_stand_where_it_says(run):
    """A layer that links every target word to the last source word puts an element of that word around all of them."""
    t = Translator.load(run, "cpu")
    layer = t.alignment_layer
    layer.forward = lambda features, pieces, states, mask: at_one_place(pieces, mask, -2)
    source = "The house is red"
    marks = Mark(13, "<b>", Side.opens, 0), Mark(16, "</b>", Side.closes, 0)
    (found,) = SegmentTranslator(t).stream([TaggedText(source, marks)])
    text = t.translate(source).text
    assert text and found.marked.whole == f"<b>{text}</b>"


def test_evaluate_shows_it_beside_the_attention(run, gold, call):
    outcome = call("evaluate", run, "--test", gold / "pairs.tsv", "--alignments", gold / "links.txt", "--json")
    ways = json.loads(outcome.out)["alignment"]
    assert ways[0]["learned"] and len(ways) == 14 and ways[0]["aer"] < ways[-1]["aer"]
    table = call("evaluate", run, "--test", gold / "pairs.tsv", "--alignments", gold / "links.txt").out
    (own,) = [line for line in table.splitlines() if "← used" in line]
    assert own.startswith("alignment layer") and "both sides" in own


def test_what_is_no_better_than_the_attention_is_not_kept(small_run, gold, tmp_path, call, monkeypatch):
    run = shutil.copytree(small_run, tmp_path / "run")
    config = (run / "config.yaml").read_bytes()

    def as_attention(*given, layer, **more):
        return [replace(one, links=one.cross()) for one in forced_decoding(*given)]

    monkeypatch.setattr("translucid.api.alignment_fitting.forced_decoding", as_attention)
    outcome = call("tune", run, "--alignments", "--links", gold / "gold.jsonl")
    assert outcome.code == 0 and "not kept: the attention is right at least as often" in outcome.out
    assert not (run / "alignment.safetensors").exists() and (run / "config.yaml").read_bytes() == config


def test_it_holds_for_the_model_that_was_taught_alone(run, train, tmp_path, call):
    assert Translator.load(run, "cpu").alignment_layer
    assert Translator.load(run, "cpu", "torch", others=[run]).alignment_layer is None
    other = tmp_path / "other"
    train(other, "training.max_steps=8")
    shutil.copy(run / "alignment.safetensors", other)
    outcome = call("translate", other, "--alignments", "I like soccer.")
    assert outcome.code == 2 and "alignment.safetensors: belongs to another model" in outcome.err
    assert call("translate", other, "I like soccer.").code == 0
    opened = Translator.load(run, "cpu")
    opened.loaded.folder.save_model(opened.model, opened.tokenizer, {})
    assert not (run / "alignment.safetensors").exists()


def test_a_damaged_file_is_one_line(run, call):
    file = run / "alignment.safetensors"
    whole, (tensors, facts) = file.read_bytes(), load_tensors(file)
    for damaged in (whole[: len(whole) // 2], whole[:-4] + b"\0\0\1\0"):
        file.write_bytes(damaged)
        outcome = call("translate", run, "--alignments", "I like soccer.")
        assert outcome.code == 2 and "alignment.safetensors: is damaged" in outcome.err
        assert len(outcome.err.splitlines()) == 1
    key = tensors.pop("key.weight")
    for other in ({}, {"key.weight": key[:, :-1]}, {"key.weight": key, "state_norm.weight": torch.ones(3)}):
        save_tensors(file, {**tensors, **other}, facts)
        outcome = call("translate", run, "--alignments", "I like soccer.")
        assert outcome.code == 2 and "alignment.safetensors: does not fit the model" in outcome.err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--alignments", "--confidence"], "--alignments and --confidence"),
        (["--alignments", "--shortlists"], "--shortlists does not go with --alignments"),
        (["--links", "gold.jsonl"], "--links does not go without --alignments"),
        (["--alignments", "--links", "gold.jsonl", "--valid", "pairs.tsv"], "--valid does not go with --links"),
        (["--alignments"], "has 320 pairs, too few to learn links from"),
        (["--alignments", "--links", "few.jsonl"], "few.jsonl: holds 3 pairs that can be learned from"),
        (["--alignments", "--links", "wrong.txt", "--train", "pairs.tsv"], "wrong.txt:2: is not a line of word links"),
        (
            ["--alignments", "--links", "few.jsonl", "--train", "pairs.tsv"],
            "few.jsonl: holds 3 lines for 150 sentence pairs",
        ),
        (["--alignments", "--links", "links.txt"], "links.txt"),
        (["--alignments", "--links", "missing.jsonl"], "missing.jsonl"),
    ],
)
def test_what_can_not_be_is_one_line(small_run, gold, call, monkeypatch, given, said):
    monkeypatch.chdir(gold)
    (gold / "few.jsonl").write_text("".join((gold / "gold.jsonl").read_text().splitlines(keepends=True)[:3]))
    (gold / "wrong.txt").write_text("0-0\nzero\n")
    outcome = call("tune", small_run, *given)
    assert outcome.code == 2 and said in outcome.err and len(outcome.err.splitlines()) == 1
    assert not (small_run / "alignment.safetensors").exists()
