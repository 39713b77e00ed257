"""Models around `torch.nn.Transformer` become runs with the same outputs; PyTorch's own modules are the oracle."""

import json
import math
import pickle
import random

import pytest
import torch
import yaml
from torch import nn
from typer.testing import CliRunner

from translucid.api.translator import Translator
from translucid.cli.main import app
from translucid.data.tokenizing.tokenizer import _processor
from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.search import search
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL, SPELLINGS
from translucid.interop.importing import import_model
from translucid.interop.pieces import listed_model
from translucid.interop.pytorch import Cutting, _rules
from translucid.layers.positions import sinusoidal_positions

SPECIAL_WORDS = ["<unk>", "<pad>", "<bos>", "<eos>"]
UNK, PAD, BOS, EOS = range(4)
NOT_WORDS = " ", "<bos>", "<eos>"
LETTERS = [*SPECIAL_WORDS, " ", "-", *"abcdefgh"]
WORDS = [*SPECIAL_WORDS, "a", "man", "in", "the", "hat", ".", ",", "don", "n't", "dog", "'s"]
OTHER = [*SPECIAL_WORDS, "ein", "mann", "im", "hut", ".", "hund"]


class Embedded(nn.Module):
    def __init__(self, count, width):
        super().__init__()
        self.embedding = nn.Embedding(count, width)


class Positions(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.register_buffer("pos_embedding", table)


class Tutorial(nn.Module):
    """A translator with the names of PyTorch's tutorial."""

    def __init__(self, sizes, width=16, *, table=None, final=True, shared=False, tied=False, scaled=True, **options):
        super().__init__()
        settings = {"nhead": 4, "dim_feedforward": 24, "dropout": 0.0, "batch_first": True} | options
        self.transformer = nn.Transformer(width, num_encoder_layers=2, num_decoder_layers=1, **settings)
        if not final:
            self.transformer.encoder.norm = self.transformer.decoder.norm = None
        self.src_tok_emb, self.tgt_tok_emb = (Embedded(size, width) for size in sizes)
        if shared:
            self.tgt_tok_emb.embedding.weight = self.src_tok_emb.embedding.weight
        self.generator = nn.Linear(width, sizes[1], bias=settings.get("bias", True))
        if tied:
            self.generator.weight = self.tgt_tok_emb.embedding.weight
        table = sinusoidal_positions(50, width) if table is None else table
        self.positional_encoding = Positions(table[:, None])
        self.scale, self.batch_first = math.sqrt(width) if scaled else 1.0, settings["batch_first"]
        with torch.no_grad():  # also biases and norms, which begin with zeros and ones
            for parameter in self.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.2)
        self.eval()

    def embed(self, module, ids):
        return module.embedding(ids) * self.scale + self.positional_encoding.pos_embedding[: ids.size(1), 0]

    @torch.no_grad()
    def log_probs(self, source, target):
        """Return the log-probabilities [T, V] after each token of a target that begins with <bos>."""
        embedded = [
            self.embed(self.src_tok_emb, torch.tensor([source])),
            self.embed(self.tgt_tok_emb, torch.tensor([target])),
        ]
        if not self.batch_first:
            embedded = [x.transpose(0, 1) for x in embedded]
        future = torch.ones(len(target), len(target)).triu(1).bool()
        output = self.transformer(*embedded, tgt_mask=future).reshape(len(target), -1)
        return self.generator(output).log_softmax(-1)


def beam_search(model, source, beam, limit):
    """Return the rows of the best output, one hypothesis at a time; <pad> and <bos> are no outputs."""
    live, finished = [([BOS], 0.0)], []
    while live and len(finished) < beam:
        candidates = []
        for tokens, log_p in live:
            following = model.log_probs(source, tokens)[-1]
            for token in [EOS] if len(tokens) > limit else range(len(following)):
                if token not in (PAD, BOS) and (len(tokens) > 1 or token != EOS):
                    candidates.append(([*tokens, token], log_p + float(following[token])))
        live = sorted(candidates, key=lambda c: -c[1])[: beam - len(finished)]
        finished += [(tokens, log_p / ((4 + len(tokens)) / 6)) for tokens, log_p in live if tokens[-1] == EOS]
        live = [c for c in live if c[0][-1] != EOS]
    return max(finished, key=lambda f: f[1])[0][1:-1]


