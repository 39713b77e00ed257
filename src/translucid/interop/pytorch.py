"""Import models that are built around PyTorch's `torch.nn.Transformer`, and those of the Keras tutorials.

PyTorch's translation tutorial saves a state dict. What its weights do not say is in a description, a YAML or JSON file:
the vocabularies, how texts are cut, and the number of heads. What the description leaves out is guessed and reported.

`nn.Transformer` computes our equations: its post-norm stacks end with a norm as well (`model.norm=post-final`), and
its matrices for queries, keys and values are one. `keras.py` gives the weights of Keras the same names.
"""

from __future__ import annotations

import math
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import torch
import yaml
from pydantic import Field
from torch import Tensor

from translucid.data.tokenizing.pieces import SPACE
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.errors import UserError
from translucid.ground.option_group import OptionGroup
from translucid.ground.special import SPECIAL
from translucid.interop import DESCRIPTIONS, KERAS
from translucid.interop.imported import (
    LONGEST_JSON,
    SIDES,
    Imported,
    all_are,
    kind_of_positions,
    read_file,
    read_json,
    read_state_dict,
)
from translucid.interop.keras import read_keras
from translucid.interop.pieces import Vocabulary, listed_model, vocabulary_weights
from translucid.layers.variants import Sinusoids
from translucid.runs.configuration import checked
from translucid.runs.settings import LONGEST, parse_yaml

_HELP = "Describe the model: docs/tutorial-models.md."
Cutting: TypeAlias = Literal["characters", "spaces", "basic_english", "spacy_en", "spacy_de", "text_vectorization"]
"""Into single characters; at spaces; as torchtext's `basic_english`; nearly as spaCy cuts English or German; or in
lower case without punctuation, as in Keras' tutorial."""
_Words: TypeAlias = Annotated[list[str], Field(min_length=1)] | str


class SpecialNames(OptionGroup):
    """The entries of the vocabularies that are not part of texts.

    The source's vocabulary may lack the start or end token if sources do not have it.
    """

    unknown: str | None = None
    pad: str | None = None
    start: str | None = None
    end: str | None = None


_SPELLINGS = {
    "unknown": ("<unk>", "<UNK>", "[UNK]", "UNK", "unk"),
    "pad": ("<pad>", "", "<PAD>", "[PAD]", "PAD", "pad", "<blank>"),
    "start": ("<bos>", "<sos>", "<s>", "<BOS>", "<SOS>", "[BOS]", "[SOS]", "<start>", "[start]", "BOS", "SOS"),
    "end": ("<eos>", "</s>", "<EOS>", "[EOS]", "<end>", "[end]", "EOS"),
}


class Cut(OptionGroup):
    """How the texts of each side are cut."""

    source: Cutting
    target: Cutting


class TensorNames(OptionGroup):
    """The names of tensors outside `nn.Transformer`."""

    source_embedding: str | None = None
    target_embedding: str | None = None
    output: str | None = None
    source_positions: str | None = None
    target_positions: str | None = None


class Description(OptionGroup):
    """What a description file may say; everything that is None is guessed."""

    weights: str | None = None
    """The file of the weights, beside the description."""
    state_dict: str | None = None
    """The key of the state dict in a checkpoint."""
    source_vocabulary: _Words
    """The entries in the order of their rows, or a file with one in each line, or a JSON file."""
    target_vocabulary: _Words | None = None
    """The same for the target; that of the source if it is left out."""
    special_tokens: SpecialNames = SpecialNames()
    tokenization: Cut | Cutting | None = None
    lower_case: bool | None = None
    """Texts are lower-cased before they are cut."""
    source_start: bool | None = None
    """Sources begin with the start token."""
    source_end: bool | None = None
    """Sources end with the end token."""
    heads: int | None = Field(None, ge=1)
    norm_first: bool | None = None
    activation: Literal["relu", "gelu"] | None = None
    layer_norm_eps: float | None = None
    scale_embeddings: bool | None = None
    """Embeddings are multiplied by the square root of the width."""
    positions: Literal[Sinusoids, "none"] | None = None
    """The positional encoding, if the weights have no table of positions."""
    names: TensorNames = TensorNames()


