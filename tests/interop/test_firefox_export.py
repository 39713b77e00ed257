"""Exports to Firefox's format, read byte by byte, and translated by Firefox's own engines where they are installed."""

import itertools
import json
import math
import shutil
import struct

import numpy as np
import pytest
import torch
import yaml

from tests.interop.test_huggingface_export import make_model
from tests.probes.engines import run_engine
from tests.probes.foreign import sentences
from translucid.api.translator import Translator
from translucid.cli.main import run
from translucid.data.text_pipeline import TextPipeline
from translucid.decoding.decoding_options import DecodingOptions, SearchRequest
from translucid.decoding.search import TorchEngine
from translucid.decoding.shortlist import Shortlist
from translucid.ground.errors import UserError
from translucid.interop.firefox_export import export_firefox, input_factors, simulated
from translucid.interop.importing import import_model
from translucid.interop.marian import _shortlist, shortlist_file
from translucid.interop.marian_export import arrays_of, export_marian
from translucid.interop.pieces import Vocabulary, pieces_of, read_sentencepiece
from translucid.models.build import build_model
from translucid.models.model_options import TransformerOptions

STUDENT = {
    "width": 64,
    "heads": 4,
    "feed_forward": 128,
    "decoder": "ssru",
    "norm": "post",
    "positions": "sinusoidal-tensor2tensor",
    "zero_start": True,
}
TEXTS = list(sentences()[0][:20])


@pytest.fixture(scope="module")
def student():
    """A small student with random weights, and its tokenizer."""
    model, tokenizer, _ = make_model(STUDENT)
    return model, tokenizer


@pytest.fixture(scope="module")
def factors(student):
    model, tokenizer = student
    pairs = TextPipeline(tokenizer, 100).pairs(list(zip(*sentences(), strict=True))[:40])
    return input_factors(model, [pair.ids for pair in pairs])


@pytest.fixture(scope="module")
def folder(student, factors, tmp_path_factory):
    out = tmp_path_factory.mktemp("firefox") / "out"
    export_firefox(*student, out, factors, languages=("en", "es"))
    return out


def read_items(content):
    """Return the type, shape and content of each item of a model file, by name."""
    version, count = struct.unpack_from("<QQ", content)
    assert version == 1
    headers = [struct.unpack_from("<QQQQ", content, 16 + 32 * i) for i in range(count)]
    offset, names, shapes = 16 + 32 * count, [], []
    for length, *_ in headers:
        names.append(content[offset : offset + length - 1].decode())
        assert content[offset + length - 1] == 0
        offset += length
    for _, _, dimensions, _ in headers:
        shapes.append(struct.unpack_from(f"<{dimensions}i", content, offset))
        offset += 4 * dimensions
    (padding,) = struct.unpack_from("<Q", content, offset)
    offset += 8 + padding
    items = {}
    for name, shape, (_, kind, _, length) in zip(names, shapes, headers, strict=True):
        assert offset % 256 == 0
        items[name] = kind, shape, content[offset : offset + length]
        offset += length
    assert offset == len(content)
    return items


