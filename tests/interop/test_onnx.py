"""An exported model gives the same results in onnxruntime, without this package."""

import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch

from bitext.pair import Pair
from tests.probes.foreign import many_languages_folder
from translucid.api.translator import Translator
from translucid.cli.main import run
from translucid.corpora.phrasebook import generate
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions
from translucid.decoding.decoding_options import DecodingOptions, SearchRequest
from translucid.decoding.search import TorchEngine
from translucid.engines.onnx.conventions import refuse_without_packages
from translucid.engines.onnx.convert import state_layout
from translucid.ground.errors import UserError
from translucid.interop.importing import import_model
from translucid.interop.onnx_export import PURPOSE, Exported, export_onnx
from translucid.language.options import BiLSTMLanguageOptions, TransformerLanguageOptions
from translucid.models.build import build_model
from translucid.models.model_options import AttentionOnlyOptions, RecurrentOptions, TransformerOptions

for name in ("onnx", "onnxruntime"):
    if find_spec(name) is None:  # importing them takes a second
        pytest.skip(f"NO {name.upper()}: exports to ONNX are not tested (pip install {name})", allow_module_level=True)

ROOT = Path(__file__).resolve().parents[2]
PAIRS = [Pair(p.source, p.target) for p in generate(300, max_words=8)]
SOURCES = [pair.source for pair in PAIRS[:20]]
LIMITS = {"max_length_ratio": 2.0, "max_length_extra": 20}
"""The length limits of the example in the documentation."""
ONE = {"encoder_layers": 1, "decoder_layers": 1}
SMALL = {"width": 16, "heads": 2, "feed_forward": 32, **ONE}
KINDS = [  # the runs below cover pre-norm Transformers with sinusoidal positions
    TransformerOptions(**SMALL, norm="post", positions="learned", max_length=60, tie_output=False),
    TransformerOptions(**{**SMALL, "decoder_layers": 2}, norm="post", decoder="ssru", zero_start=True),
    AttentionOnlyOptions(width=16, **ONE),
    RecurrentOptions(width=16, attention="bahdanau", cell="lstm", layers=2),
    RecurrentOptions(width=16, attention="luong-general", cell="gru", input_feeding=True, window=3),
    RecurrentOptions(width=16, attention="none", cell="lstm", bidirectional=False),
]


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.learn(PAIRS, TokenizerOptions(vocabulary=150), seed=1)


@pytest.fixture(
    scope="module", params=KINDS, ids=lambda options: f"{options.kind} {options.model_dump().get('attention', '')}"
)
def exported_pair(request, tokenizer, tmp_path_factory):
    """An untrained model with peaked predictions, and the folder of its export."""
    torch.manual_seed(1)
    model = build_model(request.param, tokenizer.source_size, tokenizer.target_size).eval()
    for parameter in model.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    model.output.bias.data[:3] += 2  # make special tokens likely, though they must never be written
    out = tmp_path_factory.mktemp("onnx") / "out"
    export_onnx(model, tokenizer, out, "float32", longest=50)
    return model, out


def test_logits_are_ours_for_any_number_of_sentences_of_any_length(exported_pair):
    model, out = exported_pair
    exported = Exported(out, threads=1)
    assert exported.facts["source"]["longest"] == 50
    positions = None if model.options.kind == "recurrent" else model.max_length or 1024
    assert exported.facts["target"]["longest"] == positions
    for lengths in ([1], [7, 3, 1, 5], [45]):
        ids = torch.randint(4, 100, (len(lengths), max(lengths)))
        for row, length in zip(ids, lengths, strict=True):
            row[length - 1], row[length:] = model.eos, model.pad
        rows = torch.tensor([0, *range(len(lengths))])  # repeats the first row
        tokens = torch.full((len(lengths),), model.bos)
        their_state = exported.start(ids.numpy())
        with torch.no_grad():
            state = model.start(model.encode(ids))
            for step in range(6):
                if step == 2:
                    state, tokens = state.select(rows), tokens[rows]
                    their_state = {name: np.take(tensor, rows.numpy(), axis=0) for name, tensor in their_state.items()}
                ours, state = model.step(tokens, state)
                theirs, their_state = exported.step(tokens.numpy(), their_state)
                np.testing.assert_allclose(theirs, ours.numpy(), atol=1e-4, rtol=0)
                tokens = torch.randint(4, 100, (len(tokens),))


def test_greedy_translations_are_ours(exported_pair, tokenizer):
    model, out = exported_pair
    options = DecodingOptions(beam=1, max_loops=0, max_length_extra=8, max_length_ratio=1)
    sources = [[*ids, model.eos] for ids in tokenizer.encode_source(SOURCES)]
    ours = [
        hypotheses[0].tokens
        for hypotheses in TorchEngine.of(model, tokenizer, torch.device("cpu")).decode(SearchRequest(sources, options))
    ]
    assert Exported(out, threads=1).greedy(sources, options) == ours
    assert len({tuple(tokens) for tokens in ours}) > 5


LANGUAGES = ["--source-language", "en", "--target-language", "es"]