class _Guesses:
    """What the description left out."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def take(self, key: str, given: Any, guess: Any) -> Any:
        """Return what is given, or a guess, which is noted."""
        if given is not None:
            return given
        self.lines.append(f"{key}: {guess}" if not isinstance(guess, bool) else f"{key}: {str(guess).lower()}")
        return guess


@dataclass(frozen=True)
class _Usual:
    """What is guessed for a toolkit."""

    kind: str = "PyTorch"
    heads: int | None = None
    """The number of heads, if the weights say it."""
    source_start: bool = True
    source_end: bool = True
    scale_embeddings: bool = True
    positions: str = "sinusoidal"
    layer_norm_eps: float = 1e-5

    @classmethod
    def of_keras(cls, heads: int) -> _Usual:
        """Return what the tutorial of keras.io does."""
        return cls("Keras", heads, False, False, False, "none", 1e-3)

    @classmethod
    def of_tensorflow(cls, heads: int) -> _Usual:
        """Return what TensorFlow's tutorial does; its positions are no weights."""
        return cls("Keras", heads, positions="sinusoidal-halves", layer_norm_eps=1e-3)


class _Reading(NamedTuple):
    """A model that is read."""

    state: StateDict
    description: Description
    guesses: _Guesses
    usual: _Usual


def from_pytorch(path: Path) -> Imported:
    """Read a model of PyTorch.

    Args:
        path: a description, a file of weights with a description of the same name beside it, or a folder with a
            description `model.yaml` or `model.json`.

    Raises:
        UserError: there is no description, it is wrong, the model is of another kind, or tensors are missing.
    """
    file = _description_file(path)
    description = _read_description(file)
    guesses = _Guesses()
    weights = _weights_file(file, description)
    usual = _Usual()
    if weights.suffix in KERAS:
        keras = read_keras(weights)
        usual = _Usual.of_tensorflow(keras.heads) if keras.of_tensorflow else _Usual.of_keras(keras.heads)
        state = StateDict(keras.tensors, weights)
    else:
        state = StateDict(read_state_dict(weights, description.state_dict), weights)
    reading = _Reading(state, description, guesses, usual)
    model, tensors = _network(reading)
    embeddings = _embeddings(reading, model, tensors)
    state.refuse_problems()
    start = guesses.take("source_start", description.source_start, usual.source_start)
    end = guesses.take("source_end", description.source_end, usual.source_end)
    in_target_only = {kind for kind, is_read in (("start", start), ("end", end)) if not is_read}
    source, target, models = _vocabularies(file, description, embeddings, guesses, in_target_only)
    shared = source is target and torch.equal(embeddings["source"], embeddings["target"])
    bias = state.tensors.get(f"{state.output}.bias")
    if bias is not None and bias.shape != embeddings["output"].shape[:1]:
        raise UserError(f"{state.output}.bias has another size than the output", file=weights)
    tensors |= vocabulary_weights(source, target, embeddings, bias)
    if not end:
        model["source_end"] = False
    model |= {
        "share_embeddings": shared,
        "tie_output": torch.equal(embeddings["output"], embeddings["target"]),
        "scale_embeddings": guesses.take("scale_embeddings", description.scale_embeddings, usual.scale_embeddings),
    }
    tokenizer = Tokenizer(*models)
    options = {"vocabulary": tokenizer.target_size, "joint": tokenizer.joint, "source_start": start}
    return Imported(
        kind=usual.kind,
        settings={
            "model": model,
            "data": {"tokenizer": options, "max_tokens": min(model.get("max_length", 512), 512)},
            "decoding": {"beam": 1},  # as the tutorial
        },
        tensors=tensors,
        tokenizer=tokenizer,
        guesses=guesses.lines,
    )


def _description_file(path: Path) -> Path:
    """Find the description."""
    if path.suffix in DESCRIPTIONS:
        return path
    stem = path / "model" if path.is_dir() else path.with_suffix("")
    for suffix in DESCRIPTIONS:
        file = stem.with_name(stem.name + suffix)
        if file.exists():
            return file
    names = ", ".join(f"{stem.name}{suffix}" for suffix in DESCRIPTIONS)
    raise UserError(f"has no description beside it, one of {names}", file=path, fix=_HELP)