def test_weights_are_rounded_to_8_bits_and_have_the_factors_of_their_inputs(student, factors, folder):
    model, _ = student
    items = read_items((folder / "model.enes.intgemm.alphas.bin").read_bytes())
    arrays = arrays_of(model)
    matrices = set()
    for name, array in arrays.items():
        kind, shape, content = items[name]
        if kind == 0x404:
            stored = np.frombuffer(content, np.float32, math.prod(shape)).reshape(shape)
            np.testing.assert_array_equal(stored[:, : array.shape[1]], array)
            continue
        assert kind == 0x4101
        matrices.add(name)
        numbers = np.frombuffer(content, np.int8, math.prod(shape))
        (factor,) = struct.unpack_from("<f", content, len(numbers))
        # Embeddings are stored row by row, other matrices column by column.
        stored = numbers.reshape(shape) if name == "Wemb" else numbers.reshape(shape[::-1]).T
        assert factor == pytest.approx(127 / np.abs(array).max())
        assert np.abs(stored[: len(array)] / factor - array).max() <= 0.501 / factor
    assert matrices == {name for name, array in arrays.items() if len(array) > 1}
    alphas = {}
    for name, (kind, shape, content) in items.items():
        if name.endswith("_QuantMultA"):
            assert (kind, shape) == (0x404, (1, 1))
            (alphas[name.removesuffix("_QuantMultA")],) = struct.unpack_from("<f", content)
    assert alphas.keys() == matrices | {"none"}
    assert alphas["none"] == alphas["Wemb"] == pytest.approx(factors["output"])
    assert alphas["decoder_l1_rnn_W"] == alphas["decoder_l1_rnn_Wf"]
    assert alphas["encoder_l1_ffn_W2"] == pytest.approx(factors["encoder.0.feed_forward.outer"])


def test_the_vocabulary_has_a_multiple_of_8_rows_of_which_the_added_ones_are_never_output(student, folder):
    _, tokenizer = student
    items = read_items((folder / "model.enes.intgemm.alphas.bin").read_bytes())
    rows = tokenizer.target_size - 2
    assert rows % 8 and items["Wemb"][1] == (rows + -rows % 8, 64)
    bias = np.frombuffer(items["decoder_ff_logit_out_b"][2], np.float32)
    assert (bias[rows : rows + -rows % 8] == -100).all() and (bias[:rows] > -100).all()
    settings = yaml.safe_load(items["special:model.yml"][2].rstrip(b"\0"))
    assert settings["dim-vocabs"] == [rows + -rows % 8] * 2 and settings["dec-cell"] == "ssru"
    pieces = pieces_of((folder / "vocab.enes.spm").read_bytes(), folder)
    assert [piece.piece for piece in pieces.pieces[:2]] == ["</s>", "<unk>"] and len(pieces.pieces) == rows


def test_factors_are_those_of_the_largest_input(student):
    model, _ = student
    source, target = [9, 8, 7, 3], [5, 6, 3]
    layer_inputs = []
    layer = model.decoder[0].cross_attention.query
    hook = layer.register_forward_hook(lambda layer, inputs, output: layer_inputs.append(inputs[0]))
    with torch.no_grad():
        model(torch.tensor([source]), torch.tensor([[2, *target[:-1]]]))
    hook.remove()
    computed = input_factors(model, [(source, target)])
    assert computed["decoder.0.cross_attention.query"] == pytest.approx(127 / layer_inputs[0].abs().max().item())
    assert all(not part._forward_pre_hooks for part in model.modules())


def test_the_simulation_computes_what_whole_numbers_do(student, factors, folder):
    """Integer products of the file's numbers in NumPy, by the equation in the module's docstring."""
    model, _ = student
    items = read_items((folder / "model.enes.intgemm.alphas.bin").read_bytes())
    _, (rows, columns), content = items["decoder_l1_rnn_Wf"]
    numbers = np.frombuffer(content, np.int8, rows * columns).reshape(columns, rows).astype(np.int64)
    (factor,) = struct.unpack_from("<f", content, rows * columns)
    name = "decoder.0.ssru.projection"
    x = torch.randn(5, 64) * 200 / factors[name]  # some are out of range
    integers = np.rint(x.numpy() * np.float32(factors[name])).clip(-127, 127).astype(np.int64)
    expected = integers @ numbers.T / (factors[name] * factor)
    with torch.no_grad():
        layer = simulated(model, factors).get_submodule(name)
        np.testing.assert_allclose(layer(x)[:, :64], expected, rtol=1e-4, atol=1e-5)
        assert not np.allclose(model.get_submodule(name)(x)[:, :64], expected, atol=1e-3)


