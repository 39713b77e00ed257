"""CTranslate2's folders become runs again."""

import json
import random
import shutil
import struct

import ctranslate2
import numpy as np
import pytest
import torch

from tests.probes.foreign import many_languages_folder, marian_folder, sentences
from translucid.api.translator import Translator
from translucid.data.readers.corpus import Pair
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.data.tokenizing.tokenizer_options import TokenizerOptions
from translucid.engines.ctranslate2.convert import export_ctranslate2
from translucid.ground.errors import UserError
from translucid.interop.ctranslate2 import _scaled as embeddings_are_scaled
from translucid.interop.ctranslate2 import from_ctranslate2
from translucid.interop.ctranslate2_file import Variables, read_model_file
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
    {"norm": "post", "positions": "none", "zero_start": True},
]


def ours(out, changes, *, joint=True, quantization="float32"):
    """An untrained model of ours and its tokenizer, exported."""
    pairs = [Pair(*pair) for pair in zip(*sentences(), strict=True)]
    tokenizer = Tokenizer.learn(pairs, TokenizerOptions(vocabulary=150, joint=joint), seed=1)
    torch.manual_seed(1)
    options = TransformerOptions(**SMALL, share_embeddings=joint, **changes)
    model = build_model(options, tokenizer.source_size, tokenizer.target_size).eval()
    for parameter in model.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    export_ctranslate2(model, tokenizer, out, quantization)
    return model, tokenizer


def opened(path):
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
def test_what_we_wrote_comes_back(tmp_path, changes, joint):
    model, tokenizer = ours(tmp_path / "out", changes, joint=joint)
    import_model(tmp_path / "out", tmp_path / "run")
    again, its, _ = opened(tmp_path / "run")
    assert again.options == model.options.model_copy(update={"dropout": again.options.dropout})
    assert its.fingerprint == tokenizer.fingerprint
    ids, target = torch.randint(4, 150, (3, 9)), torch.randint(2, 150, (3, 7))
    with torch.inference_mode():
        torch.testing.assert_close(again(ids, target), model(ids, target), atol=1e-5, rtol=0)


def test_one_list_of_pieces_may_have_other_embeddings_on_each_side(tmp_path):
    pairs = [Pair(*pair) for pair in zip(*sentences(), strict=True)]
    tokenizer = Tokenizer.learn(pairs, TokenizerOptions(vocabulary=150), seed=1)
    model = build_model(TransformerOptions(**SMALL, share_embeddings=False), 150, 150)
    export_ctranslate2(model, tokenizer, tmp_path / "out", "float32")
    import_model(tmp_path / "out", tmp_path / "run")
    again, _, configuration = opened(tmp_path / "run")
    assert not again.options.share_embeddings
    assert configuration.data.tokenizer.joint and not configuration.data.tokenizer.shared_ids
    weights = dict(model.named_parameters())
    for name, weight in again.named_parameters():
        torch.testing.assert_close(weight, weights[name], atol=1e-6, rtol=0)


@pytest.mark.parametrize("learned", [False, True], ids=["sinusoidal", "learned"])
def test_a_sentencepiece_model_of_others_beside_the_weights(tmp_path, learned):
    """The settings of a folder whose vocabulary is a list; its rows are in our order, so the weights stay."""
    changes = {"positions": "learned", "max_length": 60} if learned else {}
    folder = tmp_path / "out"
    model, tokenizer = ours(folder, {"norm": "post", **changes})
    (folder / "tokenizer.model").rename(folder / "sentencepiece.bpe.model")
    found = from_ctranslate2(folder)
    options = {"joint": True, "shared_ids": False, "languages": {}, "language_pieces": "source-side", "vocabulary": 150}
    assert found.settings["data"] == {"tokenizer": options} | ({} if learned else {"max_tokens": 512})
    expected = {"kind": "transformer", **SMALL, "norm": "post", "nonlinearity": "relu", "scale_embeddings": True}
    expected |= {"zero_start": False, "tie_output": True, "share_embeddings": True, **changes}
    assert found.settings["model"] == expected | ({} if learned else {"positions": "sinusoidal", "first_position": 0})
    assert found.kind == "CTranslate2" and found.tokenizer.target_vocabulary == tokenizer.target_vocabulary
    weights = dict(model.named_parameters())
    assert {*weights} <= {*found.tensors}
    for name, weight in weights.items():
        wanted = weight.detach().clone()
        if name == "output.bias":  # padding is never written
            wanted[[0]] = found.tensors[name][[0]]
        torch.testing.assert_close(found.tensors[name], wanted, atol=1e-6, rtol=0, msg=name)


