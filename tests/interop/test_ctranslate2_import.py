"""CTranslate2 models are imported as runs."""

import json
import random
import shutil
import struct

import ctranslate2
import numpy as np
import pytest
import torch

from bitext.pair import Pair
from tests.probes.foreign import many_languages_folder, marian_folder, sentences
from translucid.api.translator import Translator
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions
from translucid.engines.ctranslate2.convert import export_ctranslate2
from translucid.ground.errors import UserError
from translucid.interop.ctranslate2 import Variables, from_ctranslate2, read_model_file
from translucid.interop.ctranslate2 import _scaled as embeddings_are_scaled
from translucid.interop.importing import import_model
from translucid.models.build import build_model
from translucid.models.model_options import TransformerOptions
from translucid.runs.run_folder import RunFolder
from translucid.runs.tensor_file import load_tensors

TEXTS = [*sentences()[0][:8], "I ☃ like"]
SMALL = {"width": 16, "heads": 2, "feed_forward": 24, "encoder_layers": 2, "decoder_layers": 1}
KINDS = [
    {"norm": "pre"},
    {"norm": "post", "nonlinearity": "swish", "scale_embeddings": False, "positions": "sinusoidal-halves"},
    {"norm": "pre", "nonlinearity": "gelu", "positions": "sinusoidal-tensor2tensor", "first_position": 2},
    {"norm": "post", "positions": "learned", "max_length": 60, "tie_output": False},
    {"norm": "post-final", "positions": "none", "zero_start": True, "source_end": False},
]


def export_our_model(out, changes, *, joint=True, quantization="float32"):
    """Build an untrained model and its tokenizer, and export both."""
    pairs = [Pair(*pair) for pair in zip(*sentences(), strict=True)]
    tokenizer = Tokenizer.learn(pairs, TokenizerOptions(vocabulary=150, joint=joint), seed=1)
    torch.manual_seed(1)
    options = TransformerOptions(**SMALL, share_embeddings=joint, **changes)
    model = build_model(options, tokenizer.source_size, tokenizer.target_size).eval()
    for parameter in model.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    export_ctranslate2(model, tokenizer, out, quantization)
    return model, tokenizer


def load_run(path):
    run = RunFolder(path)
    configuration, tokenizer = run.configuration(), run.tokenizer()
    return run.load_sequence_model(configuration, tokenizer), tokenizer, configuration


@pytest.mark.parametrize(
    ("factor", "scaled"),
    [(np.int8(0), False), (np.int8(1), True), (np.float32(1), False), (np.float32(4), True), (np.float32(2), None)],
    ids=str,
)
def test_embeddings_are_scaled_by_a_flag_or_by_a_factor(factor, scaled, tmp_path):
    """The factor is 1, or the square root of the width, here 16."""
    names = [f"{side}/scale_embeddings" for side in ("encoder", "decoder")]
    variables = Variables(dict.fromkeys(names, np.array(factor)), tmp_path / "model.bin")
    if scaled is None:
        with pytest.raises(UserError, match="has the factor 2 at its embeddings"):
            embeddings_are_scaled(variables, 16)
    else:
        assert embeddings_are_scaled(variables, 16) is scaled


@pytest.mark.parametrize("joint", [True, False], ids=["joint", "separate"])
@pytest.mark.parametrize("changes", KINDS, ids=str)
def test_our_exports_are_imported_again(tmp_path, changes, joint):
    model, tokenizer = export_our_model(tmp_path / "out", changes, joint=joint)
    import_model(tmp_path / "out", tmp_path / "run")
    reimported, its_tokenizer, _ = load_run(tmp_path / "run")
    assert reimported.options == model.options.model_copy(update={"dropout": reimported.options.dropout})
    assert its_tokenizer.fingerprint == tokenizer.fingerprint
    ids, target = torch.randint(4, 150, (3, 9)), torch.randint(2, 150, (3, 7))
    with torch.inference_mode():
        torch.testing.assert_close(reimported(ids, target), model(ids, target), atol=1e-5, rtol=0)


