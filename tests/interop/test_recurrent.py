"""Recurrent models of other programs: tiny ones, computed by PyTorch's modules as those programs compute them."""

import io
import json
import os
import pickle
import re
import shutil
import string
import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from translucid import Translator
from translucid.cli.main import run as run_command
from translucid.ground.errors import UserError
from translucid.interop import kind_of
from translucid.interop.importing import import_model
from translucid.interop.recurrent import word_list
from translucid.runs.run_folder import RunFolder

TOKENS = ["<PAD>", "<BOS>", "<EOS>", "<UNK>", "<UNK_COUNTRY>", "<EG>", "<ROLE_GIVEN>", "<ROLE_UNKNOWN>", *" abcAé"]
WIDTH = 8


class Lang:
    """The word list of PyTorch's tutorial."""

    def __init__(self, words):
        self.word2index = {word: row for row, word in enumerate(words, 2)}
        self.index2word = {0: "SOS", 1: "EOS"} | {row: word for word, row in self.word2index.items()}
        self.n_words = len(words) + 2


class Malicious:
    """Its pickle makes a folder when it is loaded."""

    def __init__(self, folder):
        self.folder = str(folder)

    def __reduce__(self):
        return os.mkdir, (self.folder,)


class Romanizer(nn.Module):
    """The modules of arabic-name-romanizer."""

    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(len(TOKENS), WIDTH)
        self.encoder = nn.GRU(WIDTH, WIDTH // 2, 2, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(WIDTH, WIDTH)
        self.decoder = nn.GRU(WIDTH, WIDTH, 2, batch_first=True)
        self.query = nn.Linear(WIDTH, WIDTH, bias=False)
        self.combine = nn.Linear(2 * WIDTH, WIDTH)
        self.out = nn.Linear(WIDTH, len(TOKENS))


class Encoder(nn.Module):
    """Its first graph."""

    def __init__(self, model):
        super().__init__()
        self.m = model

    def forward(self, source, mask):
        memory, _ = self.m.encoder(self.m.emb(source))
        read = (~mask)[..., None].float()
        mean = (memory * read).sum(1) / read.sum(1).clamp(min=1.0)
        return memory, mask, torch.tanh(self.m.bridge(mean))[:, None].expand(-1, 2, -1)


class Decoder(nn.Module):
    """Its second graph, one step."""

    def __init__(self, model):
        super().__init__()
        self.m = model

    def forward(self, prefix, memory, mask, hidden):
        x, after = self.m.emb(prefix[:, -1]), []
        for layer in range(2):
            w, u, b, c = (getattr(self.m.decoder, f"{name}_l{layer}") for name in GRU)
            reset, update, new = F.linear(x, w, b).chunk(3, 1)
            reset_state, update_state, new_state = F.linear(hidden[:, layer], u, c).chunk(3, 1)
            update = torch.sigmoid(update + update_state)
            new = torch.tanh(new + torch.sigmoid(reset + reset_state) * new_state)
            x = (1 - update) * new + update * hidden[:, layer]
            after.append(x)
        h = x[:, None]
        scores = (self.m.query(h) @ memory.transpose(1, 2)).masked_fill(mask[:, None], -1e9)
        context = torch.softmax(scores, -1) @ memory
        features = torch.tanh(self.m.combine(torch.cat([h, context], -1)))
        return torch.log_softmax(self.m.out(features[:, -1]), -1), torch.stack(after, 1)


GRU = "weight_ih", "weight_hh", "bias_ih", "bias_hh"


def scaled(module):
    """Return a module with larger random weights, so that its outputs depend on its inputs."""
    torch.manual_seed(1)
    for parameter in module.parameters():
        parameter.data.normal_(std=1.3)
    return module.eval()


@pytest.fixture(scope="module")
def romanizer(tmp_path_factory):
    """Return a folder with graphs, and the modules that they are made of."""
    folder, model = tmp_path_factory.mktemp("romanizer"), scaled(Romanizer())
    source = torch.tensor([[5, 6, 9, 10, 2]])
    inputs = source, source == 0
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # only the former exporter of PyTorch writes such graphs
        state = Encoder(model)(*inputs)
        torch.onnx.export(Encoder(model), inputs, folder / "encoder.onnx", dynamo=False)
        torch.onnx.export(Decoder(model), (source[:, :1], *state), folder / "decoder.onnx", dynamo=False)
    (folder / "vocab.json").write_text(json.dumps({"tokens": TOKENS}))
    (folder / "meta.json").write_text(json.dumps({"arch": "gru", "beam_width": 2, "max_tgt_len": 9}))
    return folder, model


def loaded(folder):
    run = RunFolder(folder)
    configuration, tokenizer = run.configuration(), run.tokenizer()
    return run.load_sequence_model(configuration, tokenizer), configuration, tokenizer


@torch.no_grad()
def test_a_romanizer_computes_the_same(romanizer, tmp_path):
    folder, theirs = romanizer
    imported, _ = import_model(folder, tmp_path / "run")
    model, configuration, tokenizer = loaded(tmp_path / "run")
    assert imported.kind == "arabic-name-romanizer"
    decoding = configuration.decoding
    assert (decoding.beam, decoding.length_penalty, decoding.max_length_extra) == (2, 1.5, 9)
    languages = configuration.data.tokenizer.languages
    assert [*languages] == ["ar-Latn", "ar-Latn-given", "ar-Latn-EG", "ar-Latn-EG-given"]
    rows = [TOKENS.index(name.replace("▁", " ")) for name in tokenizer.target_vocabulary[4:]]
    rows = [0, 3, 1, 2, *rows]  # of our ids
    # `é` in two code points; an upper-case letter and an Arabic vowel point that the vocabulary lacks.
    for code, text, read in (("ar-Latn-EG-given", "ab c", "ab c"), ("ar-Latn", "e\u0301bCc\u064e", "ébcc")):
        tags = {"ar-Latn": ["<UNK_COUNTRY>", "<ROLE_UNKNOWN>"]}.get(code, ["<EG>", "<ROLE_GIVEN>"])
        their_source = torch.tensor([[TOKENS.index(token) for token in (*tags, *read, "<EOS>")]])
        opened = tokenizer.between(None, code, configuration.data.tokenizer)
        (our_source,) = opened.encode_source([text])
        assert [rows[i] for i in (*our_source, 3)] == their_source[0].tolist()
        memory, mask, hidden = Encoder(theirs)(their_source, their_source == 0)
        target = [2, 8, 9, 11, 4]
        logits = model(torch.tensor([[*our_source, 3]]), torch.tensor([target]))[0]
        for token, ours in zip(target, logits, strict=True):
            expected, hidden = Decoder(theirs)(torch.tensor([[rows[token]]]), memory, mask, hidden)
            assert not ours.softmax(-1)[0], "padding is written"
            expected[:, 0] = -torch.inf  # as in its search
            torch.testing.assert_close(ours.softmax(-1), expected[0, rows].softmax(-1), atol=1e-5, rtol=1e-4)


def test_a_multilingual_recurrent_model_is_only_exported_to_onnx(romanizer, tmp_path, capsys):
    import_model(romanizer[0], tmp_path / "run")
    assert run_command(["export", str(tmp_path / "run"), str(tmp_path / "out"), "--to", "marian"]) == 2
    assert capsys.readouterr().err.endswith("no language pieces. Use --to onnx.\n")


def tutorial(rows):
    """Return the encoder and the decoder of PyTorch's tutorial, and cn2en's way to translate rows of words."""
    parts = {
        "encoder": nn.ModuleDict({"embedding": nn.Embedding(rows[0], WIDTH), "gru": nn.GRU(WIDTH, WIDTH)}),
        "decoder": nn.ModuleDict(
            {
                "embedding": nn.Embedding(rows[1], WIDTH),
                "gru": nn.GRU(WIDTH, WIDTH),
                "out": nn.Linear(WIDTH, rows[1]),
            }
        ),
    }
    scaled(nn.ModuleList(parts.values()))
    encoder, decoder = parts.values()

    def translate(source):
        _, hidden = encoder["gru"](encoder["embedding"](torch.tensor(source)))
        token, written = 0, []
        while len(written) < 12:
            output, hidden = decoder["gru"](F.relu(decoder["embedding"](torch.tensor([token]))), hidden)
            token = int(decoder["out"](output[0]).argmax())
            if token == 1:
                break
            written.append(token)
        return written

    return parts, translate


@pytest.fixture
def cn2en(tmp_path):
    folder = tmp_path / "cn2en"
    folder.mkdir()
    lists = Lang([*"那是誰？", "", "tom's"]), Lang(["who", "", "is", "that", "?", "'"])
    parts, translate = tutorial([words.n_words for words in lists])
    states = {name: part.state_dict() for name, part in parts.items()}
    torch.save(states | {"learning_rate": 0.01}, folder / "model.pth")
    for words, name, protocol in zip(lists, ("input", "output"), (4, 2), strict=True):
        (folder / f"{name}_lang.pkl").write_bytes(pickle.dumps(words, protocol))
    return folder, lists, translate, states


@torch.no_grad()
def test_cn2en_translates_the_same_and_skips_unknown_words(cn2en, tmp_path):
    folder, (source, target), translate, _ = cn2en
    import_model(folder, tmp_path / "run")
    translator = Translator.load(tmp_path / "run", engine="torch")
    outputs = set()
    for text, words in (
        ("那是誰？", "那 是 誰 ？"),
        ("誰是誰是那", "誰 是 誰 是 那"),
        ("Tom's  誰？？", "tom's 誰 ？ ？"),
        ("X那Y 是 tom's2龘", "那 是 tom's"),
        ("龘", ""),
    ):
        rows = translate([*(source.word2index[word] for word in words.split()), 1])
        theirs = " ".join(target.index2word[row] for row in rows)
        ours = translator.translate(text, split=False, max_length_extra=12).text
        assert ours.split() == theirs.split()
        outputs.add(theirs)
    assert len(outputs) > 3, "the outputs do not depend on the sources: this tests nothing"


def g2p_arrays():
    sizes = {"enc_emb": (29, WIDTH), "dec_emb": (74, WIDTH), "fc_w": (74, WIDTH), "fc_b": (74,)}
    for side in ("enc", "dec"):
        sizes |= {f"{side}_{name}": (3 * WIDTH, WIDTH) for name in ("w_ih", "w_hh")}
        sizes |= {f"{side}_{name}": (3 * WIDTH,) for name in ("b_ih", "b_hh")}
    random = np.random.default_rng(4)
    return {name: random.normal(size=size).astype(np.float32) for name, size in sizes.items()}


def test_g2p_writes_the_same_sounds(tmp_path):
    arrays = g2p_arrays()
    np.savez(tmp_path / "checkpoint20.npz", **arrays)
    assert kind_of(tmp_path) == kind_of(tmp_path / "checkpoint20.npz") == "g2p"
    import_model(tmp_path, tmp_path / "run")
    model, _, tokenizer = loaded(tmp_path / "run")
    assert tokenizer.target_vocabulary[4:7] == ["▁AA0", "▁AA1", "▁AA2"] and len(tokenizer.target_vocabulary) == 74

    def cell(side, x, h):
        w, u, b, c = (arrays[f"{side}_{name}"].astype(float) for name in ("w_ih", "w_hh", "b_ih", "b_hh"))
        (r, z, n), (hr, hz, hn) = np.split(w @ x + b, 3), np.split(u @ h + c, 3)
        r, z = 1 / (1 + np.exp(-r - hr)), 1 / (1 + np.exp(-z - hz))
        return (1 - z) * np.tanh(n + r * hn) + z * h

    letters = ["<pad>", "<unk>", "</s>", *string.ascii_lowercase]
    h = np.zeros(WIDTH)
    for letter in (*"cafe", "<unk>", "</s>"):
        h = cell("enc", arrays["enc_emb"][letters.index(letter)], h)
    target = [2, 20, 73]
    (source,) = tokenizer.encode_source(["CAFÉ'"])
    with torch.no_grad():
        logits = model(torch.tensor([[*source, 3]]), torch.tensor([target]))[0].double()
    for token, ours in zip(target, logits, strict=True):
        h = cell("dec", arrays["dec_emb"][token], h)
        np.testing.assert_allclose(ours, arrays["fc_w"] @ h + arrays["fc_b"], atol=1e-4)


def refused(folder, tmp_path, message):
    with pytest.raises(UserError, match=message) as error:
        import_model(folder, tmp_path / "out")
    assert "\n" not in str(error.value) and not (tmp_path / "out").exists()


def test_damaged_files_are_refused_with_one_line(cn2en, tmp_path):
    folder, _, _, states = cn2en
    changes = [
        ({"gru.weight_ih_l0": None}, "encoder.gru.weight_ih_l0 is missing"),
        ({"gru.bias_ih_l1": torch.ones(3)}, "encoder.gru.bias_ih_l1 is unknown"),
        ({"gru.bias_hh_l0": torch.full((3 * WIDTH,), torch.nan)}, "not finite numbers: encoder.gru.bias_hh_l0"),
        ({"gru.bias_hh_l0": torch.ones(4)}, r"encoder.gru.bias_hh_l0 of the shape \[4\], not \[24\]"),
        ({"embedding.weight": torch.ones(5, WIDTH)}, r"input_lang.pkl: has 8 words.*embeddings are \[5, 8\]"),
        ({"gru.weight_ih_l0": torch.zeros(3 * WIDTH, WIDTH)}, "can't skip unknown words"),
    ]
    for change, message in changes:
        encoder = {name: tensor for name, tensor in (states["encoder"] | change).items() if tensor is not None}
        torch.save(states | {"encoder": encoder}, folder / "model.pth")
        refused(folder, tmp_path, message)
    torch.save({"encoder": 1}, folder / "model.pth")
    refused(folder, tmp_path, "holds more than weights")
    torch.save(states, folder / "model.pth")
    whole = (folder / "model.pth").read_bytes()
    (folder / "model.pth").write_bytes(whole[: len(whole) // 2])
    refused(folder, tmp_path, "model.pth: ")
    arrays = g2p_arrays() | {"fc_b": np.full(74, np.inf, np.float32)}
    del arrays["dec_w_hh"]
    np.savez(tmp_path / "model.npz", **arrays)
    refused(tmp_path / "model.npz", tmp_path, "does not have the weights of this model: dec_w_hh is missing")


def test_nothing_is_unpickled(cn2en, tmp_path):
    folder, _, _, states = cn2en
    file, made = folder / "input_lang.pkl", tmp_path / "made"
    good = file.read_bytes()
    state = io.BytesIO()
    pickle.Pickler(state).dump({"word2index": {"a": 2}, "n_words": 3, "x": Malicious(made)})
    for content, message in (
        (pickle.dumps(Malicious(made)), r"needs posix.mkdir, which is not executed"),
        (pickle.dumps(Malicious(made), 0), r"which is not executed"),
        (state.getvalue(), "is not executed"),
        (good[:-40], "is damaged|is cut short"),
        (good[:100] + b"\xff" + good[101:], "input_lang.pkl: "),
        (b"", "is damaged|is cut short"),
        (b".", "is damaged"),
        (pickle.dumps({"word2index": {"a": 3}}), "does not number its words from 2 on"),
        (pickle.dumps({"word2index": {"a": "b"}}), "is no list of words"),
        (pickle.dumps({"a": 2}), "is no list of words"),
        (pickle.dumps([1.5]), "has the pickle operation EMPTY_LIST, which is not followed"),
    ):
        file.write_bytes(content)
        with pytest.raises(UserError, match=message):
            word_list(file)
    file.write_bytes(good)
    torch.save(states | {"loss": Malicious(made)}, folder / "model.pth")
    refused(folder, tmp_path, "holds more than weights, or is damaged")
    (folder / "model.pth").write_bytes(pickle.dumps(Malicious(made), 4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # PyTorch warns of the protocol, in three further lines of output
        refused(folder, tmp_path, "holds more than weights, or is damaged")
    assert not made.exists()


def test_other_graphs_and_folders_are_refused_with_one_line(romanizer, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(romanizer[0], folder)
    decoder, meta, vocabulary = (folder / name for name in ("decoder.onnx", "meta.json", "vocab.json"))
    whole = decoder.read_bytes()
    for file, content, message in (
        (decoder, whole[:300], "decoder.onnx: is no ONNX graph, or is cut short"),
        (decoder, (folder / "encoder.onnx").read_bytes(), r"other operations than a GRU with Luong's attention: 2 GRU"),
        (meta, b'{"arch": "transformer"}', r"meta.json: arch='transformer' is not supported"),
        (vocabulary, b'{"tokens": ["a"]}', "does not begin with the special tokens"),
        (vocabulary, json.dumps({"tokens": TOKENS[:-1]}).encode(), r"has 13 tokens, and the embeddings are \[14, 8\]"),
    ):
        original = file.read_bytes()
        file.write_bytes(content)
        refused(folder, tmp_path, message)
        file.write_bytes(original)
    vocabulary.unlink()
    refused(folder, tmp_path, re.escape("(it has decoder.onnx, encoder.onnx, meta.json). Hugging Face's have"))


def test_the_published_romanizer_writes_what_its_graphs_write(real_data, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    folder = real_data.parent / "models" / "arabic-name-romanizer"
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    import_model(folder, tmp_path / "run")
    translator = Translator.load(tmp_path / "run", engine="torch").between("ar", "ar-Latn-EG-surname")
    encoder, decoder = (runtime.InferenceSession(folder / f"{name}.onnx") for name in ("encoder", "decoder"))
    tokens = json.loads((folder / "vocab.json").read_text())["tokens"]
    for name in ("محمد", "الزهراني", "عبد الرحمن"):
        source = np.array([[tokens.index(token) for token in ("<EG>", "<ROLE_SURNAME>", *name, "<EOS>")]])
        memory, mask, hidden = encoder.run(None, {"src": source, "src_mask": source == 0})
        written = ["<BOS>"]
        while written[-1] != "<EOS>":
            prefix = np.array([[tokens.index(written[-1])]])
            inputs = {"prefix": prefix, "memory": memory, "src_mask": mask, "hidden": hidden}
            log_probs, hidden = decoder.run(None, inputs)
            written.append(tokens[log_probs.argmax()])
        assert translator.translate(name, beam=1).text == "".join(written[1:-1])