@pytest.mark.parametrize(
    ("quantization", "off"),
    [("int8", 0.02), ("int16", 0.003), ("float16", 0.002), ("bfloat16", 0.004), ("int8_bfloat16", 0.02)],
)
def test_smaller_weights_come_back_as_far_as_they_go(tmp_path, quantization, off):
    model, _ = ours(tmp_path / "out", {"norm": "pre"}, quantization=quantization)
    import_model(tmp_path / "out", tmp_path / "run")
    again, *_ = opened(tmp_path / "run")
    assert again.options.positions == "sinusoidal"
    for (name, one), other in zip(model.named_parameters(), again.parameters(), strict=True):
        assert (one - other).abs().max() <= off * one.abs().max(), name
    assert any(not torch.equal(*two) for two in zip(model.parameters(), again.parameters(), strict=True))


@pytest.fixture(scope="module", params=["swish", "languages", "m2m"])
def converted(request, tmp_path_factory):
    """A folder of Hugging Face as a run, and as a run by way of CTranslate2's own converter."""
    from ctranslate2.converters import TransformersConverter  # it imports `transformers`

    place, kind = tmp_path_factory.mktemp(request.param), request.param
    theirs, files = place / "theirs", ["source.spm", "target.spm"]
    if kind == "m2m":
        from translucid.interop.huggingface_rows import M2M100

        many_languages_folder(theirs, codes=M2M100)
        files = ["sentencepiece.bpe.model"]
    else:
        marian_folder(theirs, languages=("es", "pt") if kind == "languages" else ())
    TransformersConverter(str(theirs), copy_files=files).convert(str(place / "ct2"))
    import_model(theirs, place / "straight")
    import_model(place / "ct2", place / "around")
    return kind, place / "straight", place / "around"


def test_what_the_converter_made_is_the_model_that_it_was_made_of(converted):
    kind, straight, around = converted
    one, tokenizer, _ = opened(straight)
    other, its, configuration = opened(around)
    assert configuration.model == one.options.model_copy(update={"dropout": configuration.model.dropout})
    ids, same = tokenizer.encode_source(TEXTS), its.encode_source(TEXTS)
    assert [tokenizer.source_pieces(i) for i in ids] == [its.source_pieces(i) for i in same]
    known = [piece for piece in tokenizer.target_vocabulary[3:] if piece in its.target_vocabulary]
    assert len(known) > 0.9 * its.target_size
    places = [
        [vocabulary.index(p) for p in known] for vocabulary in (tokenizer.target_vocabulary, its.target_vocabulary)
    ]
    for mine, theirs in zip(ids, same, strict=True):
        with torch.inference_mode():
            wanted = one(torch.tensor([[*mine, 3]]), torch.tensor([[2, places[0][7], places[0][9]]]))
            found = other(torch.tensor([[*theirs, 3]]), torch.tensor([[2, places[1][7], places[1][9]]]))
        torch.testing.assert_close(found[..., places[1]], wanted[..., places[0]], atol=1e-4, rtol=0)
    codes = {"languages": (None, "pt"), "m2m": ("en", "es")}.get(kind, (None, None))
    translators = [Translator.load(run, "cpu", "torch", source=codes[0], target=codes[1]) for run in (straight, around)]
    texts = [[found.text for found in translator.translate(TEXTS, beam=1)] for translator in translators]
    assert texts[0] == texts[1]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "out"
    ours(folder, {"norm": "pre"}, quantization="int8")
    return folder


def said_of(folder, tmp_path):
    """What one line says of a folder that can't be imported."""
    with pytest.raises(UserError) as refused:
        import_model(folder, tmp_path / "run")
    assert "\n" not in str(refused.value) and not (tmp_path / "run").exists()
    return str(refused.value)


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        (lambda f: (f / "model.bin").write_bytes(b""), "cut short"),
        (lambda f: (f / "model.bin").write_bytes(struct.pack("<I", 5)), "of the format 5"),
        (lambda f: (f / "config.json").unlink(), "config.json: is missing"),
        (lambda f: changed(f, add_source_bos=True), "add_source_bos=True is not supported"),
        (lambda f: changed(f, layer_norm_epsilon=0.1), "layer_norm_epsilon"),
        (lambda f: (f / "tokenizer.model").unlink(), "has no SentencePiece model source.spm"),
        (lambda f: (f / "shared_vocabulary.json").unlink(), "has no vocabulary"),
        (lambda f: (f / "shared_vocabulary.json").write_text('["a", 1]'), "is not a list of pieces"),
        (lambda f: (f / "shared_vocabulary.json").write_text('["a", "a"]'), "has a piece twice"),
        (lambda f: (f / "shared_vocabulary.json").write_text('["a"]'), "has 1 pieces, and there are 150 embeddings"),
        (lambda f: renamed(f), "is not that of the SentencePiece model"),
    ],
)
def test_what_is_not_whole_is_one_line(whole, tmp_path, break_it, said):
    shutil.copytree(whole, tmp_path / "theirs")
    break_it(tmp_path / "theirs")
    assert said in said_of(tmp_path / "theirs", tmp_path)