def _read_description(file: Path) -> Description:
    if file.suffix == ".json":
        settings = read_json(file)
    else:
        try:
            settings = parse_yaml(read_file(file, LONGEST).decode("utf-8"))
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            what = " ".join(str(error).split())
            raise UserError(f"is not YAML ({what:.200})", file=file, fix=_HELP) from error
    if not isinstance(settings, dict):
        raise UserError("is no description of a model", file=file, fix=_HELP)
    return checked(Description, settings, file, fix=_HELP)


def _weights_file(file: Path, description: Description) -> Path:
    """Return the file of the weights: the one that the description names, or the one with its own name."""
    if description.weights is not None:
        return _beside(file, description.weights)
    candidates = [
        file.with_suffix(suffix) for suffix in (".pt", ".pth", ".ckpt", ".zip", ".bin", ".safetensors", *KERAS)
    ]
    existing = [candidate for candidate in candidates if candidate.exists()]
    if len(existing) != 1:
        fix = "Name one in the description: weights: FILE."
        raise UserError(f"{len(existing)} files of weights have its name", file=file, fix=fix)
    return existing[0]


def _beside(file: Path, name: str) -> Path:
    """Return a file that a description names, in its folder."""
    if Path(name).name != name:
        raise UserError(f"names {name[:80]!r}, which is not in its folder", file=file, fix="Put the file beside it.")
    return file.parent / name


class StateDict:
    """The tensors of a model, which remembers those that were used, and which were missing."""

    output = ""
    """The name of the output layer."""

    def __init__(self, tensors: Mapping[str, Tensor], file: Path) -> None:
        """Take tensors by name, without the prefixes of wrapped modules, and the file for messages."""
        self.file, self.problems = file, list[str]()
        for prefix in ("module.", "_orig_mod."):  # of nn.DataParallel and of torch.compile
            if tensors and all(name.startswith(prefix) for name in tensors):
                tensors = {name.removeprefix(prefix): tensor for name, tensor in tensors.items()}
        self.tensors = dict(tensors)
        self.unused = {*tensors}
        self.has_bias = any(name.endswith("self_attn.in_proj_bias") for name in tensors)

    def take(self, name: str, *shape: int) -> Tensor:
        """Return a tensor of this shape; one that is missing or has another shape is a problem."""
        tensor = self.tensors.get(name)
        self.unused.discard(name)
        if tensor is None:
            self.problems.append(f"has no {name}")
        elif tensor.shape != shape:
            self.problems.append(f"{name} is {list(tensor.shape)}, not {list(shape)}")
        else:
            return tensor
        # Nothing is allocated for it: the problems are reported.
        return torch.empty(0)

    def take_bias(self, name: str, size: int) -> Tensor:
        """Return a bias; zeros if the model has none anywhere."""
        if self.has_bias or name in self.tensors:
            return self.take(name, size)
        return torch.zeros(size)

    def refuse_problems(self) -> None:
        """Check that all tensors fit and were used.

        Raises:
            UserError: they were not.
        """
        unused = [f"{name} is not part of the model" for name in sorted(self.unused)]
        problems = [*self.problems, *unused]
        if problems:
            listed = "; ".join(problems[:20]) + (f"; and {len(problems) - 20:,} more" if len(problems) > 20 else "")
            raise UserError(f"does not fit `nn.Transformer`: {listed}", file=self.file, fix=_HELP)


_STACK = re.compile(r"(?P<stack>.+)\.layers\.(?P<layer>[0-9]{1,4})\.(?P<attention>self_attn|multihead_attn)\..+")


def _stacks(state: StateDict) -> dict[str, tuple[str, int]]:
    """Return the name and the depth of the encoder and of the decoder."""
    layers: dict[str, set[str]] = {}
    with_cross_attention = set()
    for name in state.tensors:
        if match := _STACK.fullmatch(name):
            layers.setdefault(match["stack"], set()).add(match["layer"])
            if match["attention"] == "multihead_attn":
                with_cross_attention.add(match["stack"])
    stacks = {}
    for side in SIDES:
        names = [name for name in layers if (name in with_cross_attention) == (side == "decoder")]
        if len(names) != 1:
            found = ", ".join(sorted(names)) or f"none; the first tensors are {', '.join([*state.tensors][:3])}"
            what = f"has {len(names)} stacks of `nn.Transformer` layers for the {side}, not one: {found:.300}"
            raise UserError(what, file=state.file, fix="Models with one encoder and one decoder can be imported.")
        stacks[side] = names[0], len(layers[names[0]])
    return stacks


