"""OpenNMT and fairseq models in CTranslate2 folders of every format: CTranslate2 itself is the oracle."""

import json
import random
import re
import struct
from argparse import Namespace
from pathlib import Path

import ctranslate2
import numpy as np
import pytest
import sentencepiece
import torch
from ctranslate2.converters import OpenNMTPyConverter
from ctranslate2.specs import Activation, TransformerSpec, model_spec

from tests.interop.test_ctranslate2_files import model_bin
from tests.interop.test_ctranslate2_import import load_run
from translucid.api.translator import Translator
from translucid.decoding.decoding_options import DecodingOptions, SearchRequest
from translucid.decoding.search import TorchEngine
from translucid.engines.ctranslate2.searching import CTranslate2Engine
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.inspection.explain import Case
from translucid.interop.ctranslate2 import PIECES, read_model_file
from translucid.interop.importing import import_model
from translucid.layers.positions import sinusoidal_positions

PUBLISHED = Path(__file__).parents[3] / "shared" / "models"
WIDTH, INNER = 16, 24
SOURCES, TARGETS = "abcdefg.▁", "tuvwxyz'"
WORDS = ["to", "tea", "ha@@", "ppy", "￭."]


def opennmt_py(sources=SOURCES, targets=TARGETS):
    """Return a model as the converter of OpenNMT-py writes it, from a checkpoint with random weights."""
    generator = torch.Generator().manual_seed(7)
    vocabularies = {
        "src": ["<unk>", "<blank>", *sources],  # the source vocabulary of versions before 3 lacks <s> and </s>
        "tgt": ["<unk>", "<blank>", "<s>", "</s>", *targets],
    }
    weights = {}

    def add(name, *shape):
        weights[name] = 0.4 * torch.randn(*shape, generator=generator)

    for side, vocabulary in (("encoder", "src"), ("decoder", "tgt")):
        embedding = f"{side}.embeddings.make_embedding"
        add(f"{embedding}.emb_luts.0.weight", len(vocabularies[vocabulary]), WIDTH)
        weights[f"{embedding}.pe.pe"] = sinusoidal_positions(40, WIDTH)[:, None]
        block = f"{side}.transformer.0" if side == "encoder" else f"{side}.transformer_layers.0"
        attentions = ["self_attn"] if side == "encoder" else ["self_attn", "context_attn"]
        for attention in attentions:
            for part in ("linear_query", "linear_keys", "linear_values", "final_linear"):
                add(f"{block}.{attention}.{part}.weight", WIDTH, WIDTH)
                add(f"{block}.{attention}.{part}.bias", WIDTH)
        add(f"{block}.feed_forward.w_1.weight", INNER, WIDTH)
        add(f"{block}.feed_forward.w_2.weight", WIDTH, INNER)
        add(f"{block}.feed_forward.w_1.bias", INNER)
        add(f"{block}.feed_forward.w_2.bias", WIDTH)
        norms = ["layer_norm"] if side == "encoder" else ["layer_norm_1", "layer_norm_2"]
        for norm in (f"{side}.layer_norm", f"{block}.feed_forward.layer_norm", *(f"{block}.{name}" for name in norms)):
            add(f"{norm}.weight", WIDTH)
            add(f"{norm}.bias", WIDTH)
    add("generator.weight", len(vocabularies["tgt"]), WIDTH)
    add("generator.bias", len(vocabularies["tgt"]))
    output = {name.partition(".")[2]: weights.pop(name) for name in ("generator.weight", "generator.bias")}
    options = {"encoder_type": "transformer", "decoder_type": "transformer", "position_encoding": True}
    options |= {"enc_layers": 1, "dec_layers": 1, "heads": 4, "pos_ffn_activation_fn": "gelu"}
    return {"vocab": vocabularies, "opt": Namespace(**options), "model": weights, "generator": output}


