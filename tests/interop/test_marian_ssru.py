"""Marian models with SSRU decoders, compared with float64 equations and with Marian itself."""

from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from tests.probes.engines import run_engine
from tests.probes.foreign import SHORT, marian_file, sentences
from translucid.api.translator import Translator
from translucid.ground.errors import UserError
from translucid.interop.importing import import_model
from translucid.interop.marian_export import export_marian

TEXTS = [pair[:12] for pair in sentences()]


@pytest.fixture(scope="module", params=["post", "pre"])
def imported_pair(request, tmp_path_factory):
    """A Marian model's folder, and a translator of the run that it was imported to."""
    folder = tmp_path_factory.mktemp(request.param)
    marian_file(folder / "theirs", norm=request.param, activation="relu", ssru=True)
    import_model(folder / "theirs", folder / "run")
    return folder / "theirs", Translator.load(folder / "run", "cpu", "torch")


def ids_of(translator):
    """Return source and target ids of some pairs, with end tokens."""
    return [pair.ids for pair in translator.pipeline.pairs(list(zip(*TEXTS, strict=True)))]


def log_probabilities(translator, source, target):
    """Return the log-probability of each target token; Marian has neither padding nor a start token to predict."""
    with torch.no_grad():
        logits = translator.model(torch.tensor([source]), torch.tensor([[2, *target[:-1]]]))[0]
    logits[:, [0, 2]] = -torch.inf
    return logits.log_softmax(-1)[torch.arange(len(target)), target].numpy()


class Equations:
    """A Transformer with an SSRU decoder as Marian computes it, in float64, from the arrays of its file."""

    def __init__(self, folder: Path) -> None:
        arrays = dict(np.load(folder / "model.npz"))
        self.settings = yaml.safe_load(arrays.pop("special:model.yml").tobytes().rstrip(b"\0"))
        self.arrays = {name: array.astype(np.float64) for name, array in arrays.items()}
        self.pre = self.settings["transformer-preprocess"] == "n"

    def linear(self, name, matrix, x):
        return x @ self.arrays[f"{name}_W{matrix}"] + self.arrays[f"{name}_b{matrix}"]

    def norm(self, name, x):
        suffix = "_pre" if f"{name}_ln_scale_pre" in self.arrays else ""
        scale, bias = self.arrays[f"{name}_ln_scale{suffix}"], self.arrays[f"{name}_ln_bias{suffix}"]
        return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * scale + bias

    def residual(self, name, x, sublayer):
        if self.pre:
            return x + sublayer(self.norm(name, x))
        return self.norm(name, x + sublayer(x))

    def attention(self, name, x, memory):
        query, key, value = self.linear(name, "q", x), self.linear(name, "k", memory), self.linear(name, "v", memory)
        width = query.shape[1] // self.settings["transformer-heads"]
        heads = []
        for first in range(0, query.shape[1], width):
            columns = slice(first, first + width)
            scores = np.exp(query[:, columns] @ key[:, columns].T / np.sqrt(width))
            heads.append(scores / scores.sum(-1, keepdims=True) @ value[:, columns])
        return self.linear(name, "o", np.concatenate(heads, -1))

    def ssru(self, name, x):
        values = x @ self.arrays[f"{name}_W"]
        forget = 1 / (1 + np.exp(-self.linear(name, "f", x)))
        cell, outputs = np.zeros(x.shape[1]), []
        for f, value in zip(forget, values, strict=True):
            cell = f * cell + (1 - f) * value
            outputs.append(np.maximum(cell, 0))
        return np.array(outputs)

    def feed_forward(self, name, x):
        return self.linear(name, "2", np.maximum(self.linear(name, "1", x), 0))

    def embedded(self, embeddings):
        width = embeddings.shape[1]
        wavelengths = 10000.0 ** (np.arange(width // 2) / (width // 2 - 1))
        angles = np.arange(len(embeddings))[:, None] / wavelengths
        return embeddings * np.sqrt(width) + np.concatenate([np.sin(angles), np.cos(angles)], -1)

    def log_probabilities(self, source, target):
        table = self.arrays["Wemb"]
        memory = self.embedded(table[source])
        for i in range(1, self.settings["enc-depth"] + 1):
            name = f"encoder_l{i}"
            memory = self.residual(f"{name}_self_Wo", memory, lambda x, n=name: self.attention(f"{n}_self", x, x))
            memory = self.residual(f"{name}_ffn_ffn", memory, lambda x, n=name: self.feed_forward(f"{n}_ffn", x))
        if self.pre:
            memory = self.norm("encoder_top", memory)
        x = self.embedded(np.concatenate([np.zeros((1, table.shape[1])), table[target[:-1]]]))
        for i in range(1, self.settings["dec-depth"] + 1):
            name = f"decoder_l{i}"
            rnn = f"{name}_rnn" if self.pre else f"{name}_rnn_ffn"
            x = self.residual(rnn, x, lambda x, n=name: self.ssru(f"{n}_rnn", x))
            x = self.residual(f"{name}_context_Wo", x, lambda x, n=name: self.attention(f"{n}_context", x, memory))
            x = self.residual(f"{name}_ffn_ffn", x, lambda x, n=name: self.feed_forward(f"{n}_ffn", x))
        if self.pre:
            x = self.norm("decoder_top", x)
        logits = x @ table.T + self.arrays["decoder_ff_logit_out_b"]
        normalized = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        return normalized[np.arange(len(target)), target]


def test_probabilities_are_those_of_the_equations(imported_pair, tmp_path):
    _, translator = imported_pair
    export_marian(translator.model, translator.tokenizer, tmp_path / "out", beam=1)
    equations = Equations(tmp_path / "out")
    rows = {3: 0, 1: 1}  # Marian's end and unknown token, by our ids

    def their_ids(ids):
        return [rows.get(number, number - 2) for number in ids]

    for source, target in ids_of(translator):
        expected = equations.log_probabilities(their_ids(source), their_ids(target))
        np.testing.assert_allclose(log_probabilities(translator, source, target), expected, atol=1e-4)


def test_weights_come_back_bit_by_bit(imported_pair, tmp_path):
    theirs, translator = imported_pair
    export_marian(translator.model, translator.tokenizer, tmp_path / "back", beam=5)
    before, after = np.load(theirs / "model.npz"), np.load(tmp_path / "back" / "model.npz")
    assert {*before.files} == {*after.files}
    for name in before.files:
        if name == "special:model.yml":
            settings = yaml.safe_load(after[name].tobytes().rstrip(b"\0"))
            assert (settings["transformer-decoder-autoreg"], settings["dec-cell"]) == ("rnn", "ssru")
            continue
        # Pieces that only SentencePiece knew were added to the vocabulary.
        slices = tuple(slice(length) for length in before[name].shape)
        np.testing.assert_array_equal(before[name], after[name][slices], err_msg=name)
    import_model(tmp_path / "back", tmp_path / "again")
    reimported = Translator.load(tmp_path / "again", "cpu", "torch")
    assert reimported.model.options == translator.model.options
    assert translator.model.options.decoder == "ssru"
    for name, weights in reimported.model.state_dict().items():
        ours = translator.model.state_dict()[name]
        kept_rows = slice(None) if len(ours) == ours.shape[-1] == 16 or len(ours) < 100 else [1, *range(3, len(ours))]
        assert torch.equal(weights[kept_rows], ours[kept_rows]), name


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dec-cell": "gru"}, "dec-cell='gru' is not supported"),
        ({"transformer-rnn-projection": True}, "transformer-rnn-projection=True is not supported"),
        ({"layer-normalization": True}, "layer-normalization=True is not supported"),
    ],
)
def test_other_recurrent_decoders_are_refused(tmp_path, changes, message):
    marian_file(tmp_path / "theirs", ssru=True, **changes)
    with pytest.raises(UserError, match=message):
        import_model(tmp_path / "theirs", tmp_path / "run")