def _network(reading: _Reading) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the options of the model, and the weights of its blocks by our names."""
    state, description, guesses, usual = reading
    stacks = _stacks(state)
    first = f"{stacks['encoder'][0]}.layers.0"
    width, inner = _size(state, f"{first}.norm1.weight"), _size(state, f"{first}.linear1.weight")
    tensors: dict[str, Tensor] = {}
    final = [f"{stack}.norm.weight" in state.tensors for stack, _ in stacks.values()]
    norm_first = guesses.take("norm_first", description.norm_first, False)
    if final[0] != final[1] or (norm_first and not final[0]):
        what = "has a final norm on one side only" if final[0] != final[1] else "has norm_first without a final norm"
        raise UserError(f"{what}, which is not supported", file=state.file)
    for side, (stack, depth) in stacks.items():
        for layer in range(depth):
            tensors |= _block(state, f"{stack}.layers.{layer}", f"{side}.{layer}", width, inner)
        if final[0]:
            tensors |= _norm(state, f"{stack}.norm", f"{side}_norm", width)
    heads, epsilon = usual.heads, description.layer_norm_eps or usual.layer_norm_eps
    if heads is None:
        likely = next(heads for heads in (8, 4, 2, 1) if width % heads == 0)
        heads = guesses.take("heads", description.heads, likely)
    elif description.heads not in (None, heads):
        raise UserError(f"has {heads} heads, not {description.heads}", file=state.file, fix="Leave out `heads`.")
    heads_width = _size(state, f"{first}.self_attn.in_proj_weight") // 3  # of all heads together
    model = {
        "kind": "transformer",
        "width": width,
        "heads": heads,
        "head_width": None if heads_width == width else heads_width // heads,
        "norm_epsilon": epsilon,
        "feed_forward": inner,
        "encoder_layers": stacks["encoder"][1],
        "decoder_layers": stacks["decoder"][1],
        "norm": "pre" if norm_first else "post-final" if final[0] else "post",
        "nonlinearity": guesses.take("activation", description.activation, "relu"),
    }
    return model, tensors


def _size(state: StateDict, name: str) -> int:
    """Return the first dimension of a tensor."""
    if name not in state.tensors or not state.tensors[name].dim():
        raise UserError(f"has no {name}", file=state.file, fix="Is it a state dict of `nn.Transformer`?")
    return len(state.tensors[name])


def _block(state: StateDict, theirs: str, ours: str, width: int, inner: int) -> dict[str, Tensor]:
    """Return the weights of a block by our names."""
    tensors: dict[str, Tensor] = {}
    heads_width = _size(state, f"{theirs}.self_attn.in_proj_weight") // 3
    attentions = [("self_attn", "self_attention"), ("multihead_attn", "cross_attention")]
    if ours.startswith("encoder"):
        del attentions[1]
    for number, (their_attention, attention) in enumerate(attentions):
        their_name, name = f"{theirs}.{their_attention}", f"{ours}.{attention}"
        weight = state.take(f"{their_name}.in_proj_weight", 3 * heads_width, width)
        bias = state.take_bias(f"{their_name}.in_proj_bias", 3 * heads_width)
        for kind, tensor in (("weight", weight), ("bias", bias)):
            tensors[f"{name}.query.{kind}"] = tensor[:heads_width]
            tensors[f"{name}.key_value.{kind}"] = tensor[heads_width:]
        tensors |= _linear(state, f"{their_name}.out_proj", f"{name}.output", width, heads_width)
        tensors |= _norm(state, f"{theirs}.norm{number + 1}", f"{ours}.residuals.{number}.norm", width)
    tensors |= _linear(state, f"{theirs}.linear1", f"{ours}.feed_forward.inner", inner, width)
    tensors |= _linear(state, f"{theirs}.linear2", f"{ours}.feed_forward.outer", width, inner)
    last = len(attentions)
    return tensors | _norm(state, f"{theirs}.norm{last + 1}", f"{ours}.residuals.{last}.norm", width)


def _linear(state: StateDict, theirs: str, ours: str, rows: int, columns: int) -> dict[str, Tensor]:
    weight = state.take(f"{theirs}.weight", rows, columns)
    return {f"{ours}.weight": weight, f"{ours}.bias": state.take_bias(f"{theirs}.bias", rows)}


def _norm(state: StateDict, theirs: str, ours: str, width: int) -> dict[str, Tensor]:
    return {
        f"{ours}.weight": state.take(f"{theirs}.weight", width),
        f"{ours}.bias": state.take_bias(f"{theirs}.bias", width),
    }


_ROLES = {
    "positions": re.compile(r"pos|\bpe\b"),
    "output": re.compile(r"generator|fc|out|linear|proj|head|unembed"),
    "source": re.compile(r"src|source|enc|input"),
    "target": re.compile(r"tgt|trg|target|dec"),
}
"""How the names of tensors outside the Transformer begin or end, in the order in which they are compared."""


def _embeddings(reading: _Reading, model: dict[str, Any], tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the matrices [V, D] of `source`, `target` and `output`; learned positions are added to `tensors`."""
    state, guesses = reading.state, reading.guesses
    width, roles = model["width"], _named_roles(state, reading.description)
    matrices = {}
    for name in sorted(state.unused):
        tensor = state.tensors[name]
        if tensor.dim() >= 2 and tensor.numel() and math.prod(tensor.shape[-1:]) == width:
            matrices[name] = tensor.reshape(-1, width)
    given = {*roles.values()}
    free: dict[str, list[str]] = {role: [] for role in (*_ROLES, "")}
    for name in matrices:
        if name not in given:
            free[_role(name)].append(name)
    embeddings = free["source"] + free["target"] + free[""]
    if len(embeddings) == 1:
        free["source"] = free["target"] = embeddings
    for role in ("source", "target"):
        if role not in roles:
            roles[role] = _only(free[role], f"{role}_embedding", [*matrices], state)
            guesses.take(f"names.{role}_embedding", None, roles[role])
    if "output" not in roles:
        roles["output"] = _only(free["output"], "output", [*matrices], state)
        guesses.take("names.output", None, roles["output"])
    for role in ("source", "target", "output"):
        if roles[role] not in matrices:
            what = f"names.{role}: there is no matrix {roles[role]!r:.100} with {width} columns"
            raise UserError(what, file=state.file, fix=f"There are {', '.join(matrices) or 'none'}."[:400])
        state.unused.discard(roles[role])
    state.output = roles["output"].removesuffix(".weight")
    state.unused.discard(f"{state.output}.bias")
    _positions(reading, model, tensors, _position_names(roles, free["positions"], state))
    return {role: matrices[roles[role]] for role in ("source", "target", "output")}