def random_spec(kind, **options):
    """Return a model with random weights and the conventions of OpenNMT-tf or of fairseq."""
    rng = np.random.default_rng(5)
    heads = 8 if kind == "opennmt-tf" else 2
    spec = TransformerSpec.from_config((2, 1), heads, **{"pre_norm": kind == "opennmt-tf", **options})
    if kind == "opennmt-tf":  # the unknown token is the last one; CTranslate2 computes the positions
        lists = ["<blank>", "<s>", "</s>", *SOURCES], ["<blank>", "<s>", "</s>", *TARGETS]
    else:
        start = ["<s>", "<blank>", "</s>", "<unk>"]
        lists = [*start, *SOURCES, *TARGETS], [*start, *SOURCES, *TARGETS]
        spec.config.decoder_start_token, spec.config.add_source_eos = "</s>", True
        table = sinusoidal_positions(40, WIDTH, first=2, kind="sinusoidal-tensor2tensor").numpy()
        for side in (spec.encoder, spec.decoder):
            side.position_encodings.encodings = table.copy()
            side.scale_embeddings = WIDTH**0.5
    shapes = {"linear_0/weight": (INNER, WIDTH), "linear_1/weight": (WIDTH, INNER)}

    def fill(part, name, value):
        if value is not None and not (isinstance(value, str) and name.endswith("bias")):
            return
        shape = (WIDTH, WIDTH)
        if name.endswith(("gamma", "beta")):
            shape = (WIDTH,)
        elif "embeddings" in name or "projection" in name:
            implied = kind == "opennmt-tf"
            shape = len(lists[0 if name.startswith("encoder") else 1]) + implied, WIDTH
        elif "ffn" in name:
            shape = next((shape for end, shape in shapes.items() if name.endswith(end)), (WIDTH,))
        elif "attention/linear_0/weight" in name and "self" in name:
            shape = 3 * WIDTH, WIDTH
        elif name.endswith("layer_0/attention/linear_1/weight"):
            shape = 2 * WIDTH, WIDTH
        if value is None:
            setattr(part, name.rsplit("/", 1)[1], (0.4 * rng.standard_normal(shape)).astype(np.float32))

    model_spec.visit_spec(spec, fill)
    return spec, lists


def save_folder(folder, spec, lists, version, *, quantization=None, revision=7, name="TransformerSpec", flags=()):
    """Write a folder as CTranslate2 of that time."""
    folder.mkdir()
    for side, names in zip(("source", "target"), lists, strict=True):
        if version < 6:
            (folder / f"{side}_vocabulary.txt").write_text("\n".join(names), encoding="utf-8")
        else:
            (folder / f"{side}_vocabulary.json").write_text(json.dumps(names))
    model_spec.LayerSpec.validate(spec)
    spec.optimize(quantization)
    arrays, aliases = {}, []
    for variable, value in spec.variables(ordered=True):
        if isinstance(value, str):
            aliases.append((variable, value))
        else:
            array = value.numpy() if value.dtype != "bfloat16" else np.frombuffer(value.to_bytes(), np.uint16)
            arrays[variable] = array.reshape(value.shape)
    if version == 6:
        spec.config.save_as_json(folder / "config.json")
    arrays |= {flag: np.int8(value) for flag, value in dict(flags).items()}
    if revision < 5:
        for number in ("num_heads", "pre_norm", "activation"):
            arrays.pop(f"decoder/{number}")
            arrays[number] = arrays.pop(f"encoder/{number}")
        arrays = {variable.replace("embeddings_0", "embeddings"): array for variable, array in arrays.items()}
    if revision == 2:  # the name of the specification implied these
        aliased = {alias: arrays[variable] for alias, variable in aliases}
        removed = ("num_heads", "pre_norm", "activation", "embeddings_merge", "scale_embeddings", "alibi", "positions")
        removed += ("multi_query_attention", "alignment_heads", "alignment_layer", "start_from_zero_embedding")
        arrays = {variable: array for variable, array in (arrays | aliased).items() if not variable.endswith(removed)}
        arrays = {variable: array for variable, array in arrays.items() if "scale_alibi" not in variable}
        aliases = []
    content = model_bin(arrays, aliases, version=version, revision=revision, name=name)
    (folder / "model.bin").write_bytes(content)
    return folder