def test_one_list_of_pieces_may_have_other_embeddings_on_each_side(tmp_path):
    pairs = [Pair(*pair) for pair in zip(*sentences(), strict=True)]
    tokenizer = Tokenizer.learn(pairs, TokenizerOptions(vocabulary=150), seed=1)
    model = build_model(TransformerOptions(**SMALL, share_embeddings=False), 150, 150)
    export_ctranslate2(model, tokenizer, tmp_path / "out", "float32")
    import_model(tmp_path / "out", tmp_path / "run")
    reimported, _, configuration = load_run(tmp_path / "run")
    assert not reimported.options.share_embeddings
    assert configuration.data.tokenizer.joint and not configuration.data.tokenizer.shared_ids
    weights = dict(model.named_parameters())
    for name, weight in reimported.named_parameters():
        torch.testing.assert_close(weight, weights[name], atol=1e-6, rtol=0)


@pytest.mark.parametrize("learned", [False, True], ids=["sinusoidal", "learned"])
def test_a_foreign_sentencepiece_model_beside_the_weights(tmp_path, learned):
    """The settings of a folder whose vocabulary is a list: its rows are in our order, so the weights are unchanged."""
    changes = {"positions": "learned", "max_length": 60} if learned else {}
    folder = tmp_path / "out"
    model, tokenizer = export_our_model(folder, {"norm": "post", **changes})
    (folder / "tokenizer.model").rename(folder / "sentencepiece.bpe.model")
    imported = from_ctranslate2(folder)
    options = {"joint": True, "shared_ids": False, "languages": {}, "language_pieces": "source-side", "vocabulary": 150}
    assert imported.settings["data"] == {"tokenizer": options} | ({} if learned else {"max_tokens": 512})
    expected = {"kind": "transformer", **SMALL, "norm": "post", "nonlinearity": "relu", "scale_embeddings": True}
    expected |= {"zero_start": False, "source_end": True, "tie_output": True, "share_embeddings": True, **changes}
    assert imported.settings["model"] == expected | (
        {} if learned else {"positions": "sinusoidal", "first_position": 0}
    )
    assert imported.kind == "CTranslate2" and imported.tokenizer.target_vocabulary == tokenizer.target_vocabulary
    weights = dict(model.named_parameters())
    assert {*weights} <= {*imported.tensors}
    for name, weight in weights.items():
        expected_weight = weight.detach().clone()
        if name == "output.bias":  # padding is never written
            expected_weight[[0]] = imported.tensors[name][[0]]
        torch.testing.assert_close(imported.tensors[name], expected_weight, atol=1e-6, rtol=0, msg=name)


@pytest.mark.parametrize(
    ("quantization", "tolerance"),
    [("int8", 0.02), ("int16", 0.003), ("float16", 0.002), ("bfloat16", 0.004), ("int8_bfloat16", 0.02)],
)
def test_quantized_weights_are_imported_with_their_precision(tmp_path, quantization, tolerance):
    model, _ = export_our_model(tmp_path / "out", {"norm": "pre"}, quantization=quantization)
    import_model(tmp_path / "out", tmp_path / "run")
    reimported, *_ = load_run(tmp_path / "run")
    assert reimported.options.positions == "sinusoidal"
    for (name, weight), reimported_weight in zip(model.named_parameters(), reimported.parameters(), strict=True):
        assert (weight - reimported_weight).abs().max() <= tolerance * weight.abs().max(), name
    assert any(not torch.equal(*pair) for pair in zip(model.parameters(), reimported.parameters(), strict=True))


@pytest.fixture(scope="module", params=["swish", "languages", "m2m"])
def converted_runs(request, tmp_path_factory):
    """A Hugging Face model as two runs: imported directly, and imported from CTranslate2's own conversion."""
    from ctranslate2.converters import TransformersConverter  # it imports `transformers`

    folder, kind = tmp_path_factory.mktemp(request.param), request.param
    theirs, files = folder / "theirs", ["source.spm", "target.spm"]
    if kind == "m2m":
        from translucid.interop.huggingface_export import M2M100

        many_languages_folder(theirs, codes=M2M100)
        files = ["sentencepiece.bpe.model"]
    else:
        marian_folder(theirs, languages=("es", "pt") if kind == "languages" else ())
    TransformersConverter(str(theirs), copy_files=files).convert(str(folder / "ct2"))
    import_model(theirs, folder / "straight")
    import_model(folder / "ct2", folder / "around")
    return kind, folder / "straight", folder / "around"


