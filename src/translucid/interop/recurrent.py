"""Import published recurrent translators whose equations are those of `models/recurrent.py`, by three layouts of files.

    arabic-name-romanizer    encoder.onnx, decoder.onnx, vocab.json, meta.json    Luong's attention
    cn2en                    model.pth, input_lang.pkl, output_lang.pkl           no attention, from PyTorch's tutorial
    g2p-en                   an .npz file                                         no attention

All are GRUs. The files may be untrusted: graphs are read but not run, and of a pickled word list only the operations
are followed that build texts, numbers and dictionaries.
"""

from __future__ import annotations

import pickletools
import string
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from translucid.data.tokenizing.pieces import SPACE
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.engines.onnx.conventions import DECODER, ENCODER
from translucid.ground.errors import UserError, missing_package
from translucid.ground.special import SPECIAL
from translucid.interop.imported import (
    LONGEST_JSON,
    Imported,
    Keys,
    all_are,
    read_file,
    read_json,
    read_npz,
    read_state_dict,
)
from translucid.interop.pieces import Vocabulary, listed_model, vocabulary_weights
from translucid.runs.tensor_file import refuse_not_finite

_FIX = "Get the files again."
_EMBEDDINGS = {"source": "source_embedding.tokens.weight", "target": "target_embedding.tokens.weight"}
_SIDES = {"encoder": "encoder.recurrence.rnn", "decoder": "decoder.recurrence.rnn"}
_GRU = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
"""The weights of a layer in PyTorch."""
_PLAIN = {"attention": "none", "first_state": "last", "bidirectional": False, "share_embeddings": False}
"""The options of the models without attention."""
_LONGEST_GRAPH = 1 << 31
"""The most bytes of an ONNX file without external data."""
_CHARACTERS = [chr(code) for code in range(1, 1 << 16) if not 0xD800 <= code < 0xE000]
"""The characters for which a vocabulary gets rules: those of the Basic Multilingual Plane."""


def _imported(
    kind: str,
    tensors: Mapping[str, Tensor],
    vocabularies: Sequence[Vocabulary],
    tokenizer: Tokenizer,
    options: Mapping[str, Any],
    *,
    languages: Mapping[str, str] | None = None,
    data: Mapping[str, Any],
    decoding: Mapping[str, Any],
) -> Imported:
    """Return the parts of a run from weights by our names, whose rows are in the order of the other vocabularies."""
    matrices = {side: tensors[name] for side, name in _EMBEDDINGS.items()} | {"output": tensors["output.weight"]}
    source, target = vocabularies[0], vocabularies[-1]
    rows = vocabulary_weights(source, target, matrices, tensors["output.bias"])
    width = matrices["source"].size(1)
    for name in _EMBEDDINGS.values():
        rows[name] /= width**0.5  # our models multiply embeddings by it
    sizes = {"vocabulary": tokenizer.target_size, "joint": tokenizer.joint, "languages": {**(languages or {})}}
    settings = {
        "model": {"kind": "recurrent", "cell": "gru", "width": width, "tie_output": False, **options},
        "data": {"tokenizer": sizes, **data},
        # The originals have a fixed maximum length, and no rule against repetition.
        "decoding": {"max_length_ratio": 0, "max_loops": 0, **decoding},
    }
    return Imported(kind, settings, {**tensors, **rows}, tokenizer)


def _renamed(tensors: Mapping[str, Tensor], names: Mapping[str, str], file: Path) -> dict[str, Tensor]:
    """Return the tensors of a model without attention by our names, given ours by theirs.

    Raises:
        UserError: tensors are missing, unknown, of another shape or not finite.
    """
    problems = [f"{name} is missing" for name in names if name not in tensors]
    problems += [f"{name} is unknown" for name in tensors if name not in names]
    if problems:
        raise UserError(f"does not have the weights of this model: {', '.join(problems)}", file=file, fix=_FIX)
    refuse_not_finite(tensors, file)
    renamed = {names[name]: tensor.float() for name, tensor in tensors.items()}
    width = renamed[_EMBEDDINGS["source"]].size(-1)
    for name, our_name in names.items():
        shape = [3 * width, width] if "weight" in our_name else [3 * width]
        if "rnn" in our_name and [*tensors[name].shape] != shape:
            raise UserError(f"has {name} of the shape {[*tensors[name].shape]}, not {shape}", file=file, fix=_FIX)
    return renamed