VARIANTS = {
    "the tutorial's": ({"batch_first": False}, {"heads": 4}, LETTERS, LETTERS[:12]),
    "norm_first, gelu, without bias": (
        {"norm_first": True, "activation": "gelu", "bias": False, "shared": True, "tied": True},
        {"heads": 4, "norm_first": True, "activation": "gelu", "target_vocabulary": None, "source_start": False},
        WORDS,
        WORDS,
    ),
    "learned positions, no final norm, sources without start and end": (
        {"final": False, "tied": True, "scaled": False, "table": torch.randn(40, 16)},
        {
            "heads": 4,
            "scale_embeddings": False,
            "source_start": False,
            "source_end": False,
            "names": {"output": "generator"},
        },
        [word for word in WORDS if word not in ("<bos>", "<eos>")],
        OTHER,
    ),
}


def save(folder, model, description, sources, targets):
    """Save a checkpoint with its description."""
    folder.mkdir(exist_ok=True)
    torch.save({"epoch": 3, "model_state_dict": model.state_dict()}, folder / "model.pt")
    (folder / "source.txt").write_text("\n".join(sources) + "\n")
    content = {"source_vocabulary": "source.txt", "target_vocabulary": targets} | description
    (folder / "model.json").write_text(json.dumps({key: value for key, value in content.items() if value is not None}))
    return folder


@pytest.mark.parametrize("variant", VARIANTS)
def test_tokens_probabilities_greedy_and_beam_are_those_of_pytorch(variant, tmp_path):
    options, description, sources, targets = VARIANTS[variant]
    torch.manual_seed(1)
    model = Tutorial((len(sources), len(targets)), **options)
    import_model(save(tmp_path / "theirs", model, description, sources, targets), tmp_path / "run")
    ours = Translator.load(tmp_path / "run", "cpu", "torch")
    shape = ours.model.options
    assert shape.norm == (
        "pre" if options.get("norm_first") else "post-final" if options.get("final", True) else "post"
    )
    assert (shape.share_embeddings, shape.tie_output) == (options.get("shared", False), options.get("tied", False))
    space, generator = "" if sources is LETTERS else " ", random.Random(2)
    searched = DecodingOptions(max_length_ratio=0, max_length_extra=8, max_loops=0)
    with torch.no_grad():
        for number in range(10):
            words = generator.choices(
                [word for word in sources[2:] if word not in NOT_WORDS], k=generator.randint(1, 7)
            )
            if number == 0:
                words = ["ä", "ö", *words]  # two that the vocabulary lacks
            rows = [sources.index(word) if word in sources else UNK for word in words]
            if description.get("source_start", True):
                rows.insert(0, BOS)
            if description.get("source_end", True):
                rows.append(EOS)
            (ids,) = ours.tokenizer.encode_source([space.join(words)])
            source = torch.tensor([[*ids, SPECIAL.end]])
            for beam in (1, 3):
                expected = beam_search(model, rows, beam, 8)
                ((found,),) = search(ours.model, source, searched.model_copy(update={"beam": beam}))
                pieces = [piece.removeprefix("▁") or " " for piece in ours.tokenizer.target_pieces(found.tokens)]
                assert [piece.replace("⁇", "<unk>") for piece in pieces] == [targets[row] for row in expected]
            logits = ours.model(source, torch.tensor([[SPECIAL.start, *found.tokens]]))[0].log_softmax(-1)
            theirs = model.log_probs(rows, [BOS, *expected])
            torch.testing.assert_close(logits[:, SPECIAL.end], theirs[:, EOS], rtol=0, atol=1e-4)