def test_a_converted_model_equals_its_original(converted_runs):
    kind, direct, from_ctranslate2_run = converted_runs
    direct_model, tokenizer, _ = load_run(direct)
    model, its_tokenizer, configuration = load_run(from_ctranslate2_run)
    assert configuration.model == direct_model.options.model_copy(update={"dropout": configuration.model.dropout})
    ids, its_ids = tokenizer.encode_source(TEXTS), its_tokenizer.encode_source(TEXTS)
    assert [tokenizer.source_pieces(i) for i in ids] == [its_tokenizer.source_pieces(i) for i in its_ids]
    shared_pieces = [piece for piece in tokenizer.target_vocabulary[3:] if piece in its_tokenizer.target_vocabulary]
    assert len(shared_pieces) > 0.9 * its_tokenizer.target_size
    columns = [tokenizer.target_vocabulary.index(piece) for piece in shared_pieces]
    its_columns = [its_tokenizer.target_vocabulary.index(piece) for piece in shared_pieces]
    for mine, theirs in zip(ids, its_ids, strict=True):
        with torch.inference_mode():
            expected = direct_model(torch.tensor([[*mine, 3]]), torch.tensor([[2, columns[7], columns[9]]]))
            logits = model(torch.tensor([[*theirs, 3]]), torch.tensor([[2, its_columns[7], its_columns[9]]]))
        torch.testing.assert_close(logits[..., its_columns], expected[..., columns], atol=1e-4, rtol=0)
    codes = {"languages": (None, "pt"), "m2m": ("en", "es")}.get(kind, (None, None))

    def greedy_translations(folder):
        translator = Translator.load(folder, "cpu", "torch", source=codes[0], target=codes[1])
        return [translation.text for translation in translator.translate(TEXTS, beam=1)]

    assert greedy_translations(direct) == greedy_translations(from_ctranslate2_run)


@pytest.fixture(scope="module")
def intact_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "out"
    export_our_model(folder, {"norm": "pre"}, quantization="int8")
    return folder


def import_error(folder, tmp_path):
    """Return the one-line error of importing a folder."""
    with pytest.raises(UserError) as error:
        import_model(folder, tmp_path / "run")
    assert "\n" not in str(error.value) and not (tmp_path / "run").exists()
    return str(error.value)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "model.bin").write_bytes(b""), "cut short"),
        (lambda f: (f / "model.bin").write_bytes(struct.pack("<I", 5)), "cut short"),
        (lambda f: (f / "model.bin").write_bytes(struct.pack("<I", 1)), "of the format 1"),
        (lambda f: (f / "config.json").unlink(), "config.json: is missing"),
        (lambda f: change_config(f, add_source_bos=1), "add_source_bos is 1, not true or false"),
        (lambda f: change_config(f, layer_norm_epsilon=0.1), "layer_norm_epsilon"),
        (lambda f: (f / "tokenizer.model").unlink(), "has no SentencePiece model source.spm"),
        (lambda f: (f / "shared_vocabulary.json").unlink(), "has no vocabulary"),
        (lambda f: (f / "shared_vocabulary.json").write_text('["a", 1]'), "is not a list of pieces"),
        (lambda f: (f / "shared_vocabulary.json").write_text('["a", "a"]'), "has a piece twice"),
        (lambda f: (f / "shared_vocabulary.json").write_text('["a"]'), "has 1 pieces, and there are 150 embeddings"),
        (lambda f: swap_pieces(f), "is not that of the SentencePiece model"),
    ],
)
def test_incomplete_folders_are_refused_in_one_line(intact_folder, tmp_path, damage, message):
    shutil.copytree(intact_folder, tmp_path / "theirs")
    damage(tmp_path / "theirs")
    assert message in import_error(tmp_path / "theirs", tmp_path)


def change_config(folder, **values):
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