def _named_roles(state: StateDict, description: Description) -> dict[str, str]:
    """Return the names of tensors that the description gives, by role."""
    roles = {}
    for key, name in description.names.model_dump(exclude_none=True).items():
        role = key.removesuffix("_embedding")
        roles[role] = name if name in state.tensors else f"{name}.weight"
    return roles


def _role(name: str) -> str:
    """Return what a tensor probably is, by its name; an empty text if its name does not say it."""
    for role, pattern in _ROLES.items():
        if pattern.search(name.lower()):
            return role
    return ""


def _only(names: list[str], key: str, candidates: list[str], state: StateDict) -> str:
    if len(names) != 1:
        what = f"does not say which tensor is `names.{key}`: {', '.join(candidates) or 'none fits'}"
        raise UserError(f"{what:.400}", file=state.file, fix="Name it in the description.")
    return names[0]


def _position_names(roles: Mapping[str, str], free: list[str], state: StateDict) -> list[str]:
    """Return the names of the tables of positions: none, one for both sides, or two."""
    given = [roles[f"{side}_positions"] for side in ("source", "target") if f"{side}_positions" in roles]
    names = given or sorted(free, key=lambda name: not _ROLES["source"].search(name.lower()))
    if len(names) > 2:
        raise UserError(f"has {len(names)} tables of positions: {', '.join(names)}", file=state.file, fix=_HELP)
    state.unused.difference_update(names)
    return names