def old_folder(folder, version):
    """Write a folder of format 2 to 5."""
    if version == 2:
        return save_folder(folder, *random_spec("opennmt-tf"), 2, revision=2, name="TransformerBase")
    if version == 3:
        options = {"quantization": "int16", "revision": 3, "flags": {"with_relative_position": 0, "with_source_bos": 1}}
        save_folder(folder, *random_spec("opennmt-tf"), 3, **options)
        return folder
    if version == 4:
        return save_folder(folder, *random_spec("opennmt-tf"), 4, quantization="int8_float16", revision=4)
    flags = {"with_source_eos": 1, "with_target_bos": 0}
    return save_folder(folder, *random_spec("fairseq", activation=Activation.SWISH), 5, revision=5, flags=flags)


def new_folder(folder, kind, quantization):
    """Write a folder of format 6."""
    if kind == "opennmt-py":
        torch.save(opennmt_py(), folder.with_suffix(".pt"))
        converter = OpenNMTPyConverter(str(folder.with_suffix(".pt")), unsafe_deserialization=True)
        converter.convert(str(folder), quantization=quantization)
        return folder
    return save_folder(folder, *random_spec(kind), 6, quantization=quantization)


FOLDERS = [
    *((old_folder, version) for version in (2, 3, 4, 5)),
    (new_folder, "opennmt-py", None),
    (new_folder, "opennmt-py", "int16"),
    (new_folder, "opennmt-tf", "bfloat16"),
    (new_folder, "fairseq", "int8_float32"),
]


def texts(characters, count=60):
    """Return strings of different lengths, some of unknown characters, several in a row too."""
    rng = random.Random(3)
    strings = [*characters, "?", "a??b", "☃é"]
    while len(strings) < count:
        strings.append("".join(rng.choice(characters + "?") for _ in range(rng.randint(1, 14))))
    return strings


def assert_same_outputs(folder, run, tokens):
    """Compare an imported run with CTranslate2, in float32 for any type of the weights.

    `tokens`: the tokens of each text, which the run's tokenizer splits at the same places.
    """
    theirs = ctranslate2.Translator(str(folder), compute_type="float32")
    model, tokenizer, configuration = load_run(run)
    strings = [" ".join(words) if len(words[0]) > 1 else "".join(words) for words in tokens]
    assert list(map(len, tokenizer.encode_source(strings))) == list(map(len, tokens))
    tokenizer = tokenizer.between(None, None, configuration.data.tokenizer)  # some models read a start token first
    ids = [[*text_ids, SPECIAL.end] for text_ids in tokenizer.encode_source(strings)]
    engine = TorchEngine.of(model.eval(), tokenizer, torch.device("cpu"))
    rules = {"disable_unk": True, "suppress_sequences": [["<blank>"], ["<s>"]], "min_decoding_length": 1}
    answers = theirs.translate_batch(tokens, beam_size=1, max_decoding_length=12, **rules)
    request = SearchRequest(ids, DecodingOptions(beam=1, max_loops=0, max_length_ratio=0, max_length_extra=12))
    pieces = [piece.removeprefix("▁") or piece for piece in tokenizer.target_vocabulary]
    if configuration.model.first_position == 2:
        pieces = tokenizer.target_vocabulary
    for search in (engine, CTranslate2Engine.of(engine, tokenizer)):
        outputs = [[pieces[token] for token in hypotheses[0].tokens] for hypotheses in search.decode(request)]
        assert outputs == [answer.hypotheses[0] for answer in answers]
    targets = [answer.hypotheses[0] for answer in answers]
    scores = theirs.score_batch(tokens, targets)
    forced = engine.forced([(i, [*map(pieces.index, t), SPECIAL.end]) for i, t in zip(ids, targets, strict=True)])
    for ours, score in zip(forced, scores, strict=True):
        np.testing.assert_allclose(ours, score.log_probs, atol=2e-4)


@pytest.mark.parametrize("case", FOLDERS, ids=lambda case: "-".join(map(str, case[1:])))
def test_models_of_all_formats_and_converters_are_ctranslate2s(tmp_path, case):
    write, *arguments = case
    folder = write(tmp_path / "theirs", *arguments)
    imported, configuration = import_model(folder, tmp_path / "run")
    assert imported.notes == ("all pieces are single characters: texts are split into characters",)
    assert configuration.model.source_end is ("fairseq" in arguments or 5 in arguments)
    assert_same_outputs(folder, tmp_path / "run", list(map(list, texts(SOURCES.replace("▁", "")))))