def _refuse_other_rows(count: int, matrix: Tensor, what: str, file: Path) -> None:
    if matrix.dim() != 2 or len(matrix) != count:
        raise UserError(f"has {count:,} {what}, and the embeddings are {[*matrix.shape]}", file=file, fix=_FIX)


def _folding(characters: Set[str]) -> dict[str, str]:
    """Return what to read in place of characters that a vocabulary lacks, if it has them in another form.

    These are parts of composed characters, without accents, vowel points and invisible marks, and lower case for upper
    case.
    """
    rules = {}
    for character in characters:
        decomposed = unicodedata.normalize("NFD", character)
        if decomposed != character:
            rules[decomposed] = character
    for character in _CHARACTERS:
        if character in characters or character == " ":
            continue
        for form in (character, character.lower()):
            parts = []
            for part in unicodedata.normalize("NFKD", form):
                if part in characters or unicodedata.category(part) not in ("Mn", "Cf", "Lm"):
                    parts.append(part)
            if characters >= {*parts}:
                rules[character] = "".join(parts)
                break
    return rules


# g2p-en


def from_g2p(path: Path) -> Imported:
    """Read the .npz file of g2p-en, or the folder that has it.

    Raises:
        UserError: the file is damaged or has other weights.
    """
    file = path if path.is_file() else next(iter(sorted(path.glob("*.npz"))))
    tensors = {name: torch.from_numpy(array) for name, array in read_npz(file).items()}
    names = {"enc_emb": _EMBEDDINGS["source"], "dec_emb": _EMBEDDINGS["target"]}
    for side, name in _SIDES.items():
        for part in _GRU:
            names[f"{side[:3]}_{part.replace('weight', 'w').replace('bias', 'b')}"] = f"{name}.{part}_l0"
    names |= {"fc_w": "output.weight", "fc_b": "output.bias"}
    tensors = _renamed(tensors, names, file)
    letters = ["<pad>", "<unk>", "</s>", *string.ascii_lowercase]
    sounds = ["<pad>", "<unk>", "<s>", "</s>", *(f"{SPACE}{sound}" for sound in _arpabet())]
    for side, symbols in (("source", letters), ("target", sounds)):
        _refuse_other_rows(len(symbols), tensors[_EMBEDDINGS[side]], f"{side} symbols", file)
    vocabularies = [
        Vocabulary.of(_rows(letters[3:], 3), len(letters), pad=0, unknown=1, start=None, end=2),
        Vocabulary.of(_rows(sounds[4:], 4), len(sounds), pad=0, unknown=1, start=2, end=3),
    ]
    models = [
        listed_model(vocabularies[0].names, _folding({*string.ascii_lowercase}).items(), words=False),
        listed_model(vocabularies[1].names, (), words=True),
    ]
    return _imported(
        "g2p-en",
        tensors,
        vocabularies,
        Tokenizer(*models),
        _PLAIN,
        data={"source_language": "en", "target_language": "en-x-arpabet"},
        decoding={"beam": 1, "min_length": 0, "max_length_extra": 20},
    )


def _rows(names: Sequence[str], first: int) -> dict[str, int]:
    return {name: row for row, name in enumerate(names, first)}


_VOWELS = "AA AE AH AO AW AY EH ER EY IH IY OW OY UH UW"
_CONSONANTS = "B CH D DH F G HH JH K L M N NG P R S SH T TH V W Y Z ZH"


def _arpabet() -> list[str]:
    """Return the 70 sounds of the CMU Pronouncing Dictionary in alphabetical order: vowels have three grades of stress.

    One vowel is also listed without stress.
    """
    sounds = _CONSONANTS.split()
    for vowel in _VOWELS.split():
        sounds += [f"{vowel}{stress}" for stress in range(3)]
    return sorted([*sounds, "UW"])


# cn2en

WORD_LISTS = {"source": "input_lang.pkl", "target": "output_lang.pkl"}
"""The pickled word lists of each side."""