@pytest.fixture(scope="module")
def many_languages(tmp_path_factory):
    """A run with several source and target languages."""
    folder = tmp_path_factory.mktemp("languages")
    many_languages_folder(folder / "theirs", end=2.0, decoder_layers=1)
    import_model(folder / "theirs", folder / "run")
    return folder / "run"


@pytest.fixture(scope="module")
def exported_run(many_languages, tmp_path_factory):
    """The export of that run for two of its languages."""
    out = tmp_path_factory.mktemp("onnx") / "float"
    assert run(["export", str(many_languages), str(out), "--to", "onnx", *LANGUAGES]) == 0
    return out


@pytest.fixture(scope="module")
def ours(many_languages):
    return Translator.load(many_languages, "cpu", "torch", source="en", target="es")


def test_the_example_of_the_document_needs_neither_this_package_nor_torch(exported_run, ours, tmp_path):
    document = (ROOT / "docs" / "export.md").read_text()
    (example,) = re.findall(r"\n## ONNX.*?```python\n(.*?)```", document, flags=re.DOTALL)
    blocked = "import sys\nsys.modules.update(torch=None, translucid=None)\n"
    (tmp_path / "example.py").write_text(blocked + example)
    for text in ("I like soccer.", "She reads a book"):
        command = [sys.executable, tmp_path / "example.py", exported_run, text]
        completed = subprocess.run(command, capture_output=True, text=True, check=False)
        assert completed.returncode == 0, completed.stderr
        expected = ours.translate(text, beam=1, max_loops=0, min_length=0, **LIMITS).text
        assert completed.stdout == expected + "\n"


def test_a_multilingual_model_is_exported_for_two_languages(many_languages, exported_run, ours, tmp_path):
    assert run(["export", str(many_languages), str(tmp_path / "out"), "--to", "onnx"]) == 2
    exported = Exported(exported_run, threads=1)
    for side, opening in (("source", ours.tokenizer.source_opening), ("target", ours.tokenizer.target_opening)):
        assert exported.facts[side]["opening"] == list(opening) and len(opening) == 1
    sources = [[*ids, 3] for ids in ours.tokenizer.encode_source(SOURCES)]
    options = DecodingOptions(beam=1, max_loops=0)
    assert exported.greedy(sources, options) == [
        hypotheses[0].tokens for hypotheses in ours.torch_engine.decode(SearchRequest(sources, options))
    ]


def test_the_metadata_describe_the_export(exported_run):
    metadata = json.loads((exported_run / "model.json").read_text())
    named_files = {
        metadata[side][key] for side, key in (("source", "tokenizer"), ("encoder", "file"), ("decoder", "file"))
    }
    assert {file.name for file in exported_run.iterdir()} == {*named_files, "model.json"}
    exported = Exported(exported_run)
    for side in ("encoder", "decoder"):
        session = getattr(exported, side)
        assert [tensor.name for tensor in session.get_inputs()] == metadata[side]["inputs"]
        assert [tensor.name for tensor in session.get_outputs()] == metadata[side]["outputs"]
    assert (metadata["source"]["longest"], metadata["target"]["longest"]) == (600, 1024)
    assert metadata["special"] == {"pad": 0, "unknown": 1, "start": 2, "end": 3}


def test_int8_is_smaller_and_checked(exported_run, many_languages, corpus, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(
        "translucid.evaluation.metrics.Criterion.is_meaningful", lambda self, score: True
    )  # the model is untrained
    call = ["export", str(many_languages), str(tmp_path / "out"), "--to", "onnx", *LANGUAGES]
    call += ["--quantization", "int8", "--check", str(corpus / "test.tsv")]
    assert run(call) == 0
    assert "by onnxruntime with int8, greedy, on 20 pairs" in capsys.readouterr().err

    def size(folder):
        return sum(file.stat().st_size for file in folder.glob("*.onnx"))

    assert size(tmp_path / "out") < 0.8 * size(exported_run)  # most of such a small model is its table of positions
    monkeypatch.setattr("translucid.engines.tuning.ALLOWED", -1.0)
    assert run([*call, "--overwrite"]) == 2
    assert "int8 costs" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["out"]


def test_unsupported_exports_are_refused(small_run, tmp_path, capsys, monkeypatch):
    (tmp_path / "mine").mkdir()
    call = ["export", str(small_run), str(tmp_path / "mine"), "--to", "onnx"]
    assert run(call) == 2
    assert "is there already" in capsys.readouterr().err
    assert run([*call, "--overwrite"]) == 2
    assert "is not a model exported to ONNX" in capsys.readouterr().err
    assert run(["export", str(small_run), str(tmp_path / "none" / "out"), "--to", "onnx"]) == 2
    assert "there is no such folder" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(UserError, match="needs the package onnxruntime"):
        refuse_without_packages(PURPOSE)


def test_other_kinds_of_models_are_refused():
    with_elmo = TransformerOptions(**SMALL, elmo=BiLSTMLanguageOptions(width=8, hidden=8))
    for options, kind in (
        (with_elmo, "ELMo"),
        (TransformerLanguageOptions(width=16), "TransformerLanguageModel"),
    ):
        with pytest.raises(UserError, match=f"{kind}.* can't become an ONNX model"):
            state_layout(build_model(options, 50, 50))