def greedy(model, tokenizer, texts):
    """Return greedy translations of at most 10 tokens, without loop prevention."""
    options = DecodingOptions(beam=1, max_loops=0, max_length_ratio=0, max_length_extra=10)
    sources = [[*ids, model.eos] for ids in tokenizer.encode_source(texts)]
    results = TorchEngine.of(model, tokenizer, torch.device("cpu")).decode(SearchRequest(sources, options))
    return [tokenizer.decode(hypotheses[0].tokens) for hypotheses in results]


LOAD = """
import glob, importlib.util, json, sys
files = glob.glob(sys.prefix + "/lib/python3*/site-packages/bergamot/_bergamot*.so")
specification = importlib.util.spec_from_file_location("_bergamot", files[0])
bergamot = importlib.util.module_from_spec(specification)  # the package itself would need the internet
specification.loader.exec_module(bergamot)
service = bergamot.Service(bergamot.ServiceConfig())
"""
BERGAMOT = (
    LOAD
    + """
model = service.modelFromConfigPath(sys.argv[1] + "/config.yml")
texts = bergamot.VectorString(json.loads(sys.argv[2]))
print(json.dumps([each.target.text for each in service.translate(model, texts, bergamot.ResponseOptions())]))
"""
)
FXTRANSLATE = """
import glob, json, sys
from fxtranslate import Translator
def read(pattern):
    return open(glob.glob(sys.argv[1] + pattern)[0], "rb").read()
vocabulary = read("/vocab*")
shortlist = [read("/lex*")] if glob.glob(sys.argv[1] + "/lex*") else []
translator = Translator(read("/model*"), vocabulary, vocabulary, *shortlist)
print(json.dumps([translator.translate(text) for text in json.loads(sys.argv[2])]))
"""
ENGINES = {"bergamot": BERGAMOT, "fxtranslate": FXTRANSLATE}


@pytest.mark.parametrize("engine", ENGINES)
def test_the_engines_translate_as_the_simulation_does(student, factors, folder, engine):
    theirs = run_engine(engine, ENGINES[engine], folder, json.dumps(TEXTS))
    ours = greedy(simulated(student[0], factors), student[1], TEXTS)
    # Theirs may be longer than 10 tokens, and near ties depend on the order of floating-point additions.
    assert sum(their.startswith(our) for their, our in zip(theirs, ours, strict=True)) >= len(TEXTS) - 2
    assert len({*ours}) > 5