def from_cn2en(folder: Path) -> Imported:
    """Read the files of cn2en: the encoder-decoder of PyTorch's tutorial, with the tutorial's word lists.

    Raises:
        UserError: a file is missing or damaged, has other weights, or would have to be executed.
    """
    file = folder / "model.pth"
    names: dict[str, str] = {}
    tensors: dict[str, Tensor] = {}
    for side, name in _SIDES.items():
        tensors |= {f"{side}.{part}": tensor for part, tensor in read_state_dict(file, side).items()}
        names |= {f"{side}.gru.{part}_l0": f"{name}.{part}_l0" for part in _GRU}
    names |= {"encoder.embedding.weight": _EMBEDDINGS["source"], "decoder.embedding.weight": _EMBEDDINGS["target"]}
    names |= {"decoder.out.weight": "output.weight", "decoder.out.bias": "output.bias"}
    tensors = _renamed(tensors, names, file)
    # The decoder reads relu(E w): the embedding of a word can be relu(E) itself.
    tensors[_EMBEDDINGS["target"]] = tensors[_EMBEDDINGS["target"]].relu()
    vocabularies, models = [], []
    for side, name in WORD_LISTS.items():
        words = word_list(folder / name)
        size = len(words) + 2  # with the start and the end token, the first rows
        _refuse_other_rows(size, tensors[_EMBEDDINGS[side]], "words, with start and end,", folder / name)
        ids = {f"{SPACE}{word}": row for word, row in words.items()}
        start = 0 if side == "target" else None
        vocabulary = Vocabulary.of(ids, size, pad=None, unknown=None, start=start, end=1)
        vocabularies.append(vocabulary)
        rules = _separated_characters() if side == "source" else {}
        models.append(listed_model(vocabulary.names, rules.items(), words=True))
    imported = _imported(
        "cn2en",
        tensors,
        vocabularies,
        Tokenizer(*models),
        _PLAIN,
        data={"source_language": "zh", "target_language": "en"},
        decoding={"beam": 1, "min_length": 0, "max_length_extra": 1000},
    )
    embeddings = imported.tensors[_EMBEDDINGS["source"]]
    embeddings[SPECIAL.unknown] = _skipped_input(tensors, file) / embeddings.size(1) ** 0.5
    return imported


def _separated_characters() -> dict[str, str]:
    """Return the rules of cn2en: lower case; every character but letters and quotes is a word of its own."""
    joined = {*string.ascii_lowercase, "'", '"', " "}
    rules = {}
    for character in _CHARACTERS:
        text = "".join(part if part in joined else f" {part} " for part in character.lower())
        if text != character:
            rules[character] = text
    return rules


def _skipped_input(tensors: Mapping[str, Tensor], file: Path) -> Tensor:
    """Return an input x [D] that a GRU skips, because it opens the update gate: z = 1, so that h_t = h_{t-1}.

    The original leaves unknown words out. Here, x = W_iz^-1 (t - b_iz - b_hz) is their embedding, where t is so large
    that no state h with |h| < 1 closes the gate.

    Raises:
        UserError: no input opens the gate for all states.
    """
    weights = {part: tensors[f"{_SIDES['encoder']}.{part}_l0"].double().chunk(3)[1] for part in _GRU}
    enough = 40 + weights["weight_hh"].abs().sum(1) - weights["bias_ih"] - weights["bias_hh"]
    x, error = torch.linalg.solve_ex(weights["weight_ih"], enough)
    if error or not ((weights["weight_ih"].float() @ x.float()) > enough - 20).all():
        raise UserError("has an encoder that can't skip unknown words", file=file)
    return x.float()


def word_list(file: Path) -> dict[str, int]:
    """Read a pickled `Lang` of PyTorch's tutorial, without executing it: the row of each word, from 2 on.

    Raises:
        UserError: the file is damaged, would have to be executed, or is no list of words.
    """
    content = _unpickled(read_file(file, LONGEST_JSON), file)
    words = content.get("word2index") if isinstance(content, dict) else None
    if not isinstance(words, dict) or not all_are(str, words) or not all_are(int, words.values()):
        raise UserError("is no list of words", file=file, fix=_FIX)
    if sorted(words.values()) != [*range(2, len(words) + 2)]:
        raise UserError("does not number its words from 2 on", file=file, fix=_FIX)
    return words