def test_int16_arrays_without_a_scale_have_the_scale_1000(tmp_path):
    spec, lists = random_spec("opennmt-tf")
    folder = save_folder(tmp_path / "theirs", spec, lists, 2, quantization="int16", revision=2, name="TransformerBase")
    arrays = read_model_file(folder / "model.bin").variables
    kept = {name: array for name, array in arrays.items() if not name.endswith("_scale")}
    (folder / "model.bin").write_bytes(model_bin(kept, version=2, revision=2, name="TransformerBase"))
    import_model(folder, tmp_path / "run")
    assert_same_outputs(folder, tmp_path / "run", list(map(list, texts("abc", 12))))


def test_texts_that_are_split_into_pieces(tmp_path):
    torch.save(opennmt_py(WORDS, ["la", "lo", "￭s"]), tmp_path / "theirs.pt")
    OpenNMTPyConverter(str(tmp_path / "theirs.pt"), unsafe_deserialization=True).convert(str(tmp_path / "theirs"))
    with pytest.raises(UserError, match=r"has no SentencePiece model source.spm.* or give `tokenizer`"):
        import_model(tmp_path / "theirs", tmp_path / "run")
    imported, _ = import_model(tmp_path / "theirs", tmp_path / "run", tokenizer=PIECES)
    assert imported.notes == ("texts are split at spaces: give them as pieces of the model's vocabulary",)
    tokenizer = imported.tokenizer
    assert tokenizer.source_pieces(tokenizer.encode_source(["tea  ?? ?  ￭."])[0]) == [
        "▁tea",
        *["<unk>"] * 2,
        "▁￭.",
    ]
    rng = random.Random(4)
    sentences = [[rng.choice([*WORDS, "??"]) for _ in range(rng.randint(1, 9))] for _ in range(40)]
    assert_same_outputs(tmp_path / "theirs", tmp_path / "run", [["to"], ["??", "??", "tea"], *sentences])
    assert set(Translator.load(tmp_path / "run", "cpu", "torch").translate(["to tea"])[0].text.split()) <= {
        *("la", "lo", "￭s")
    }


@pytest.mark.parametrize("place", ["given", "sentencepiece.bpe.model", "source.spm"])
def test_a_sentencepiece_model_may_stand_in_the_folder_or_be_given(tmp_path, place):
    model = sentencepiece_file(tmp_path / "given")
    vocabulary = sentencepiece.SentencePieceProcessor(model_file=str(model))
    names = [vocabulary.id_to_piece(i) for i in range(3, vocabulary.get_piece_size())]
    torch.save(opennmt_py(names, names[::-1]), tmp_path / "theirs.pt")
    OpenNMTPyConverter(str(tmp_path / "theirs.pt"), unsafe_deserialization=True).convert(str(tmp_path / "theirs"))
    with pytest.raises(UserError, match=r"has pieces of a SentencePiece model, with ▁\. Give that model"):
        import_model(tmp_path / "theirs", tmp_path / "run", tokenizer=PIECES)
    for name in (place, "target.spm") if place == "source.spm" else (place,):
        if name != "given":
            (tmp_path / "theirs" / name).write_bytes(model.read_bytes())
    import_model(tmp_path / "theirs", tmp_path / "run", tokenizer=model if place == "given" else None)
    tokenizer = load_run(tmp_path / "run")[1]
    theirs = ctranslate2.Translator(str(tmp_path / "theirs"), compute_type="float32")
    sentences = ["the tea", "a hat on the heath", "he ate"]
    tokens = vocabulary.encode(sentences, out_type=str)
    assert [tokenizer.source_pieces(ids) for ids in tokenizer.encode_source(sentences)] == tokens
    rules = {"beam_size": 1, "disable_unk": True, "suppress_sequences": [["<blank>"], ["<s>"]]}
    answers = theirs.translate_batch(tokens, max_decoding_length=9, min_decoding_length=1, **rules)
    settings = {"max_loops": 0, "max_length_ratio": 0, "max_length_extra": 9}
    outputs = Translator.load(tmp_path / "run", "cpu", "torch").translate(sentences, beam=1, **settings)
    assert [output.text for output in outputs] == [vocabulary.decode(answer.hypotheses[0]) for answer in answers]