def read_shortlist_file(content):
    """Return the list of each source row, after checking the sizes."""
    magic, checksum, first, largest, offsets, rows = struct.unpack_from("<6Q", content)
    assert magic == 0xF11A48D5013417F5 and first == 0
    expected = 0
    for number in np.frombuffer(content[16 : 16 + (len(content) - 16) // 8 * 8], "<u8").tolist():
        # `hash_combine` of Boost with the golden ratio in 32 bits
        expected ^= (number + 2654435769 + expected * 64 + expected // 4) % 2**64
    assert checksum == expected
    bounds = struct.unpack_from(f"<{offsets}Q", content, 48)
    numbers = struct.unpack_from(f"<{rows}I", content, 48 + 8 * offsets)
    assert len(content) == 48 + 8 * offsets + 4 * rows
    lists = [list(numbers[first:last]) for first, last in itertools.pairwise(bounds)]
    assert largest == max(map(len, lists))
    return lists


def test_a_shortlist_has_the_rows_of_marian_and_the_common_pieces_at_the_end_token(student, factors, tmp_path):
    _, tokenizer = student
    shortlist = Shortlist([20, 10], {5: [9, 8], 1: [7]})  # our id 3, the end token, becomes row 0, and 1 stays row 1
    export_firefox(*student, tmp_path / "out", factors, languages=("en", "es"), shortlist=shortlist)
    lists = read_shortlist_file((tmp_path / "out" / "lex.50.50.enes.s2t.bin").read_bytes())
    assert len(lists) == tokenizer.source_size - 2
    assert lists[0] == [0, 1, 8, 18] and lists[1] == [5] and lists[3] == [6, 7] and sum(map(len, lists)) == 7
    configuration = yaml.safe_load((tmp_path / "out" / "config.yml").read_text())
    assert configuration["shortlist"] == ["lex.50.50.enes.s2t.bin", False]


@pytest.mark.parametrize("engine", ENGINES)
def test_the_engines_output_no_piece_that_a_shortlist_lacks(student, factors, tmp_path, engine):
    """Without a shortlist, every output contains one of two pieces."""
    model, tokenizer = student
    preferred = tokenizer.target_pieces(range(tokenizer.target_size)).index("V"), *tokenizer.encode_target(["watch"])[0]
    shortlist = Shortlist({*range(60, 150)} - {*preferred}, {})
    export_firefox(model, tokenizer, tmp_path / "out", factors, languages=("en", "es"), shortlist=shortlist)
    sources = [text for text in TEXTS if "watch" not in text]  # the pieces of a source are candidates too
    texts = run_engine(engine, ENGINES[engine], tmp_path / "out", json.dumps(sources))
    assert not any("V" in text or "watch" in text for text in texts)
    assert len({*texts}) > 3


def shortlist_bytes(first, lists, *, magic=0xF11A48D5013417F5, checksum=0, sizes=(0, 0), bounds=None):
    """Return the file of a shortlist, written without our code, perhaps with errors."""
    bounds = bounds or [0, *itertools.accumulate(map(len, lists))]
    rows = [row for targets in lists for row in targets]
    head = struct.pack("<4Q", first, max(map(len, lists)), len(bounds) + sizes[0], len(rows) + sizes[1])
    body = head + struct.pack(f"<{len(bounds)}Q", *bounds) + struct.pack(f"<{len(rows)}I", *rows)
    for (number,) in struct.iter_unpack("<Q", body[: len(body) // 8 * 8]):
        checksum ^= (number + 2654435769 + checksum * 64 + checksum // 4) % 2**64
    return struct.pack("<QQ", magic, checksum) + body


def test_an_import_takes_the_shortlist_beside_a_model_and_an_export_writes_it_again(
    student, factors, folder, tmp_path, capsys
):
    """The first six rows are for all, those of the end token and the unknown one too; a piece is its own candidate."""
    _, tokenizer = student
    shutil.copytree(folder, tmp_path / "in")
    lists = [[], [9], *([2 + row, 40 + row] for row in range(2, 60))]  # row 2 is our id 4; later rows have no list
    (tmp_path / "in" / "lex.50.50.enes.s2t.bin").write_bytes(shortlist_bytes(6, lists))
    command = ["import", tmp_path / "in", tmp_path / "run", "--source-language", "en", "--target-language", "es"]
    assert run([*map(str, command)]) == 0 and "shortlist: candidates of" in capsys.readouterr().err
    translator = Translator.load(tmp_path / "run", "cpu")
    assert str(translator.engine) == "torch, float32, large shortlist"
    listed = translator.torch_engine.restricted(
        "large shortlist", tmp_path / "run" / "shortlist.tsv", tokenizer
    ).shortlist
    assert listed.pieces([[4, 3]]).tolist() == [*range(8), 44]
    assert listed.pieces([[70, 3]]).tolist() == [*range(8), 70]
    ids = [[*sentence, 3] for sentence in tokenizer.encode_source(TEXTS[:4])]
    outputs = translator.engine.decode(SearchRequest(ids, DecodingOptions(beam=2)))
    for sentence, (hypothesis, *_) in zip(ids, outputs, strict=True):
        assert {*hypothesis.tokens} <= {*listed.pieces([sentence]).tolist()}
    export_firefox(*student, tmp_path / "out", factors, languages=("en", "es"), shortlist=listed)
    written = read_shortlist_file((tmp_path / "out" / "lex.50.50.enes.s2t.bin").read_bytes())
    assert written[0] == [*range(6)] and {*written[2]} | {*range(6)} == {*range(6), 42} and written[68] == [68]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it is cut short"),
        (shortlist_bytes(2, [[1]], magic=7), "it has another format"),
        (shortlist_bytes(2, [[1]])[:-1], "it has 67 bytes, and its header says 68"),
        (shortlist_bytes(2, [[1]], sizes=(1 << 60, 1 << 61)), "and its header says 18,446,744,073,709,551,684"),
        (shortlist_bytes(2, [[1]], checksum=1), "its checksum is wrong"),
        (shortlist_bytes(2, [[1], [2]], bounds=[0, 3, 2]), "its indices are not in order"),
        (shortlist_bytes(2, [[9999]]), "has rows that the vocabularies of"),
        (shortlist_bytes(9999, [[1]]), "has rows that the vocabularies of"),
    ],
)
def test_a_damaged_shortlist_is_refused_in_one_line(folder, tmp_path, content, message):
    shutil.copytree(folder, tmp_path / "in")
    (tmp_path / "in" / "lex.bin").write_bytes(content)
    with pytest.raises(UserError) as error:
        import_model(tmp_path / "in", tmp_path / "run")
    assert str(error.value).startswith(f"{tmp_path}/in/lex.bin: ") and message in str(error.value)
    assert not (tmp_path / "run").exists()


def test_firefoxs_own_vocabulary_and_shortlist_are_read(real_models):
    folder = real_models / "firefox-enes-vocab-lex"
    ids = {piece.piece: row for row, piece in enumerate(read_sentencepiece(folder / "vocab.enes.spm").pieces)}
    vocabulary = Vocabulary.of(ids, len(ids), pad=None, unknown=1, start=None, end=0)
    shortlist = _shortlist(folder, vocabulary, vocabulary, shared=False)
    assert len(ids) == 32_000 and sum(map(len, shortlist.by_source.values())) == 772_764
    candidates = {vocabulary.names[number] for number in shortlist.by_source[vocabulary.names.index("▁house")]}
    assert {"▁casa", "▁hogar", "▁vivienda"} <= candidates and len(candidates) <= 50


CONVERT = """
import json, subprocess, sys
from pathlib import Path
folder = Path(sys.argv[1])
command = [Path(sys.executable).with_name("pymarian"), "convert", "-s", folder / "lex.txt", "0", "2", "0"]
command += ["-d", folder / "lex.bin", "-V", folder / "vocab.spm", folder / "vocab.spm"]
subprocess.run(command, capture_output=True, check=True)
print(json.dumps((folder / "lex.bin").read_bytes().hex()))
"""


def test_marians_converter_writes_the_same_shortlist(student, tmp_path):
    model, tokenizer = student
    export_marian(model, tokenizer, tmp_path / "out", beam=1)
    names = [piece.piece for piece in pieces_of((tmp_path / "out" / "vocab.spm").read_bytes(), tmp_path).pieces]
    by_source = {row: [row + 1, row + 2] for row in range(2, 100)}
    lines = [f"{names[target]} {names[row]} 0.5\n" for row, targets in by_source.items() for target in targets]
    (tmp_path / "out" / "lex.txt").write_text("".join(lines))
    theirs = bytes.fromhex(run_engine("pymarian", CONVERT, tmp_path / "out"))
    assert shortlist_file(len(names), [], by_source, end=0) == theirs


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"decoder": "self-attention"}, "model.decoder=self-attention is not supported by Firefox's engines"),
        ({"norm": "pre"}, "model.norm=pre is not supported by Firefox's engines"),
        ({"nonlinearity": "swish"}, "model.nonlinearity=swish is not supported by Firefox's engines"),
        ({"tie_output": False}, "model.tie_output=false is not supported by Firefox's engines"),
        ({"width": 32}, "model.width=32 is not a multiple of 64"),
        ({"feed_forward": 96}, "model.feed_forward=96 is not a multiple of 64"),
        ({"zero_start": False}, "model.zero_start=False is another function than Marian computes"),
    ],
)
def test_what_the_engines_lack_is_refused(student, tmp_path, changes, message):
    tokenizer = student[1]
    options = TransformerOptions(**{**STUDENT, "encoder_layers": 1, "decoder_layers": 1, **changes})
    model = build_model(options, tokenizer.source_size, tokenizer.target_size)
    with pytest.raises(UserError, match=message):
        export_firefox(model, tokenizer, tmp_path / "out", {}, languages=("en", "es"))
    assert not (tmp_path / "out").exists()


