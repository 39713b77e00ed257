"""Whole commands on an emulated GPU mix no devices and write the same as on the CPU."""

import json
import re
import shutil
import tarfile
from types import SimpleNamespace

import numpy as np
import pytest

from tests.circuits.conftest import write_dictionary
from tests.conftest import IMAGE_ENCODER
from tests.devices.emulated import DeviceTensor, Emulation
from translucid.captions.captioner import Captioner
from translucid.cli.main import run, tree
from translucid.serving.catalog import load
from translucid.serving.server_options import ServerOptions

SENTENCE = "I like the beach."
TORCH = "--engine", "torch"
FEW = [
    *("--set", "training.max_steps=2", "training.validate_every=2", "training.validate_sentences=2"),
    *("training.batch_tokens=500", "decoding.max_length_ratio=0", "decoding.max_length_extra=5"),
]


SMALL = "model.width=16", "data.tokenizer.vocabulary=200", "training.batch_tokens=100"
FEATURES = "--updates", "1", "--expansion", "2", "--active", "4"
ONCE = "training.max_steps=1", "training.validate_every=1"


@pytest.fixture(scope="module")
def captioner(scenes, tmp_path_factory):
    """Return the run folder of a captioner after two updates."""
    folder = tmp_path_factory.mktemp("captioner") / "run"
    assert run(captioner_training(scenes, folder, "cpu")) == 0
    return folder


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    """Return the run folder of a classifier after two updates."""
    folder = tmp_path_factory.mktemp("classifier")
    rows = [
        {"text": f"{mood} {word}", "label": mood} for mood in ("good", "bad") for word in ("soccer", "beach", "tea")
    ]
    (folder / "texts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows * 4))
    files = ["--train", folder / "texts.jsonl", "--valid", folder / "texts.jsonl", "--out", folder / "run"]
    shape = "data.tokenizer.vocabulary=40", "model.language.width=8", "model.language.hidden=8"
    command = ["train", "--model", "classifier", *files, *FEW, *shape]
    assert run([str(part) for part in command]) == 0
    return folder / "run"


def captioner_training(scenes, folder, device):
    files = ["--train", scenes / "train.tsv", "--valid", scenes / "valid.tsv", "--out", folder]
    images = f"data.images=[{scenes / 'images.tar'}]"
    command = ["train", "--model", "caption-soft", *files, "--device", device, *FEW, images, *IMAGE_ENCODER]
    return [str(part) for part in command]


@pytest.fixture(scope="module")
def commands_by_device(texts, small_run, language_run, captioner, classifier, scenes, tmp_path_factory):
    """Return the commands by device and name."""
    runs = texts, small_run, language_run, captioner, classifier, scenes
    return {device: commands(*runs, tmp_path_factory.mktemp(device)) for device in ("cpu", "cuda", "mps")}


def commands(corpus, small_run, language_run, captioner, classifier, scenes, folder):
    """Return the commands by name; they write to `folder`."""
    test = folder / "test.tsv"
    test.write_text("".join((corpus / "test.tsv").read_text().splitlines(keepends=True)[:5]))
    texts = folder / "texts.txt"
    texts.write_text("I like soccer\n\nthe beach\n")
    single = folder / "single.tsv"
    single.write_text("I like it.\tMe gusta.\n")
    terms = folder / "terms.tsv"
    terms.write_text("beach\tplaya\n")
    language = language_run("lm-lstm")
    resumed = folder / "resumed"
    shutil.copytree(small_run, resumed)
    featured = folder / "featured"
    shutil.copytree(small_run, featured)
    write_dictionary(featured)
    learned = folder / "learned"  # `features` replaces the dictionary
    shutil.copytree(small_run, learned)
    with tarfile.open(scenes / "images.tar") as images:
        member = images.getmembers()[0]
        images.extract(member, folder)
    image = folder / member.name
    resume_settings = "training.max_steps=22", "training.validate_every=22", "training.validate_sentences=2"
    files = "--train", corpus / "train.tsv", "--valid", test
    return {
        "train": ["train", *files, "--out", folder / "rnn", "--model", "rnn-bahdanau", *FEW, *SMALL, *ONCE],
        "resume": ["train", "--resume", *files, "--out", resumed, "--set", *resume_settings],
        "translate": ["translate", small_run, SENTENCE, *TORCH, "--beam", "2"],
        "n-best": ["translate", small_run, SENTENCE, *TORCH, "--nbest", "2", "--format", "jsonl", "--alignments"],
        "evaluate": ["evaluate", small_run, "--test", test, *TORCH, "--json"],
        "look": ["look", small_run, SENTENCE, "--save", folder / "maps.html"],
        "score": ["score", small_run, test],
        "live": ["live", small_run, "--input", texts],
        "explain": ["explain", small_run, SENTENCE, "--method", "gradients"],
        "align": ["align", small_run, "--pairs", test],
        "generate": ["generate", language, "I like", "--max-tokens", "4", "--beam", "2"],
        "perplexity": ["evaluate", language, "--test", corpus / "test.jsonl", "--json"],
        "caption": ["caption", captioner, image, "--beam", "2"],
        "explain an image": ["explain", captioner, image],
        "features": ["features", learned, "--text", test, "--valid", single, *FEATURES],
        "features of a text": ["features", featured, SENTENCE],
        "graph": ["graph", featured, SENTENCE, "--word", "0"],
        "why a head looks": ["graph", featured, SENTENCE, "--score", "decoder.0.cross.head.0:0:0"],
        "a feature off": ["translate", featured, SENTENCE, *TORCH, "--feature", "decoder.0.feature.3=0"],
        "terms": ["translate", small_run, SENTENCE, *TORCH, "--terms", terms, "--terms-mode", "constrain"],
        "embed": ["embed", "write", language_run("lm-bilstm"), texts, "--out", folder / "vectors.npz"],
        "classify": ["classify", classifier, "--input", texts],
        "explain a label": ["explain", classifier, "good soccer", "--method", "gradients"],
        "look at a label": ["look", classifier, "good soccer"],
        "look at an image": ["look", captioner, image, "--save", folder / "image.html"],
        "superpixels": ["explain", captioner, image, "--method", "lime", "--samples", "10"],
        "rerank": ["translate", small_run, SENTENCE, *TORCH, "--beam", "2", "--rerank-with", small_run],
        "score captions": [
            *("evaluate", captioner, "--test", scenes / "valid.tsv", "--images", scenes / "images.tar"),
            *("--perplexity", "--json"),
        ],
        "patch": ["patch", small_run, SENTENCE, "I like the house."],
        "heads": ["heads", small_run, "--valid", single, "--mean", "--beam", "1", "--json"],
        "a head off": ["look", small_run, SENTENCE, "--ablate", "decoder.0.cross.head.0"],
        "contributions": ["look", small_run, SENTENCE, "--method", "contributions"],
        "norms": ["look", small_run, SENTENCE, "--method", "norms"],
        "flow": ["look", small_run, SENTENCE, "--flow"],
        "lens": ["look", small_run, SENTENCE, "--lens", "logit"],
        "decoder lens": ["look", small_run, SENTENCE, "--lens", "decoder"],
        "look at a file": ["look", small_run, "--tsv", test, "--save", folder / "maps.npz"],
        "explain by erasure": ["explain", small_run, SENTENCE],
        "explain a choice": ["explain", small_run, SENTENCE, "--instead-of", "playa"],
        "nearest": [
            "embed",
            "nearest",
            language_run("lm-bilstm"),
            "I like soccer",
            "--word",
            "soccer",
            "--among",
            texts,
        ],
        "score labels": ["evaluate", classifier, "--test", classifier.parent / "texts.jsonl", "--json"],
    }


INSPECTION = [
    *("patch", "heads", "a head off", "contributions", "norms", "flow", "lens", "decoder lens", "look at a file"),
    *("explain by erasure", "explain a choice", "features"),
]
"""Commands that are tested on Apple's GPUs only, which refuse float64; other devices compute the same."""
ALIKE = [
    *("translate", "explain an image", "terms", "explain a label", "look at a label", "look at an image", "align"),
    *("superpixels", "rerank", "score labels", "nearest", "live", "a feature off", "features of a text"),
    *("graph", "why a head looks"),
]
"""Commands that need no test on Apple's GPUs, as the others cover their operations."""
NAMES = [
    *("train", "resume", "n-best", "evaluate", "look", "score", "explain", "generate", "perplexity", "caption"),
    *("embed", "classify", "score captions", *INSPECTION, *ALIKE),
]


TIMES = re.compile(r'"(seconds|\w+_per_second)": [\d.]+')
"""Values that differ between runs."""
INEXACT = "score captions", "heads", "features", "features of a text", "graph", "why a head looks"
"""Commands whose last digits differ on a device, as sums are computed in another order."""
FOLDER = re.compile(r"/\S+/(cpu|cuda|mps)\d+/")
DECIMAL = re.compile(r"-?\d+\.\d+")


@pytest.mark.parametrize("name", NAMES)
def test_a_command_writes_on_each_device_what_it_writes_on_the_cpu(name, commands_by_device, capsys):
    capsys.readouterr()

    def output_of(device):
        assert run([*map(str, commands_by_device[device][name]), "--device", device]) == 0
        text = TIMES.sub("", FOLDER.sub("", capsys.readouterr().out))
        if name not in INEXACT:
            return text, []
        return DECIMAL.sub("", text), list(map(float, DECIMAL.findall(text)))

    with Emulation("cuda") as emulation:
        text, figures = output_of("cpu")
        expected = text, pytest.approx(figures, rel=1e-3, abs=1e-4)
        assert not emulation.kernels, "--device cpu did not reach everything that would choose the GPU"
        if name not in INSPECTION:
            assert output_of("cuda") == expected
    if name not in ALIKE:
        with Emulation("mps"):
            assert output_of("mps") == expected


ELSEWHERE = {"demo", "distill", "compare", "serve", "mcp", "data", "memory", "tune"}
"""Commands with `--device` that other tests call, or that consist of these."""


def test_every_command_with_a_device_is_tested(commands_by_device):
    tested = commands_by_device["cpu"]
    assert sorted(tested) == sorted(NAMES)
    with_device = set()
    for name, command in tree().commands.items():
        parameters = [*command.params]
        for subcommand in getattr(command, "commands", {}).values():
            parameters += subcommand.params
        if any("--device" in parameter.opts for parameter in parameters):
            with_device.add(name)
    assert with_device - ELSEWHERE == {str(command[0]) for command in tested.values()}


def test_served_models_and_a_traced_caption_are_on_the_device(captioner, classifier):
    with Emulation("cuda"):
        served = load([str(captioner), str(classifier)], "cpu", ServerOptions())
        (served_captioner,), (served_classifier,) = served.others["images"], served.others["texts with labels"]
        devices = [served_captioner.model.device, served_classifier.model.members[0].device]
        assert [device.type for device in devices] == ["cpu", "cpu"]
        loaded = Captioner.load(captioner, "cuda")
        assert isinstance(loaded.source(SimpleNamespace(source=np.zeros((32, 32, 3), np.uint8))), DeviceTensor)
