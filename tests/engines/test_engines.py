"""The choice of an engine, and the cache of converted models."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from types import SimpleNamespace

import pytest
import torch

from bitext.pair import Pair
from translucid import Translator, UserError
from translucid.cli.main import run as run_command
from translucid.corpora.phrasebook import generate
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.decoding_options import DecodingOptions
from translucid.engines import converted
from translucid.engines.ctranslate2.conventions import is_supported as ct2_supports
from translucid.engines.onnx.conventions import is_supported as onnx_supports
from translucid.engines.tuned import Tuned, load_tuned, save_tuned
from translucid.ground import cache
from translucid.interop.huggingface_export import _kind as hugging_face_kind
from translucid.interop.marian_export import refuse_other_functions
from translucid.interop.web.export import refuse_other_models as refuse_in_browser
from translucid.models.build import build_model
from translucid.models.model_options import SIZES, RecurrentOptions, TransformerOptions
from translucid.runs.configuration import resolve
from translucid.runs.run_folder import RunFolder
from translucid.runs.tensor_file import save_tensors

TEXTS = ["I like soccer.", "", "She works at the hospital."]
SHORTLIST = "\t.\n"


def run_at(folder, seed=1, **model):
    """Make a run folder with an untrained model whose outputs have clearly different scores."""
    shape = {
        "width": 16,
        **(
            {"heads": 2, "feed_forward": 32, "encoder_layers": 1, "decoder_layers": 1, "tie_output": False}
            if "kind" not in model
            else {}
        ),
        **model,
    }
    overrides = {"model": shape, "data.tokenizer.vocabulary": 150, "decoding.max_length_ratio": 1}
    configuration = resolve(overrides=overrides)
    tokenizer = Tokenizer.learn([Pair(p.source, p.target) for p in generate(200)], configuration.data.tokenizer, seed=1)
    run = RunFolder(folder)
    run.begin(configuration, tokenizer)
    torch.manual_seed(seed)
    network = build_model(configuration.model, tokenizer.source_size, tokenizer.target_size)
    for parameter in network.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    network.output.bias.data[3] += 2  # so that outputs end before the limit and our search is not needed
    run.save_model(network, tokenizer, {})
    return run


@pytest.fixture
def run(tmp_path):
    return run_at(tmp_path / "run")


@pytest.fixture
def cache_folder(tmp_path, monkeypatch):
    """Return the folder of converted models during the test."""
    monkeypatch.setattr("translucid.ground.cache.user_cache_path", lambda name: tmp_path / "cache" / name)
    return tmp_path / "cache" / "translucid" / "ctranslate2"


def texts(run, **options):
    return [translation.text for translation in Translator.load(run.path, "cpu", **options).translate(TEXTS)]


def test_the_engine_is_chosen_by_model_and_device(run, tmp_path, monkeypatch):
    recurrent = run_at(tmp_path / "recurrent", kind="recurrent")
    assert Translator.load(recurrent.path, "cpu").engine.name == "onnx"
    assert Translator.load(run.path, "cpu").engine.name == "ctranslate2"
    assert Translator.load(run.path, "cpu", "torch").engine.name == "torch"
    with pytest.raises(UserError, match="RecurrentModel can't become"):
        Translator.load(recurrent.path, "cpu", "ctranslate2")
    monkeypatch.setattr("translucid.engines.choosing.choose_device", lambda _: torch.device("mps"))
    assert Translator.load(run.path, "cpu").engine.device_type == "cpu"
    with pytest.raises(UserError, match="does not run on mps"):
        Translator.load(run.path, "mps", "ctranslate2")


def test_the_saved_tuning_is_used(run):
    assert load_tuned(run.path) is None
    save_tuned(run.path, Tuned(considered="small shortlist", quantization="int8"), SHORTLIST)
    assert str(Translator.load(run.path, "cpu").engine) == "ctranslate2, int8, small shortlist"
    save_tuned(run.path, Tuned(considered="seen pieces"), SHORTLIST)
    assert str(Translator.load(run.path, "cpu").engine) == "ctranslate2, float32, seen pieces"
    save_tuned(run.path, Tuned(engine="torch"), None)
    assert not (run.path / "shortlist.tsv").exists()
    assert Translator.load(run.path, "cpu").engine.name == "torch"
    assert Translator.load(run.path, "cpu", "ctranslate2").engine.name == "ctranslate2"
    save_tuned(run.path, Tuned(engine="torch", considered="seen pieces"), SHORTLIST)
    translator = Translator.load(run.path, "cpu")
    assert str(translator.engine) == "torch, float32, seen pieces"
    assert translator.engine.shortlist
    assert translator.torch_engine.shortlist is None
    assert Translator.load(run.path, "cpu", "torch").engine.shortlist is None
    (run.path / "tuned.json").write_text('{"engine": "../../evil"}')
    with pytest.raises(UserError, match=r"tuned\.json: can't be read"):
        Translator.load(run.path, "cpu")
    (run.path / "tuned.json").write_text('{"considered": "seen pieces"}')
    (run.path / "shortlist.tsv").unlink()
    with pytest.raises(UserError, match=r"shortlist\.tsv: can't be read"):
        Translator.load(run.path, "cpu")


def test_a_model_is_converted_once(run, cache_folder, monkeypatch):
    first = texts(run)
    (model,) = cache_folder.iterdir()
    assert not cache_folder.stat().st_mode & 0o077
    with monkeypatch.context() as patched:
        patched.setattr(RunFolder, "load_model", None)
        assert texts(run) == first == texts(run, threads=2)
    assert texts(run, engine="torch") == first
    run_at(run.path.parent / "other", seed=2).model_file.replace(run.model_file)
    second = texts(run)
    assert second != first
    assert len(list(cache_folder.iterdir())) == 2
    save_tuned(run.path, Tuned(quantization="int8"), None)
    texts(run)
    assert len(list(cache_folder.iterdir())) == 3
    assert model.exists()


@pytest.mark.parametrize("damage", ["flipped", "cut", "emptied", "exchanged", "without sums", "sums of a list"])
def test_a_damaged_copy_is_made_again(run, cache_folder, damage):
    first = texts(run)
    (model,) = cache_folder.iterdir()
    weights, sums = model / "model.bin", model / "sha256.json"
    original = weights.read_bytes()
    if damage == "flipped":
        weights.write_bytes(original[:-9] + bytes([original[-9] ^ 64]) + original[-8:])
    elif damage == "cut":
        weights.write_bytes(original[: len(original) // 2])
    elif damage == "emptied":
        shutil.rmtree(model)
        model.mkdir()
    elif damage == "exchanged":
        weights.write_bytes(os.urandom(1000))
        sums.write_text(json.dumps({"model.bin": "0"}))
    elif damage == "without sums":
        sums.unlink()
    else:
        sums.write_text("[1]")
    assert texts(run) == first
    assert weights.read_bytes() == original


def test_translation_works_without_a_cache(run, tmp_path, monkeypatch):
    first = texts(run)
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setattr("translucid.ground.cache.user_cache_path", lambda name: tmp_path / "file" / name)
    assert texts(run) == first


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no owners of files here")
def test_conversions_of_other_users_are_not_opened(run, cache_folder, monkeypatch):
    first = texts(run)
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    opened = []
    monkeypatch.setattr(
        converted, "find_cached", lambda kind, made_from: cache.find_cached(kind, next(cache_folder.iterdir()).name)
    )
    assert converted.open_converted("ctranslate2", {}, lambda folder: folder.mkdir(), opened.append) is None
    assert cache_folder not in opened[0].parents
    assert texts(run) == first


def test_the_most_recently_used_conversions_are_kept(run, cache_folder, monkeypatch):
    monkeypatch.setattr(converted, "KEPT", 2)
    texts(run)
    (first,) = cache_folder.iterdir()
    for seed in (2, 3):
        os.utime(first, (seed, seed))  # used long ago
        texts(run_at(run.path.parent / str(seed), seed))
    assert len(list(cache_folder.iterdir())) == 2
    assert not first.exists()


def test_a_model_that_does_not_fit_its_settings_is_refused_though_it_was_converted(run):
    texts(run)
    settings = run.config_file.read_text()
    run.config_file.write_text(settings.replace("feed_forward: 32", "feed_forward: 48"))
    with pytest.raises(UserError, match="does not fit the model"):
        texts(run)
    run.config_file.write_text(settings)
    run.model_file.write_bytes(run.model_file.read_bytes()[:-4])
    with pytest.raises(UserError, match="damaged or cut short"):
        texts(run)
    run.model_file.unlink()
    with pytest.raises(UserError, match=r"has no model\.safetensors"):
        texts(run)


def test_neither_pytorch_nor_edit_distances_are_loaded_to_translate_and_score(run, tmp_path, monkeypatch, capsys):
    """Not even for the first translation, whose model is converted as this process, which has PyTorch, converts it."""
    names = ["encoder.0.feed_forward.inner.weight", "decoder.0.cross_attention.query.weight"]
    sizes = [(32, 16), (16, 16)]
    factors = {}
    for name, (outputs, inputs) in zip(names, sizes, strict=True):
        factors |= {f"{name}.up": torch.randn(outputs, 2), f"{name}.down": torch.randn(2, inputs)}
    save_tensors(tmp_path / "adapter.safetensors", factors, {"base": run.model_digest(), "scale": 0.5})
    save_tuned(run.path, Tuned(quantization="int8", considered="seen pieces"), "\t. a o s\n")
    test = tmp_path / "test.tsv"
    test.write_text("I sing\tCanto\n")
    evaluation = ["evaluate", str(run.path), "--test", str(test), "--no-perplexity", "--json"]
    program = (
        "import contextlib, io, os, sys\nfrom translucid.cli.main import run\n"
        "code = run(sys.argv[1:])\n"
        f"os.environ['XDG_CACHE_HOME'] = {str(tmp_path / 'without adapter')!r}\n"
        f"with contextlib.redirect_stdout(io.StringIO()): code = code or run({evaluation})\n"
        f"with contextlib.redirect_stdout(io.StringIO()): code = code or run({evaluation[:-1]})\n"
        "sys.exit(code or 10 * ('torch' in sys.modules or 'rapidfuzz' in sys.modules))\n"
    )
    arguments = ["translate", str(run.path), "I like soccer.", "--device", "cpu"]
    arguments += ["--adapter", str(tmp_path / "adapter.safetensors")]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other process"))
    completed = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False)
    assert (completed.returncode, "error" in completed.stderr) == (0, False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "this process"))
    assert run_command(arguments) == 0
    assert completed.stdout == capsys.readouterr().out != ""
    conversions = []
    for process in ("other process", "this process"):
        (checksums,) = (tmp_path / process).rglob("ctranslate2/*/sha256.json")
        conversions.append((checksums.parent.name, json.loads(checksums.read_text())))
    assert conversions[0] == conversions[1]
    assert converted.DIFFERENCE in conversions[0][1]


@pytest.mark.parametrize(
    ("modules", "executable", "frozen"),
    [
        pytest.param({"torch": torch}, sys.executable, False, id="PyTorch is loaded"),
        pytest.param({}, None, False, id="no interpreter"),
        pytest.param({}, "/no/such/program", False, id="the interpreter is gone"),
        pytest.param({}, shutil.which("false"), False, id="the process fails"),
        pytest.param({}, sys.executable, True, id="a frozen program"),
    ],
)
def test_where_no_other_process_converts_this_one_does(run, monkeypatch, cache_folder, modules, executable, frozen):
    facts = {"modules": modules, "executable": executable, "frozen": frozen}
    started = []
    monkeypatch.setattr(converted, "sys", SimpleNamespace(path=sys.path, platform=sys.platform, **facts))
    start = subprocess.run
    monkeypatch.setattr(converted.subprocess, "run", lambda *a, **k: started.append(a) or start(*a, **k))
    assert Translator.load(run.path, "cpu").engine.name == "ctranslate2"
    assert len(list(cache_folder.glob("*/model.bin"))) == 1
    assert len(started) == (not (modules or frozen or executable is None))


class NewerOptions(TransformerOptions):
    """Options of a later version."""

    gated: bool = False


KNOWN = RecurrentOptions(attention="bahdanau", cell="gru"), TransformerOptions()
CHOICES = [
    (options, name)
    for options in KNOWN
    for name in type(options).model_fields
    if name not in SIZES | {"first_position"}
]


def accepted_by(options):
    """Return the engines and exporters that take a model with these options."""
    model, tokenizer = (
        SimpleNamespace(options=options),
        SimpleNamespace(source_opening=[], target_opening=[], models=[]),
    )
    data = SimpleNamespace(tokenizer=SimpleNamespace(marks_sources=False, languages={}))
    accepted = [
        name for name, supports in (("onnx", onnx_supports), ("ctranslate2", ct2_supports)) if supports(options)
    ]
    for name, refuse in (
        ("web", lambda: refuse_in_browser(model, tokenizer, DecodingOptions())),
        ("marian", lambda: refuse_other_functions(model, tokenizer)),
        ("hugging face", lambda: hugging_face_kind(SimpleNamespace(model=options, data=data))),
    ):
        with suppress(UserError):
            refuse()
            accepted.append(name)
    return accepted


def test_engines_take_what_they_know():
    assert list(map(accepted_by, KNOWN)) == [["onnx", "web"], ["onnx", "ctranslate2", "web", "hugging face"]]
    marian = TransformerOptions(positions="sinusoidal-tensor2tensor", zero_start=True)
    assert accepted_by(marian) == ["onnx", "ctranslate2", "marian"]


@pytest.mark.parametrize(
    ("options", "name"), CHOICES, ids=lambda value: value if isinstance(value, str) else value.kind
)
def test_no_engine_takes_a_choice_that_is_newer_than_it(options, name):
    """A choice that someone adds to the options is unknown to each engine until it is added there, too.

    Graphs for ONNX Runtime have the operations of the model itself.
    """
    assert {*accepted_by(options.model_copy(update={name: "newer"}))} <= {"onnx"}


def test_no_engine_takes_an_option_that_is_newer_than_it():
    for changes in ({}, {"positions": "sinusoidal-tensor2tensor", "zero_start": True}):
        assert accepted_by(NewerOptions(gated=True, **changes)) == ["onnx"]
        assert "ctranslate2" in accepted_by(NewerOptions(**changes))