def test_two_vocabularies_and_unknown_languages_are_refused(student, factors, tmp_path):
    model, tokenizer, _ = make_model({**STUDENT, "share_embeddings": False}, joint=False)
    with pytest.raises(UserError, match=r"model.share_embeddings=false is not supported"):
        export_firefox(model, tokenizer, tmp_path / "out", factors, languages=("en", "es"))
    with pytest.raises(UserError, match="the languages are unknown"):
        export_firefox(*student, tmp_path / "out", factors, languages=("en", None))


def test_the_command_measures_on_pairs(student, corpus, tmp_path, capsys):
    export_marian(*student, tmp_path / "marian", beam=1)
    import_model(tmp_path / "marian", tmp_path / "run", source_language="en", target_language="es")
    command = ["export", str(tmp_path / "run"), str(tmp_path / "out"), "--to", "firefox"]
    assert run(command) == 2
    assert "Give sentence pairs with --check" in capsys.readouterr().err
    assert run([*command, "--check", str(corpus / "test.tsv")]) == 2
    errors = capsys.readouterr().err
    # Random weights translate too badly to measure a loss of quality.
    assert "by Firefox's arithmetic with int8" in errors and "can't be compared on --check" in errors
    file = tmp_path / "run" / "config.yaml"
    file.write_text(file.read_text().replace("valid: []", f"valid: [{corpus / 'test.tsv'}]"))
    assert run(command) == 0
    assert {"config.yml", "vocab.enes.spm"} < {file.name for file in (tmp_path / "out").iterdir()}


