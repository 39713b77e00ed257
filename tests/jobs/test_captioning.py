"""Captioning jobs behave like translation jobs: one line per image, in order, and they resume after an interruption."""

import io
import json
import math
import tarfile
import time
from pathlib import Path

import pytest
import torch

from tests.conftest import IMAGE_ENCODER
from translucid.captions.caption_scores import score_captions
from translucid.captions.captioner import Captioner
from translucid.captions.image_encoder import ImageEncoder
from translucid.captions.image_files import ImageFiles
from translucid.captions.job import CaptionJob, read_image
from translucid.captions.pointing import read_gold
from translucid.cli.main import run
from translucid.data.readers.corpus import read_pairs
from translucid.ground.console import Console
from translucid.jobs import running

TINY = [
    *(*IMAGE_ENCODER, "training.max_steps=4", "training.validate_every=4"),
    *("training.validate_sentences=2", "decoding.max_length_extra=6"),
]


@pytest.fixture(scope="module")
def eyes(scenes, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "eyes"
    files = ["--train", scenes / "train.tsv", "--valid", scenes / "valid.tsv", "--images", scenes / "images.tar"]
    assert run([str(a) for a in ["train", "--model", "caption-soft", *files, "--out", folder, "--set", *TINY]]) == 0
    return folder


@pytest.fixture
def folder(scenes, tmp_path):
    """Pictures as files, one of them truncated."""
    with tarfile.open(scenes / "images.tar") as images:
        images.extractall(tmp_path / "pictures")
    broken = tmp_path / "pictures/train/000002.png"
    broken.write_bytes(broken.read_bytes()[:100])
    return tmp_path / "pictures"


def test_each_image_has_a_line_and_a_broken_one_is_reported(eyes, folder, tmp_path, capsys):
    assert run(["caption", str(eyes), str(folder), "--output", str(tmp_path / "out.tsv")]) == 2
    stderr = " ".join(capsys.readouterr().err.split())
    lines = [line.split("\t") for line in (tmp_path / "out.tsv").read_text().splitlines()]
    files = sorted(str(file) for file in folder.rglob("*.png"))
    assert [name for name, _ in lines] == files
    assert [name for name, text in lines if not text] == [str(folder / "train/000002.png")]
    assert "line" in stderr and "000002.png" in stderr and "1 images could not be read" in stderr
    # Lines that are no names, as of a tar that is given as a list.
    (tmp_path / "names").write_text(f"a\0b\n{files[0]}\n")
    assert run(["caption", str(eyes), "--input", str(tmp_path / "names")]) == 2
    stdout, stderr = capsys.readouterr()
    assert stdout.splitlines()[-1].split("\t")[0] == files[0]
    assert "is no name of a file" in stderr


def test_a_tar_a_list_and_several_processes_give_the_same(eyes, scenes, tmp_path, forked_workers):
    tar = scenes / "images.tar"
    assert run(["caption", str(eyes), str(tar), "--output", str(tmp_path / "one.jsonl"), "--format", "jsonl"]) == 0
    records = [json.loads(line) for line in (tmp_path / "one.jsonl").read_text().splitlines()]
    with tarfile.open(tar) as images:
        assert [record["image"] for record in records] == [f"{tar}/{name}" for name in images.getnames()]
    (tmp_path / "list").write_text("".join(record["image"] + "\n" for record in records))
    options = ["--input", str(tmp_path / "list"), "--format", "jsonl", "--workers", "2"]
    assert run(["caption", str(eyes), *options, "--output", str(tmp_path / "two.jsonl")]) == 0
    other_records = [json.loads(line) for line in (tmp_path / "two.jsonl").read_text().splitlines()]
    # Convolutions add in a different order on another number of threads: the last digit of a score may differ.
    scores = [record.pop("score") for record in records]
    other_scores = [record.pop("score") for record in other_records]
    assert scores == pytest.approx(other_scores, abs=1e-4)
    assert records == other_records


def test_an_interrupted_job_resumes_and_writes_the_same_file(eyes, scenes, tmp_path, monkeypatch):
    monkeypatch.setattr(CaptionJob, "window", 5)
    tar, out = str(scenes / "images.tar"), tmp_path / "out.tsv"
    command = ["caption", str(eyes), tar, "--nbest", "2", "--output"]
    assert run([*command, str(tmp_path / "whole.tsv")]) == 0
    write, written = running.FileOutput.write, []

    def interrupt_third(self, text, record, *, keep):
        if len(written) == 2:
            raise KeyboardInterrupt
        written.append(text)
        write(self, text, record, keep=keep)

    with monkeypatch.context() as patch:
        patch.setattr(running.FileOutput, "write", interrupt_third)
        assert run([*command, str(out)]) != 0
    assert not out.exists()
    assert run([*command, str(out)]) == 0
    assert out.read_bytes() == (tmp_path / "whole.tsv").read_bytes()
    assert all(len(line.split("\t")) == 3 for line in out.read_text().splitlines())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.png"], "nothing.png"),
        ([], "there is no image"),
    ],
)
def test_missing_images_are_one_line(eyes, capsys, arguments, message):
    assert run(["caption", str(eyes), *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_captioner_translates_no_text_and_a_translator_sees_no_image(eyes, small_run, scenes, capsys):
    assert run(["translate", str(eyes), "hello"]) == 2
    assert "writes about images. Use translucid caption." in " ".join(capsys.readouterr().err.split())
    assert run(["caption", str(small_run), str(scenes / "images.tar")]) == 2
    assert "translates text. Use translucid translate." in " ".join(capsys.readouterr().err.split())


def test_an_evaluation_reads_each_image_once_and_looks_at_it_once(eyes, scenes, monkeypatch):
    compute_grids, encoded, read, names_read = ImageEncoder.compute_grids, [], ImageFiles.read, []
    monkeypatch.setattr(
        ImageEncoder,
        "compute_grids",
        lambda image_encoder, pixels: encoded.append(len(pixels)) or compute_grids(image_encoder, pixels),
    )
    monkeypatch.setattr(ImageFiles, "read", lambda files, name: names_read.append(name) or read(files, name))
    pairs = list(read_pairs(scenes / "train.tsv"))
    gold, files = read_gold(scenes / "gold.jsonl"), ImageFiles.open([scenes / "images.tar"])
    started = time.perf_counter()
    scores = score_captions(Captioner.load(eyes), pairs, files, gold=gold, console=Console(file=io.StringIO()))
    assert 0 < scores.evaluation.seconds < time.perf_counter() - started
    assert scores.evaluation.forced.tokens > 0
    assert sum(encoded) == scores.evaluation.images == len(names_read) == len(set(names_read)) == 24


def test_perplexity_and_accuracy_are_those_of_the_references_one_by_one(eyes, scenes):
    pairs = list(read_pairs(scenes / "valid.tsv"))[:-2]  # so that one image has fewer references
    captioner, files = Captioner.load(eyes), ImageFiles.open([scenes / "images.tar"])
    forced = score_captions(captioner, pairs, files, console=Console(file=io.StringIO())).evaluation.forced
    model, log_probs, correct = captioner.model, [], []
    for name, caption in pairs:
        (ids,) = captioner.tokenizer.encode_target([caption])
        source = torch.from_numpy(captioner.picture(files.read(name), name).pixels)[None]
        with torch.inference_mode():
            logits = model.decode(model.encode(source), torch.tensor([[model.bos, *ids]]))[0].double()
        targets = torch.tensor([*ids, model.eos])
        log_probs += logits.log_softmax(-1).gather(1, targets[:, None])[:, 0].tolist()
        correct += (logits.argmax(-1) == targets).tolist()
    assert forced.tokens == len(log_probs)
    assert forced.perplexity == pytest.approx(math.exp(-sum(log_probs) / len(log_probs)), rel=1e-5)
    assert forced.accuracy == pytest.approx(sum(correct) / len(correct))


def test_an_image_in_a_tar_is_found_however_its_path_is_written(eyes, scenes, monkeypatch):
    monkeypatch.chdir(scenes)
    captioner = Captioner.load(eyes, "cpu")
    name = ImageFiles.open([Path("images.tar")]).names()[0]
    picture, dotted_picture = (read_image(captioner, f"{tar}/{name}") for tar in ("images.tar", "./images.tar"))
    assert (picture.pixels == dotted_picture.pixels).all()
    assert dotted_picture.name == f"./images.tar/{name}"


def test_captions_go_on_from_words_and_a_search_is_drawn_as_it_went(eyes, scenes):
    captioner, files = Captioner.load(eyes), ImageFiles.open([scenes / "images.tar"])
    name = next(read_pairs(scenes / "valid.tsv")).source
    picture = captioner.picture(files.read(name), name)
    (prefix,) = captioner.tokenizer.encode_target(["a red"])
    continuations = captioner.continued(picture, "a red", 3)
    next_tokens = [caption.hypothesis.with_end[len(prefix)] for caption in continuations]
    assert [caption.hypothesis.tokens[: len(prefix)] for caption in continuations] == [prefix] * 3 and len(
        set(next_tokens)
    ) == 3
    assert all(caption.text == captioner.tokenizer.decode(caption.hypothesis.tokens) for caption in continuations)
    assert len(captioner.continued(picture, "", 2)) == 2
    trace = captioner.trace(picture, 3)
    best = captioner.caption(picture, beam=3).nbest[0].hypothesis
    assert trace.tokens(trace.best) == best.with_end
    assert trace.name(best.with_end[-1]) == "</s>"