_PICKLES = "Nothing is executed: only word lists of texts and numbers can be imported."


def _the_class(name: str, file: Path) -> str:
    """Return the name of the class of word lists; it is not looked up.

    Raises:
        UserError: it is another one.
    """
    module, _, attribute = name.partition(" ")
    if attribute != "Lang":
        raise UserError(f"needs {module:.50}.{attribute:.50}, which is not executed", file=file, fix=_PICKLES)
    return name


def _unpickled(content: bytes, file: Path) -> Any:
    """Follow the operations of a pickle that build texts, numbers and dictionaries; a `Lang` is its dictionary.

    Raises:
        UserError: the pickle is damaged, or has another operation or object.
    """
    stack: list[Any] = []
    memo: dict[int, Any] = {}
    marks: list[int] = []
    argument: Any
    try:
        for operation, argument, _ in pickletools.genops(content):
            match operation.name:
                case "PROTO" | "FRAME":
                    pass
                case "SHORT_BINUNICODE" | "BINUNICODE" | "BININT" | "BININT1" | "BININT2":
                    stack.append(argument)
                case "EMPTY_DICT":
                    stack.append({})
                case "EMPTY_TUPLE":
                    stack.append(())
                case "MEMOIZE":
                    memo[len(memo)] = stack[-1]
                case "BINPUT" | "LONG_BINPUT":
                    memo[argument] = stack[-1]
                case "BINGET" | "LONG_BINGET":
                    stack.append(memo[argument])
                case "MARK":
                    marks.append(len(stack))
                case "SETITEM" | "SETITEMS":
                    first = marks.pop() if operation.name == "SETITEMS" else len(stack) - 2
                    items, stack[first:] = stack[first:], []
                    stack[-1].update(zip(items[::2], items[1::2], strict=True))
                case "GLOBAL":
                    stack.append(_the_class(argument, file))
                case "STACK_GLOBAL":
                    stack[-2:] = [_the_class(" ".join(stack[-2:]), file)]
                case "NEWOBJ":
                    _class, _arguments = stack[-2:]
                    stack[-2:] = [{}]
                case "BUILD":
                    state = stack.pop()
                    stack[-1].update(state)
                case "STOP":
                    return stack.pop()
                case name:
                    raise UserError(f"has the pickle operation {name}, which is not followed", file=file, fix=_PICKLES)
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise UserError(f"is damaged, or no pickled list of words ({error})", file=file, fix=_FIX) from error
    raise UserError("is cut short", file=file, fix=_FIX)


# arabic-name-romanizer