def test_an_export_can_be_imported_with_its_rounded_weights(student, factors, folder, tmp_path):
    import_model(folder, tmp_path / "run", source_language="en", target_language="es")
    imported = Translator.load(tmp_path / "run", "cpu", "torch")
    expected = simulated(student[0], factors).state_dict()
    exported_rows = [1, *range(3, 150)]  # the export has no rows for padding and for the start token
    for name, weights in imported.model.state_dict().items():
        ours = expected[name]
        if len(ours) == 150:
            weights, ours = weights[exported_rows], ours[exported_rows]
        assert torch.equal(weights, ours), name
    assert imported.tokenizer.encode_source(TEXTS) == student[1].encode_source(TEXTS)
    second_export = tmp_path / "again"
    export_firefox(imported.model, imported.tokenizer, second_export, factors, languages=("en", "es"))
    before, after = (
        read_items((export_folder / "model.enes.intgemm.alphas.bin").read_bytes())
        for export_folder in (folder, second_export)
    )
    assert before["encoder_l1_ffn_W1"] == after["encoder_l1_ffn_W1"]


@pytest.mark.parametrize("name", ["cut", "version", "count", "shape", "type"])
def test_damaged_files_are_refused(folder, tmp_path, name):
    content = bytearray((folder / "model.enes.intgemm.alphas.bin").read_bytes())
    changes = {"version": (0, 2), "count": (8, 1 << 62), "shape": (16 + 16, 1 << 40), "type": (16 + 8, 0x10001)}
    if name == "cut":
        content = content[:3000]
    else:
        offset, number = changes[name]
        struct.pack_into("<Q", content, offset, number)
    for file in folder.glob("*.spm"):
        shutil.copy(file, tmp_path)
    (tmp_path / "model.enes.intgemm.alphas.bin").write_bytes(content)
    with pytest.raises(UserError, match=r"is damaged, or no .bin file of Firefox"):
        import_model(tmp_path, tmp_path / "run")
    assert not (tmp_path / "run").exists()