MARIAN = """
import json, subprocess, sys
from pathlib import Path
from pymarian import Translator
folder, source, target = map(Path, sys.argv[1:])
command = [Path(sys.executable).with_name("pymarian"), "score", "-m", folder / "model.npz", "--cpu-threads", "1"]
vocabularies = [folder / "source.spm", folder / "target.spm"]
command += ["--quiet", "-v", *vocabularies, "-t", source, target]
scores = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
translator = Translator(config=str(folder / "decoder.yml"), beam_size=1, cpu_threads=1, quiet=True,
    quiet_translation=True, max_length_factor=3)
texts = translator.translate(source.read_text().rstrip("\\n")).split("\\n")
print(json.dumps([list(map(float, scores)), texts]))
"""


def test_marian_itself_scores_and_translates_alike(imported_pair, tmp_path):
    _, translator = imported_pair
    export_marian(translator.model, translator.tokenizer, tmp_path / "out", beam=1)
    for name, texts in zip(("source", "target"), TEXTS, strict=True):
        (tmp_path / name).write_text("".join(f"{text}\n" for text in texts))
    scores, texts = run_engine("pymarian", MARIAN, tmp_path / "out", tmp_path / "source", tmp_path / "target")
    ours = [log_probabilities(translator, *ids).sum() for ids in ids_of(translator)]
    np.testing.assert_allclose(scores, ours, atol=2e-4, rtol=3e-6)  # with random weights, sums reach hundreds of nats
    # With random weights, sentences do not end, so Marian's outputs are longer.
    for theirs, translation in zip(texts, translator.translate(TEXTS[0], beam=1, max_loops=0, **SHORT), strict=True):
        assert len(translation.text) > 5 and theirs.startswith(translation.text)