def _positions(reading: _Reading, model: dict[str, Any], tensors: dict[str, Tensor], names: list[str]) -> None:
    """Find the kind of the positions; learned ones are added to the weights."""
    state, description, guesses, usual = reading
    width = model["width"]
    if not names:
        model["positions"] = guesses.take("positions", description.positions, usual.positions)
        return
    tables = []
    for name in names:
        table = state.tensors.get(name, torch.empty(0)).squeeze()
        if table.dim() != 2 or table.size(1) != width:
            raise UserError(f"{name} is no table of positions of the width {width}", file=state.file)
        tables.append(table)
    same = torch.equal(tables[0], tables[-1])
    if same and (kind := kind_of_positions(tables[0].numpy())):
        model |= kind
        return
    length = min(map(len, tables))
    model |= {"positions": "learned", "max_length": max(2, length)}
    for side, table in zip(("source", "target"), (tables[0], tables[-1]), strict=True):
        tensors[f"{side}_embedding.positions.table"] = table[:length].clone()


def _vocabularies(
    file: Path,
    description: Description,
    embeddings: Mapping[str, Tensor],
    guesses: _Guesses,
    in_target_only: Collection[str],
) -> tuple[Vocabulary, Vocabulary, list[bytes]]:
    """Return both vocabularies, one object if they are the same, and their SentencePiece models.

    The source's vocabulary may lack the special tokens `in_target_only`.
    """
    lists = {"source": _words(file, description.source_vocabulary)}
    lists["target"] = lists["source"]
    if description.target_vocabulary is not None:
        lists["target"] = _words(file, description.target_vocabulary)
    else:
        guesses.lines.append("target_vocabulary: that of the source")
    special = _special_names(file, description, lists, guesses, in_target_only)
    cutting = _cutting(description, lists, special, guesses)
    lower = guesses.take("lower_case", description.lower_case, False)
    one_list = lists["source"] == lists["target"] and cutting["source"] == cutting["target"]
    vocabularies, models = {}, []
    for side, words in lists.items():
        count = len(embeddings[side])
        if len(words) != count or len(embeddings["output"]) != len(embeddings["target"]):
            what = f"{side}_vocabulary has {len(words):,} entries, and there are {count:,} embeddings"
            if len(words) == count:
                what = f"the output has {len(embeddings['output']):,} rows, the target {len(embeddings['target']):,}"
            raise UserError(what, file=file, fix="Are these the vocabularies of this model?")
        vocabularies[side] = _vocabulary(words, special, characters=cutting[side] == "characters")
        models.append(
            listed_model(
                vocabularies[side].names, _rules(cutting[side], lower=lower), words=cutting[side] != "characters"
            )
        )
    if one_list:
        return vocabularies["source"], vocabularies["source"], models[:1]
    return vocabularies["source"], vocabularies["target"], models


def _words(file: Path, words: list[str] | str) -> list[str]:
    """Return the entries of a vocabulary, which may be in a file."""
    entries: Any = words
    if isinstance(words, str):
        file = _beside(file, words)
        entries = _words_of_json(read_json(file)) if file.suffix == ".json" else _lines(file)
    if not isinstance(entries, list) or not entries or not all_are(str, entries):
        raise UserError("is not a list of entries, nor entries with their rows", file=file, fix=_HELP)
    counts = Counter(entries)
    if len(counts) != len(entries):
        ((twice, _),) = counts.most_common(1)
        raise UserError(f"has the entry {twice!r:.80} twice", file=file, fix="Is the list in the order of the rows?")
    return entries


def _lines(file: Path) -> list[str]:
    """Return the lines of a file; only line feeds separate them, because an entry may be another kind of space."""
    try:
        text = read_file(file, LONGEST_JSON).decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError("is not UTF-8", file=file) from error
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n")


def _words_of_json(content: Any) -> Any:
    """Return entries in the order of their rows, if these are 0, 1, 2 and so on."""
    if not isinstance(content, dict):
        return content
    if not all_are(int, content.values()) or sorted(content.values()) != list(range(len(content))):
        return None
    return sorted(content, key=content.__getitem__)