def test_ctranslate2_and_onnx_translate_the_same_and_the_export_can_be_imported(tmp_path):
    options, description, sources, targets = VARIANTS["the tutorial's"]
    torch.manual_seed(3)
    model = Tutorial((len(sources), len(targets)), **options)
    import_model(save(tmp_path / "theirs", model, description, sources, targets), tmp_path / "run")
    texts = ["ab cd", "h-g f", "aaaa"]
    ours = {
        engine: [result.text for result in Translator.load(tmp_path / "run", "cpu", engine).translate(texts, beam=3)]
        for engine in ("torch", "ctranslate2", "onnx")
    }
    assert ours["torch"] == ours["ctranslate2"] == ours["onnx"]
    export = CliRunner().invoke(app, ["export", str(tmp_path / "run"), str(tmp_path / "ct2"), "--to", "ctranslate2"])
    assert export.exit_code == 0, export.output
    import_model(tmp_path / "ct2", tmp_path / "again")
    again = Translator.load(tmp_path / "again", "cpu", "torch")
    assert [result.text for result in again.translate(texts, beam=3)] == ours["torch"]


@pytest.mark.parametrize(
    ("cutting", "text", "words"),
    [
        ("spaces", " A  man,\tin ", ["A", "man,", "in"]),
        (
            "basic_english",
            'A "man" (in) Don\'t; <br />x.y',
            ["a", "man", "(", "in", ")", "don", "'", "t", "x", ".", "y"],
        ),
        ("spacy_en", "A man's T-shirt, isn't it?", ["A", "man", "'s", "T", "-", "shirt", ",", "is", "n't", "it", "?"]),
        ("spacy_de", "Ein T-Shirt „neu“.", ["Ein", "T-Shirt", "„", "neu", "“", "."]),
    ],
)
def test_texts_are_cut_as_the_description_says(cutting: Cutting, text, words):
    names = [*SPELLINGS, *dict.fromkeys(f"▁{word}" for word in words)]
    processor = _processor(listed_model(names, _rules(cutting, lower=False), words=True))
    assert processor.encode(text, out_type=str) == [f"▁{word}" for word in words]
    assert processor.encode([text]) == [[names.index(f"▁{word}") for word in words]]


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    _, description, sources, targets = VARIANTS["the tutorial's"]
    model = Tutorial((len(sources), len(targets)))
    return save(tmp_path_factory.mktemp("tutorial") / "theirs", model, description, sources, targets)


def test_the_command_prints_guesses_and_reads_yaml_beside_the_weights(theirs, tmp_path):
    state = torch.load(theirs / "model.pt")["model_state_dict"]
    torch.save({f"module.{name}": tensor for name, tensor in state.items()}, tmp_path / "epoch-3.pth")
    description = {"source_vocabulary": LETTERS, "target_vocabulary": LETTERS[:12], "lower_case": True}
    (tmp_path / "epoch-3.yaml").write_text(yaml.safe_dump(description))
    done = CliRunner().invoke(app, ["import", str(tmp_path / "epoch-3.pth"), str(tmp_path / "run")])
    assert done.exit_code == 0, done.output
    for guess in (
        "heads: 8",
        "norm_first: false",
        "names.output: generator.weight",
        "tokenization: source characters, target characters",
        "special_tokens: unknown <unk>, pad <pad>, start <bos>, end <eos>",
    ):
        assert guess in done.output
    assert "lower_case:" not in done.output
    tokenizer = Translator.load(tmp_path / "run", "cpu", "torch").tokenizer
    assert tokenizer.encode_source(["ABC"]) == tokenizer.encode_source(["abc"])