def sentencepiece_file(file):
    """Learn a small SentencePiece model."""
    with file.open("wb") as written:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["the hat on the heath", "he ate the tea", "a hat that he hated"] * 4),
            model_writer=written,
            vocab_size=24,
            model_type="bpe",
            minloglevel=2,
        )
    return file


def test_only_a_folder_without_tokenizer_takes_one(whole, tmp_path):
    folder = changed(whole, tmp_path / "theirs", lambda arrays: None)
    (folder / "tokenizer.model").touch()
    torch.save(opennmt_py(WORDS), tmp_path / "words.pt")
    OpenNMTPyConverter(str(tmp_path / "words.pt"), unsafe_deserialization=True).convert(str(tmp_path / "words"))
    with pytest.raises(UserError, match=r"other.model: is missing"):
        import_model(tmp_path / "words", tmp_path / "run", tokenizer=tmp_path / "other.model")
    with pytest.raises(UserError, match=r"theirs: has a tokenizer. Leave `tokenizer` out."):
        import_model(folder, tmp_path / "run", tokenizer=PIECES)
    (tmp_path / "config.json").touch()
    with pytest.raises(UserError, match=r"needs the tokenizer in its folder. Leave `tokenizer` out; only CT"):
        import_model(tmp_path, tmp_path / "run", tokenizer=PIECES)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return new_folder(tmp_path_factory.mktemp("opennmt") / "theirs", "opennmt-tf", None)


def changed(folder, out, change):
    """Write a folder with other arrays: `change` gets and changes a dictionary of them."""
    out.mkdir()
    for file in folder.iterdir():
        (out / file.name).write_bytes(file.read_bytes())
    model = read_model_file(folder / "model.bin")
    arrays = {name: array.copy() for name, array in model.variables.items()}
    change(arrays)
    (out / "model.bin").write_bytes(model_bin(arrays, revision=model.revision))
    return out


def without(arrays, part):
    for name in [name for name in arrays if part in name]:
        del arrays[name]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a.update(with_relative_position=np.int8(1)), "has with_relative_position, which is not supported"),
        (
            lambda a: a.update({f"decoder/layer_0/self_attention/rotary_{end}": np.int32(1) for end in ("dim", "x")}),
            "has decoder/layer_0/self_attention/rotary_dim, decoder/layer_0/self_attention/rotary_x, which are not",
        ),
        (lambda a: a.update({"decoder/alibi": np.int8(1)}), "has decoder/alibi, which is not supported"),
        (
            lambda a: a.update({"encoder/embeddings_1/weight": np.ones((3, WIDTH), np.float32)}),
            "has encoder/embeddings_1/weight, which is not supported",
        ),
        (lambda a: without(a, "layer_0/ffn/linear_1/weight"), "has no encoder/layer_0/ffn/linear_1/weight, decoder/la"),
        (lambda a: without(a, "attention"), "layer_0/self_attention/layer_norm/beta and 13 more. Is it a translator?"),
        (
            lambda a: a["decoder/projection/weight"].fill(np.nan),
            "decoder/projection/weight has weights that are no numbers",
        ),
        (
            lambda a: a.update({"encoder/embeddings_0/weight": a["encoder/embeddings_0/weight"][:-1]}),
            "its source vocabulary has 13 pieces, and there are 12 embeddings",
        ),
        (lambda a: a.update({"encoder/activation": np.int8(6), "decoder/activation": np.int8(6)}), "6 (Sigmoid), whic"),
        (lambda a: a.update({"encoder/activation": np.int8(9), "decoder/activation": np.int8(9)}), "9 (unknown), whic"),
    ],
)
def test_what_is_missing_or_not_supported_is_named(whole, tmp_path, change, message):
    folder = changed(whole, tmp_path / "theirs", change)
    with pytest.raises(UserError, match=re.escape(message)) as error:
        import_model(folder, tmp_path / "run")
    assert "\n" not in str(error.value) and not (tmp_path / "run").exists()