def from_romanizer(folder: Path) -> Imported:
    """Read the ONNX graphs of arabic-name-romanizer.

    A source begins with a token for the country and one for the part of the name. Our language codes stand for both:
    `ar-Latn-EG-surname` for the spelling of surnames in Egypt, `ar-Latn` for that of any name in any country.

    Raises:
        UserError: a file is missing or damaged, or the graphs have other operations or weights.
    """
    keys = Keys(read_json(folder / "meta.json", 1 << 20), folder / "meta.json")
    keys.expect({"arch": "gru", "quantized": False, "length_alpha": 1.0})
    tokens = Keys(read_json(folder / "vocab.json"), folder / "vocab.json").values.get("tokens")
    if not isinstance(tokens, list) or not all_are(str, tokens) or len({*tokens}) != len(tokens):
        raise UserError("is not a list of different tokens", file=folder / "vocab.json", fix=_FIX)
    if tokens[:4] != ["<PAD>", "<BOS>", "<EOS>", "<UNK>"]:
        raise UserError("does not begin with the special tokens", file=folder / "vocab.json", fix=_FIX)
    encoder, decoder = _Graph(folder / ENCODER), _Graph(folder / DECODER)
    layers = encoder.count("GRU")
    encoder.refuse_other_operations(["GRU"] * layers + ["ReduceSum", "ReduceSum", "Clip", "Gemm", "Tanh"])
    cell = ["Gemm", "Gemm", "Sigmoid", "Sigmoid", "Tanh"]
    attention = ["MatMul", "MatMul", "Softmax", "MatMul", "MatMul", "Tanh"]
    decoder.refuse_other_operations(cell * layers + attention + ["Gemm", "LogSoftmax"])
    tensors = _encoder_weights(encoder) | _decoder_weights(decoder, layers)
    for graph in (encoder, decoder):
        graph.refuse_unused()
    _refuse_other_rows(len(tokens), tensors["output.weight"], "tokens", folder / "vocab.json")
    names = [token.replace(" ", SPACE) for token in tokens]
    vocabulary = Vocabulary.of(_rows(names[4:], 4), len(names), pad=0, unknown=3, start=1, end=2)
    vocabulary.can_output[SPECIAL.pad] = False  # the search of the original does not write it either
    tags = [name for name in names[4:] if name.startswith("<") and name.endswith(">")]
    characters = {name for name in tokens if len(name) == 1}
    model = listed_model(vocabulary.names, _folding(characters).items(), words=False, controls=tags)
    return _imported(
        "arabic-name-romanizer",
        tensors,
        [vocabulary],
        Tokenizer(model),
        {
            "attention": "luong-general",
            "combine_bias": True,
            "first_state": "mean",
            "layers": layers,
            "share_embeddings": torch.equal(*(tensors[name] for name in _EMBEDDINGS.values())),
        },
        languages=_languages(tags),
        data={"source_language": "ar", "target_language": "ar-Latn"},
        decoding={
            "beam": keys.number("beam_width", 1),
            # The original divides log-probabilities by the length. Of the exponents tried, this one ranks most alike.
            "length_penalty": 1.5,
            "max_length_extra": keys.number("max_tgt_len", 32),
        },
    )


def _languages(tags: Sequence[str]) -> dict[str, str]:
    """Return the tags of a country and of a part of a name, by the language codes that stand for them."""
    parts = {"": "", "-given": "<ROLE_GIVEN>", "-surname": "<ROLE_SURNAME>"}
    if "<ROLE_UNKNOWN>" in tags:
        parts[""] = "<ROLE_UNKNOWN>"
    languages = {}
    for tag in tags:
        if tag.startswith("<ROLE_"):
            continue
        country = "" if tag == "<UNK_COUNTRY>" else f"-{tag[1:-1]}"
        for part, role in parts.items():
            if not role or role in tags:
                languages[f"ar-Latn{country}{part}"] = " ".join(filter(None, (tag, role)))
    return languages


def _encoder_weights(graph: _Graph) -> dict[str, Tensor]:
    """Return the weights of the encoder by our names; ONNX stores the gates of a GRU as z, r, n, PyTorch as r, z, n."""
    (embedding,) = graph.parameters("Gather")
    tensors = {_EMBEDDINGS["source"]: embedding[0]}
    layers = graph.parameters("GRU", direction=b"bidirectional", linear_before_reset=1)
    for layer, (weights, states, biases) in enumerate(layers):
        for direction, ending in enumerate((f"l{layer}", f"l{layer}_reverse")):
            parts = weights[direction], states[direction], *biases[direction].chunk(2)
            for name, part in zip(_GRU, parts, strict=True):
                update, reset, new = part.chunk(3)
                tensors[f"{_SIDES['encoder']}.{name}_{ending}"] = torch.cat([reset, update, new])
    ((weight, bias),) = graph.parameters("Gemm", transB=1)
    return tensors | {"encoder.bridges.0.weight": weight, "encoder.bridges.0.bias": bias}