def _special_names(
    file: Path,
    description: Description,
    lists: Mapping[str, list[str]],
    guesses: _Guesses,
    in_target_only: Collection[str],
) -> dict[str, str | None]:
    """Return the spelling of each special token; there may be no unknown or padding."""
    special: dict[str, str | None] = {}
    target = {*lists["target"]}
    both = {*lists["source"]} & target
    for kind, spellings in _SPELLINGS.items():
        given = getattr(description.special_tokens, kind)
        names = target if kind in in_target_only else both
        guess = next((name for name in spellings if name in names), None)
        if (given or guess) not in names and (given or kind in ("start", "end")):
            where = "target_vocabulary does" if kind in in_target_only else "the vocabularies do"
            what = f"special_tokens.{kind}: {where} not have {given or ' or '.join(spellings[:3])}"
            raise UserError(what, file=file, fix="Give its spelling, which is the same on both sides.")
        special[kind] = given or guess
    found = {kind: name for kind, name in special.items() if getattr(description.special_tokens, kind) is None}
    if found:
        spelled = ", ".join(
            f"{kind} {'missing' if name is None else name or repr(name)}" for kind, name in found.items()
        )
        guesses.lines.append(f"special_tokens: {spelled}")
    return special


def _cutting(
    description: Description,
    lists: Mapping[str, list[str]],
    special: Mapping[str, str | None],
    guesses: _Guesses,
) -> dict[str, Cutting]:
    """Return how the texts of each side are cut: by default into characters, if all entries are characters."""
    if isinstance(description.tokenization, Cut):
        return {"source": description.tokenization.source, "target": description.tokenization.target}
    if description.tokenization is not None:
        return dict.fromkeys(lists, description.tokenization)
    cutting: dict[str, Cutting] = {}
    for side, words in lists.items():
        longest = max((len(word) for word in words if word not in special.values()), default=1)
        cutting[side] = "characters" if longest == 1 else "spaces"
    guesses.lines.append(f"tokenization: source {cutting['source']}, target {cutting['target']}")
    return cutting


def _vocabulary(words: list[str], special: Mapping[str, str | None], *, characters: bool) -> Vocabulary:
    """Return our ids of a list of words or characters.

    The model may output its unknown word, as in the tutorial: the target has it as an ordinary piece too, because our
    search never outputs the special one.
    """
    names = []
    for word in words:
        names.append(word.replace(" ", SPACE) if characters else SPACE + word)
    ids = {name: row for row, name in enumerate(names)}
    rows = {kind: words.index(name) for kind, name in special.items() if name in words}
    vocabulary = Vocabulary.of(
        ids, len(words), pad=rows.get("pad"), unknown=rows.get("unknown"), start=rows.get("start"), end=rows.get("end")
    )
    if "unknown" in rows:
        vocabulary.names.append(names[rows["unknown"]] if not characters else "⁇")
        vocabulary.rows.append(rows["unknown"])
        vocabulary.can_output.append(True)
        vocabulary.can_output[SPECIAL.unknown] = False
    return vocabulary


_SUFFIXES = ("'s", "'re", "'ve", "'ll", "'m", "'d", "n't")
"""The endings that spaCy separates in English."""


@cache
def _lower_case() -> dict[str, str]:
    """Return the characters that lower-casing changes."""
    return {character: character.lower() for character in map(chr, range(1, 0x1E944)) if character.lower() != character}


def _rules(cutting: Cutting, *, lower: bool) -> Iterable[tuple[str, str]]:
    """Return the texts that are replaced before a text is cut at spaces, or into characters."""
    rules = _lower_case() | {} if lower or cutting in ("basic_english", "text_vectorization") else {}
    if cutting != "characters":
        # What `str.split` takes for a space.
        rules |= {
            character: " " for character in map(chr, range(1, 0x3001)) if character.isspace() and character != " "
        }
    if cutting == "basic_english":  # torchtext's rules
        rules |= {character: f" {character} " for character in ".,()!?"}
        rules |= {"'": " '  ", '"': "", "<br />": " ", ";": " ", ":": " "}
    elif cutting == "text_vectorization":
        rules |= dict.fromkeys(string.punctuation + "¿", "")
    elif cutting.startswith("spacy"):
        for character in map(chr, range(1, 0x3000)):
            if unicodedata.category(character)[0] == "P" and character not in "'_@#&*-":
                rules[character] = f" {character} "
        rules |= {character: f" {character} " for character in "$€£+=<>"}
        if cutting == "spacy_en":
            rules |= {"-": " - ", "'": " ' "}
            rules |= {suffix: f" {suffix}" for suffix in _SUFFIXES}
    return rules.items()