def swap_pieces(folder):
    file = folder / "shared_vocabulary.json"
    names = json.loads(file.read_text())
    file.write_text(json.dumps([*names[:-2], names[-1], names[-2]]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"with_relative_position": True}, "layer_0/self_attention/relative_position_keys"),
        ({"ffn_glu": True}, "linear_0_noact"),
        ({"layernorm_embedding": True}, "layernorm_embedding"),
        ({"activation": ctranslate2.specs.Activation.GELUTanh}, "has the activation 1 (GELUTanh)"),
    ],
)
def test_models_that_we_do_not_have_are_refused(intact_folder, tmp_path, options, message):
    shutil.copytree(intact_folder, tmp_path / "theirs")
    spec = ctranslate2.specs.TransformerSpec.from_config(1, 2, **options)

    def fill(part, name, value):
        if value is None:
            square = (
                (150, 4) if "embeddings/weight" in name or "embeddings_0" in name or "projection" in name else (4, 4)
            )
            is_vector = name.endswith(("gamma", "beta"))
            setattr(part, name.split("/")[-1], np.ones(4 if is_vector else square, np.float32))

    ctranslate2.specs.model_spec.visit_spec(spec, fill)
    if hasattr(spec.encoder, "position_encodings"):
        for side in (spec.encoder, spec.decoder):
            side.position_encodings.encodings = np.zeros((9, 4), np.float32)
    for name in ("source", "target"):
        getattr(spec, f"register_{name}_vocabulary")(json.loads((intact_folder / "shared_vocabulary.json").read_text()))
    spec.validate()
    spec.save(str(tmp_path / "theirs"))
    assert message in import_error(tmp_path / "theirs", tmp_path)


def test_other_specifications_are_refused(intact_folder, tmp_path):
    shutil.copytree(intact_folder, tmp_path / "theirs")
    file = tmp_path / "theirs" / "model.bin"
    file.write_bytes(file.read_bytes().replace(b"TransformerSpec", b"WhisperSpecific"))
    assert "is a 'WhisperSpecific' of revision 7, which is not supported" in import_error(tmp_path / "theirs", tmp_path)


def test_hostile_files_are_one_line_and_cost_nothing(intact_folder, tmp_path):
    """Truncated files, flipped bits and wrong lengths are refused with one line."""
    content = (intact_folder / "model.bin").read_bytes()
    rng = random.Random(1)
    folder = tmp_path / "theirs"
    shutil.copytree(intact_folder, folder)
    file = folder / "model.bin"
    refusals = accepted = 0
    for attempt in range(300):
        broken = bytearray(content)
        if attempt % 3 == 0:
            del broken[rng.randrange(len(broken)) :]
        elif attempt % 3 == 1:
            offset = rng.randrange(min(len(broken), 2000) if attempt % 2 else len(broken))
            broken[offset] ^= 1 << rng.randrange(8)
        else:
            offset = rng.randrange(len(broken) - 4)
            broken[offset : offset + 4] = rng.choice([b"\xff" * 4, b"\0" * 4, b"\xff\xff\xff\x7f"])
        file.write_bytes(broken)
        try:
            from translucid.interop.ctranslate2 import from_ctranslate2

            from_ctranslate2(folder)
            accepted += 1  # only a weight was changed
        except UserError as error:
            assert "\n" not in str(error)
            refusals += 1
    assert refusals > 120 and accepted > 20


def test_sizes_beyond_the_end_of_the_file_are_refused(tmp_path):
    """A file that claims four billion variables, and one that claims terabytes."""
    start = struct.pack("<I", 6) + struct.pack("<H", 2) + b"T\0" + struct.pack("<I", 7)
    for rest in (
        struct.pack("<I", 0xFFFFFFFF),
        struct.pack("<IH", 1, 2) + b"a\0" + struct.pack("<BIII", 3, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF) + b"\0" * 5,
        struct.pack("<IH", 1, 2) + b"a\0" + struct.pack("<BI", 1, 1 << 30) + struct.pack("<BI", 0, 1 << 31),
        struct.pack("<IH", 1, 2) + b"a\0" + struct.pack("<B", 255),
        struct.pack("<IH", 1, 2) + b"ab",
        struct.pack("<II", 0, 1) + struct.pack("<H", 2) + b"a\0" + struct.pack("<H", 2) + b"b\0",
        struct.pack("<II", 0, 0) + b"more",
    ):
        (tmp_path / "model.bin").write_bytes(start + rest)
        with pytest.raises(UserError, match="is damaged: it"):
            read_model_file(tmp_path / "model.bin")


def test_weights_are_those_of_the_file(intact_folder, tmp_path):
    """int8 weights, computed by hand: the stored values divided by the scale of their row."""
    import_model(intact_folder, tmp_path / "run")
    tensors, _ = load_tensors(tmp_path / "run" / "model.safetensors")
    variables = read_model_file(intact_folder / "model.bin").variables
    name = "decoder/layer_0/ffn/linear_1/weight"
    expected = variables[name].astype(np.float64) / variables[f"{name}_scale"][:, None]
    np.testing.assert_allclose(tensors["decoder.0.feed_forward.outer.weight"].numpy(), expected, atol=1e-6)