class Malicious:
    """A value whose unpickling writes a file."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return open, (str(self.file), "w")


def change(folder, **changes):
    file = folder / "model.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def change_state(folder, edit):
    checkpoint = torch.load(folder / "model.pt")
    edit(checkpoint["model_state_dict"])
    torch.save(checkpoint, folder / "model.pt")


LAYER = "transformer.encoder.layers.1"
BAD = {
    "a heading": (lambda f: change(f, head=4), r"model.json: there is no key 'head'. Did you mean 'heads'"),
    "heads": (lambda f: change(f, heads="four"), r"heads: Input should be a valid integer.*, not 'four'"),
    "seven heads": (lambda f: change(f, heads=7), r"heads=7 do not divide width=16"),
    "activation": (lambda f: change(f, activation="tanh"), r"activation: Input should be 'relu' or 'gelu'"),
    "source_end": (lambda f: change(f, source_end="never"), r"source_end: Input should be a valid boolean"),
    "no weights": (lambda f: (f / "model.pt").unlink(), r"0 files of weights have its name"),
    "weights elsewhere": (lambda f: change(f, weights="../x.pt"), r"names '../x.pt', which is not in its folder"),
    "missing": (
        lambda f: change_state(f, lambda s: (s.pop(f"{LAYER}.linear1.weight"), s.pop(f"{LAYER}.norm1.bias"))),
        rf"has no {LAYER}.norm1.bias; has no {LAYER}.linear1.weight",
    ),
    "extra": (
        lambda f: change_state(f, lambda s: s.update({"adapter.down": torch.ones(3)})),
        r"does not fit `nn.Transformer`: adapter.down is not part of the model",
    ),
    "shape": (
        lambda f: change_state(f, lambda s: s.update({f"{LAYER}.linear1.weight": torch.ones(3, 16)})),
        rf"{LAYER}.linear1.weight is \[3, 16\], not \[24, 16\]",
    ),
    "NaN": (
        lambda f: change_state(f, lambda s: s[f"{LAYER}.linear1.weight"].fill_(math.nan)),
        r"not finite numbers: encoder.1.feed_forward.inner.weight",
    ),
    "no decoder": (
        lambda f: change_state(f, lambda s: [s.pop(n) for n in [*s] if "decoder" in n]),
        r"has 0 stacks of `nn.Transformer` layers for the decoder",
    ),
    "one final norm": (
        lambda f: change_state(f, lambda s: [s.pop(f"transformer.decoder.norm.{n}") for n in ("weight", "bias")]),
        r"has a final norm on one side only",
    ),
    "vocabulary": (
        lambda f: change(f, target_vocabulary=LETTERS[:11]),
        r"target_vocabulary has 11 entries, and there are 12 embeddings",
    ),
    "twice": (lambda f: change(f, target_vocabulary=[*LETTERS[:11], "a"]), r"has the entry 'a' twice"),
    "no start": (
        lambda f: change(f, special_tokens={"start": "<start>"}),
        r"special_tokens.start: the vocabularies do not have <start>",
    ),
    "no end in the target": (
        lambda f: change(f, special_tokens={"end": "</s>"}, source_end=False),
        r"special_tokens.end: target_vocabulary does not have </s>",
    ),
    "a name": (lambda f: change(f, names={"output": "head"}), r"there is no matrix 'head.weight' with 16 columns"),
    "not JSON": (lambda f: (f / "model.json").write_text("{"), r"model.json: is not JSON"),
    "truncated": (
        lambda f: (f / "model.pt").write_bytes((f / "model.pt").read_bytes()[:-5000]),
        r"model.pt: holds more than weights, or is damaged|model.pt: is damaged or cut short",
    ),
    "a module": (lambda f: torch.save(nn.Linear(2, 2), f / "model.pt"), r"model.pt: holds more than weights"),
}


def refuse_in_one_line(theirs, tmp_path, damage, message):
    """Damage a copy of a model's folder, and check that its import fails with one line."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    for file in theirs.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    damage(folder)
    with pytest.raises(UserError, match=message) as error:
        import_model(folder, tmp_path / "run")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("case", BAD)
def test_bad_models_are_refused_in_one_line(case, theirs, tmp_path):
    refuse_in_one_line(theirs, tmp_path, *BAD[case])
    assert not (tmp_path / "run" / "config.yaml").exists()


@pytest.mark.parametrize("write", [torch.save, lambda value, file: file.write_bytes(pickle.dumps(value))])
def test_a_malicious_pickle_is_never_executed(write, theirs, tmp_path):
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "model.json").write_bytes((theirs / "model.json").read_bytes())
    (folder / "source.txt").write_bytes((theirs / "source.txt").read_bytes())
    write({"model_state_dict": Malicious(tmp_path / "executed")}, folder / "model.pt")
    with pytest.raises(UserError, match="holds more than weights"):
        import_model(folder, tmp_path / "run")
    assert not (tmp_path / "executed").exists()


def test_weights_without_a_description_say_what_is_missing(theirs, tmp_path):
    (tmp_path / "epoch.pt").write_bytes((theirs / "model.pt").read_bytes())
    with pytest.raises(UserError, match=r"has no description beside it, one of epoch.yaml, epoch.yml, epoch.json"):
        import_model(tmp_path / "epoch.pt", tmp_path / "run")