@pytest.mark.parametrize("version", [2, 3, 4, 5])
def test_damaged_files_of_old_formats_are_one_line(tmp_path, version):
    folder = old_folder(tmp_path / "theirs", version)
    content, rng, refused = (folder / "model.bin").read_bytes(), random.Random(version), 0
    for attempt in range(30):
        broken = bytearray(content)
        if attempt % 2:
            del broken[rng.randrange(len(broken)) :]
        else:  # a length, a type or a size in front of the first arrays
            offset = rng.randrange(4, 120)
            broken[offset : offset + 4] = struct.pack("<I", rng.choice([0xFFFFFFFF, 0x7FFFFFFF, 0]))
        (folder / "model.bin").write_bytes(broken)
        try:
            import_model(folder, tmp_path / "run", overwrite=True)  # only a weight was changed
        except UserError as error:
            assert "\n" not in str(error)
            refused += 1
    assert refused > 20


def test_flags_of_old_formats_are_refused_by_name(tmp_path):
    flags = {"user_decoder_start_tokens": 1}
    folder = save_folder(tmp_path / "theirs", *random_spec("opennmt-tf"), 5, revision=5, flags=flags)
    with pytest.raises(UserError, match="decoder_start_token is None, not a text"):
        import_model(folder, tmp_path / "run")
    (folder / "model.bin").write_bytes(model_bin({}, name="TransformerDecoderSpec"))
    supported = "can be imported: TransformerSpec, TransformerBase, TransformerBig of revisions 2 to 7"
    with pytest.raises(UserError, match=f"is a 'TransformerDecoderSpec' of revision 7, which is not.*{supported}"):
        import_model(folder, tmp_path / "run")


def test_a_model_of_characters_shows_and_counts_them(whole, tmp_path):
    imported, _ = import_model(whole, tmp_path / "run")
    tokenizer = imported.tokenizer
    ids = tokenizer.encode_source(["ab ??c"])[0]
    assert tokenizer.source_pieces(ids) == ["a", "b", "▁", *["<unk>"] * 2, "c"]
    assert tokenizer.source_pieces(ids, "ab ??c") == ["a", "b", "▁", "?", "?", "c"]
    assert tokenizer.source_labels(ids, "ab ??c") == tokenizer.source_pieces(ids, "ab ??c")
    assert tokenizer.decode_source(ids) == "ab ⁇⁇c" and tokenizer.words_read("ab ?c") == [1, 1]
    assert tokenizer.source_labels(tokenizer.encode_source(["a?"])[0], "a?") == ["▁a", "▁?"]  # a single word
    assert tokenizer.words_read("ab?c") == [4]
    translator = Translator.load(tmp_path / "run", "cpu", "torch")
    (inspected,) = translator.inspector.inspect([("abc", "tuv")], contributions=True)
    assert (inspected.source_words, inspected.target_words) == ([*"abc", "</s>"], [*"tuv", "</s>"])
    weights = inspected.cross()
    assert weights[:, -1].tolist() == [0.0] * len(inspected.target)  # the model reads no end token
    torch.testing.assert_close(weights.sum(1), torch.ones(len(weights)))
    assert inspected.words(inspected.cross(method="contributions")).weights[:, -1].abs().max() == 0
    case = Case(translator.model, translator.pipeline, "abc", "tuv")
    _, source = case.interpolation_path()
    log_prob = case.embedded_log_probs(source, 0, 4).item()
    assert log_prob == pytest.approx(sum(inspected.log_probs), abs=1e-4)


@pytest.mark.parametrize("kind", ["", "-i16", "-i8"])
def test_the_published_model(tmp_path, kind):
    """All Arabic letters of the vocabulary, and names: 8 heads by the name of the specification, no positions."""
    folder = PUBLISHED / f"ct2-aren-transliteration{kind}"
    if not folder.exists():
        pytest.skip("the published model is not here")
    _, configuration = import_model(folder, tmp_path / "run")
    assert (configuration.model.heads, configuration.model.positions) == (8, "sinusoidal-tensor2tensor")
    names = (folder / "source_vocabulary.txt").read_text(encoding="utf-8").split("\n")[3:-2]
    assert_same_outputs(folder, tmp_path / "run", [*map(list, names), *map(list, texts("".join(names[:10]), 30))])