def changed(folder, **values):
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


def renamed(folder):
    file = folder / "shared_vocabulary.json"
    names = json.loads(file.read_text())
    file.write_text(json.dumps([*names[:-2], names[-1], names[-2]]))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"with_relative_position": True}, "has no table of positions"),
        ({"ffn_glu": True}, "linear_0_noact"),
        ({"layernorm_embedding": True}, "layernorm_embedding"),
        ({"activation": ctranslate2.specs.Activation.GELUTanh}, "has the activation 1"),
    ],
)
def test_models_that_we_do_not_have_are_refused(whole, tmp_path, options, said):
    shutil.copytree(whole, tmp_path / "theirs")
    spec = ctranslate2.specs.TransformerSpec.from_config(1, 2, **options)

    def fill(part, name, value):
        if value is None:
            square = (
                (150, 4) if "embeddings/weight" in name or "embeddings_0" in name or "projection" in name else (4, 4)
            )
            one = name.endswith(("gamma", "beta"))
            setattr(part, name.split("/")[-1], np.ones(4 if one else square, np.float32))

    ctranslate2.specs.model_spec.visit_spec(spec, fill)
    if hasattr(spec.encoder, "position_encodings"):
        for side in (spec.encoder, spec.decoder):
            side.position_encodings.encodings = np.zeros((9, 4), np.float32)
    for name in ("source", "target"):
        getattr(spec, f"register_{name}_vocabulary")(json.loads((whole / "shared_vocabulary.json").read_text()))
    spec.validate()
    spec.save(str(tmp_path / "theirs"))
    assert said in said_of(tmp_path / "theirs", tmp_path)


def test_other_specifications_are_refused(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "theirs")
    file = tmp_path / "theirs" / "model.bin"
    file.write_bytes(file.read_bytes().replace(b"TransformerSpec", b"WhisperSpecific"))
    assert "is a 'WhisperSpecific' of revision 7, which is not supported" in said_of(tmp_path / "theirs", tmp_path)


def test_hostile_files_are_one_line_and_cost_nothing(whole, tmp_path):
    """Truncations, flipped bytes, and lengths of any size at every place where a length may stand."""
    content = (whole / "model.bin").read_bytes()
    draw = random.Random(1)
    folder = tmp_path / "theirs"
    shutil.copytree(whole, folder)
    file = folder / "model.bin"
    refused = kept = 0
    for attempt in range(300):
        broken = bytearray(content)
        if attempt % 3 == 0:
            del broken[draw.randrange(len(broken)) :]
        elif attempt % 3 == 1:
            at = draw.randrange(min(len(broken), 2000) if attempt % 2 else len(broken))
            broken[at] ^= 1 << draw.randrange(8)
        else:
            at = draw.randrange(len(broken) - 4)
            broken[at : at + 4] = draw.choice([b"\xff" * 4, b"\0" * 4, b"\xff\xff\xff\x7f"])
        file.write_bytes(broken)
        try:
            from translucid.interop.ctranslate2 import from_ctranslate2

            from_ctranslate2(folder)
            kept += 1  # a weight was hit
        except UserError as error:
            assert "\n" not in str(error)
            refused += 1
    assert refused > 120 and kept > 20


def test_sizes_that_the_file_does_not_bear_out(tmp_path):
    """Four thousand million variables, and one of many terabytes."""
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


def test_weights_are_those_of_the_file(whole, tmp_path):
    """int8 by hand: what is stored, divided by the scale of its row."""
    import_model(whole, tmp_path / "run")
    tensors, _ = load_tensors(tmp_path / "run" / "model.safetensors")
    found = read_model_file(whole / "model.bin").variables
    name = "decoder/layer_0/ffn/linear_1/weight"
    wanted = found[name].astype(np.float64) / found[f"{name}_scale"][:, None]
    np.testing.assert_allclose(tensors["decoder.0.feed_forward.outer.weight"].numpy(), wanted, atol=1e-6)