def _decoder_weights(graph: _Graph, layers: int) -> dict[str, Tensor]:
    """Return the weights of the decoder by our names."""
    (embedding,) = graph.parameters("Gather")
    tensors = {_EMBEDDINGS["target"]: embedding[0]}
    *cells, output = graph.parameters("Gemm", transB=1)
    for layer in range(layers):
        (input_weight, input_bias), (state_weight, state_bias) = cells[2 * layer : 2 * layer + 2]
        parts = input_weight, state_weight, input_bias, state_bias
        for name, part in zip(_GRU, parts, strict=True):
            tensors[f"{_SIDES['decoder']}.{name}_l{layer}"] = part
    # The matrices of a product are stored as inputs times outputs. Their attentional state reads [h; c], ours [c; h].
    (query,), (combine,) = graph.parameters("MatMul")
    of_state, of_context = combine.chunk(2)
    ((bias,),) = graph.parameters("Add")
    tensors["decoder.score.weight.weight"] = query
    tensors["decoder.combine.weight"] = torch.cat([of_context, of_state]).T
    tensors["decoder.combine.bias"] = bias
    return tensors | {"output.weight": output[0], "output.bias": output[1]}


_PLUMBING = {
    *("Add", "Cast", "Concat", "Constant", "ConstantOfShape", "Div", "Equal", "Expand", "Gather", "Identity", "Mul"),
    *("Not", "Reshape", "Shape", "Slice", "Sub", "Transpose", "Unsqueeze", "Where"),
}
"""Operations that are not compared, as they only arrange numbers."""


class _Graph:
    """The operations and the weights of an ONNX file, which is not run."""

    def __init__(self, file: Path) -> None:
        """Read a file.

        Raises:
            UserError: the file is missing or damaged, or has its weights elsewhere, or the package onnx is missing.
        """
        if find_spec("onnx") is None:
            raise missing_package("importing ONNX graphs", "onnx", "onnx")
        self.file = file
        content = read_file(file, _LONGEST_GRAPH)
        onnx, convert = import_module("onnx"), import_module("onnx.numpy_helper").to_array
        try:
            graph = onnx.load_model_from_string(content).graph
        except Exception as error:  # protobuf raises several types, which differ by its implementation
            raise UserError("is no ONNX graph, or is cut short", file=file, fix=_FIX) from error
        self.nodes = list(graph.node)
        self.weights: dict[str, Tensor] = {}
        for tensor in graph.initializer:
            if tensor.data_location == onnx.TensorProto.EXTERNAL or tensor.data_type != onnx.TensorProto.FLOAT:
                raise UserError(f"has weights in another file or type: {tensor.name:.50}", file=file, fix=_FIX)
            self.weights[tensor.name] = torch.from_numpy(convert(tensor).copy())
        refuse_not_finite(self.weights, file)
        self._unused = {*self.weights}

    def count(self, operation: str) -> int:
        """Return how often the graph has an operation."""
        return sum(node.op_type == operation for node in self.nodes)

    def refuse_other_operations(self, expected: Sequence[str]) -> None:
        """Check the operations that compute, in order.

        Raises:
            UserError: they are not the expected ones.
        """
        operations = [node.op_type for node in self.nodes if node.op_type not in _PLUMBING]
        if operations != [*expected]:
            counts = Counter(operations)
            listed = ", ".join(f"{count} {name}" for name, count in counts.items()) or "none"
            what = f"has other operations than a GRU with Luong's attention: {listed}"
            raise UserError(what, file=self.file, fix="Only the GRU of arabic-name-romanizer can be imported.")

    def parameters(self, operation: str, **attributes: object) -> Iterator[list[Tensor]]:
        """Yield the weights of each such operation that has some, in the order of its inputs.

        Raises:
            UserError: an attribute of an operation has another value.
        """
        value_of = import_module("onnx.helper").get_attribute_value
        for node in self.nodes:
            names = [name for name in node.input if name in self.weights]
            if node.op_type != operation or not names:
                continue
            values = {attribute.name: value_of(attribute) for attribute in node.attribute}
            for name, value in attributes.items():
                if values.get(name) != value:
                    what = f"has a {operation} with {name}={values.get(name)!r:.50}, not {value!r}"
                    raise UserError(what, file=self.file, fix="Only the GRU of arabic-name-romanizer can be imported.")
            self._unused.difference_update(names)
            yield [self.weights[name] for name in names]

    def refuse_unused(self) -> None:
        """Check that all weights were read.

        Raises:
            UserError: there are others.
        """
        if self._unused:
            names = ", ".join(sorted(self._unused))
            raise UserError(f"has weights of another model: {names:.200}", file=self.file, fix=_FIX)
