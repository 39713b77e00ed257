"""The Transformers of the Keras and TensorFlow tutorials become runs; Keras on PyTorch is the oracle."""

import json
import os
import random
import zipfile

import pytest
import torch

os.environ.setdefault("KERAS_BACKEND", "torch")
keras = pytest.importorskip("keras")
h5py = pytest.importorskip("h5py")
from keras import layers, ops  # noqa: E402

from tests.interop.test_pytorch import refuse_in_one_line  # noqa: E402
from translucid.api.translator import Translator  # noqa: E402
from translucid.decoding.decoding_options import DecodingOptions  # noqa: E402
from translucid.decoding.search import search  # noqa: E402
from translucid.ground.special import SPECIAL  # noqa: E402
from translucid.interop.importing import import_model  # noqa: E402
from translucid.layers.positions import sinusoidal_positions  # noqa: E402

ENGLISH = ["", "[UNK]", "[start]", "[end]", "a", "man", "in", "the", "hat", "dog"]
SPANISH = ["", "[UNK]", "[start]", "[end]", "un", "hombre", "con", "sombrero", "el", "perro", "grande"]
WIDTH, INNER, HEADS, LONGEST = 12, 20, 3, 16


def attention():
    """Return attention whose heads are as wide as the model."""
    return layers.MultiHeadAttention(num_heads=HEADS, key_dim=WIDTH)


def dense():
    return keras.Sequential([layers.Dense(INNER, activation="relu"), layers.Dense(WIDTH)])


class PositionalEmbedding(layers.Layer):
    def __init__(self, size, **options):
        super().__init__(**options)
        self.token_embeddings, self.position_embeddings = (layers.Embedding(n, WIDTH) for n in (size, LONGEST))

    def call(self, ids):
        return self.token_embeddings(ids) + self.position_embeddings(ops.arange(ops.shape(ids)[-1]))


class TransformerEncoder(layers.Layer):
    def __init__(self, **options):
        super().__init__(**options)
        self.attention, self.dense_proj = attention(), dense()
        self.layernorm_1, self.layernorm_2 = layers.LayerNormalization(), layers.LayerNormalization()

    def call(self, x):
        x = self.layernorm_1(x + self.attention(x, x))
        return self.layernorm_2(x + self.dense_proj(x))


class TransformerDecoder(layers.Layer):
    def __init__(self, **options):
        super().__init__(**options)
        self.attention_1, self.attention_2, self.dense_proj = attention(), attention(), dense()
        self.layernorm_1, self.layernorm_2, self.layernorm_3 = (layers.LayerNormalization() for _ in range(3))

    def call(self, inputs):
        x, states = inputs
        x = self.layernorm_1(x + self.attention_1(x, x, use_causal_mask=True))
        x = self.layernorm_2(x + self.attention_2(x, states))
        return self.layernorm_3(x + self.dense_proj(x))


def keras_io():
    """Return a model with the layers of the tutorial on keras.io."""
    source, target = (keras.Input((None,), dtype="int64", name=f"{side}_inputs") for side in ("encoder", "decoder"))
    states = TransformerEncoder()(TransformerEncoder()(PositionalEmbedding(len(ENGLISH))(source)))
    x = TransformerDecoder()([PositionalEmbedding(len(SPANISH))(target), states])
    output = layers.Dense(len(SPANISH), activation="softmax")(layers.Dropout(0.5)(x))
    return keras.Model([source, target], output, name="transformer")


class TensorFlowPositions(layers.Layer):
    def __init__(self, size):
        super().__init__()
        self.embedding = layers.Embedding(size, WIDTH)
        self.pos_encoding = sinusoidal_positions(LONGEST, WIDTH, kind="sinusoidal-halves")

    def call(self, ids):
        return self.embedding(ids) * WIDTH**0.5 + self.pos_encoding[: ids.shape[1]]


class Attention(layers.Layer):
    def __init__(self, causal=False):
        super().__init__()
        self.mha, self.layernorm, self.causal = attention(), layers.LayerNormalization(), causal

    def call(self, x, context):
        return self.layernorm(x + self.mha(x, context, use_causal_mask=self.causal))


class FeedForward(layers.Layer):
    def __init__(self):
        super().__init__()
        self.seq, self.layer_norm = dense(), layers.LayerNormalization()

    def call(self, x):
        return self.layer_norm(x + self.seq(x))


class EncoderLayer(layers.Layer):
    def __init__(self):
        super().__init__()
        self.self_attention, self.ffn = Attention(), FeedForward()

    def call(self, x):
        return self.ffn(self.self_attention(x, x))


class DecoderLayer(layers.Layer):
    def __init__(self):
        super().__init__()
        self.causal_self_attention, self.cross_attention, self.ffn = Attention(causal=True), Attention(), FeedForward()

    def call(self, x, states):
        return self.ffn(self.cross_attention(self.causal_self_attention(x, x), states))


class Encoder(layers.Layer):
    def __init__(self):
        super().__init__()
        self.pos_embedding, self.enc_layers = TensorFlowPositions(len(ENGLISH)), [EncoderLayer() for _ in range(2)]

    def call(self, x):
        x = self.pos_embedding(x)
        for layer in self.enc_layers:
            x = layer(x)
        return x


class Decoder(layers.Layer):
    def __init__(self):
        super().__init__()
        self.pos_embedding, self.dec_layers = TensorFlowPositions(len(SPANISH)), [DecoderLayer() for _ in range(2)]

    def call(self, x, states):
        x = self.pos_embedding(x)
        for layer in self.dec_layers:
            x = layer(x, states)
        return x


class TensorFlowTransformer(keras.Model):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder, self.final_layer = Encoder(), Decoder(), layers.Dense(len(SPANISH))

    def call(self, inputs):
        return self.final_layer(self.decoder(inputs[1], self.encoder(inputs[0])))


def save(folder, model, name, **description):
    """Save a model with random weights and its description."""
    keras.utils.set_random_seed(3)
    model([torch.tensor([[4, 5]]), torch.tensor([[2, 4]])])
    generator = torch.Generator().manual_seed(1)
    for weight in model.weights:
        weight.assign(weight.value + 0.3 * torch.randn(tuple(weight.shape), generator=generator))
    folder.mkdir(exist_ok=True)
    (model.save if name.endswith(".keras") else model.save_weights)(folder / name)
    content = {"source_vocabulary": ENGLISH, "target_vocabulary": SPANISH, "tokenization": "text_vectorization"}
    (folder / "model.json").write_text(json.dumps({"weights": name, **content, **description}))
    return folder


@pytest.mark.parametrize(
    ("build", "name", "marked"),
    [
        (keras_io, "model.keras", False),
        (keras_io, "model.weights.h5", False),
        (TensorFlowTransformer, "model.weights.h5", True),
    ],
    ids=["keras.io", "keras.io weights", "tensorflow"],
)
def test_tokens_and_probabilities_are_those_of_keras(build, name, marked, tmp_path):
    model = build()
    imported, _ = import_model(save(tmp_path / "theirs", model, name), tmp_path / "run")
    assert "special_tokens: unknown [UNK], pad '', start [start], end [end]" in imported.guesses
    ours = Translator.load(tmp_path / "run", "cpu", "torch")
    options = ours.model.options
    assert (options.heads, options.head_width, options.norm_epsilon, options.norm) == (HEADS, WIDTH, 1e-3, "post")
    generator = random.Random(2)
    with torch.no_grad():
        for _ in range(6):
            words = generator.choices(ENGLISH[4:], k=generator.randint(1, 6))
            rows = [ENGLISH.index(word) for word in words]
            rows = [2, *rows, 3] if marked else rows
            written = [2]
            while len(written) < 9 and written[-1] != 3:
                output = model([torch.tensor([rows]), torch.tensor([written])])[0]
                log_probs = output.log_softmax(-1) if marked else output.log()
                allowed = log_probs[-1].clone()
                allowed[[0, 2] if len(written) > 1 else [0, 2, 3]] = -torch.inf  # our search never writes these
                written.append(int(allowed.argmax()))
            (ids,) = ours.tokenizer.encode_source([" ".join(words).upper() + "!"])
            source = torch.tensor([[*ids, SPECIAL.end]])
            greedy = DecodingOptions(beam=1, max_length_ratio=0, max_length_extra=8, max_loops=0)
            ((found,),) = search(ours.model, source, greedy)
            pieces = [piece.removeprefix("▁") for piece in ours.tokenizer.target_pieces(found.tokens)]
            assert pieces == [SPANISH[row] for row in written[1:] if row != 3][:8]
            logits = ours.model(source, torch.tensor([[SPECIAL.start, *found.tokens]]))[0].log_softmax(-1)
            count = min(len(logits), len(log_probs))
            torch.testing.assert_close(logits[:count, SPECIAL.end], log_probs[:count, 3], rtol=0, atol=2e-4)


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    return save(tmp_path_factory.mktemp("keras") / "theirs", keras_io(), "model.keras")


def rnn(folder):
    """Save a recurrent model, as in TensorFlow's tutorial "NMT with attention"."""
    source = keras.Input((None,), dtype="int64")
    x = layers.Bidirectional(layers.GRU(4, return_sequences=True), merge_mode="sum")(layers.Embedding(9, 4)(source))
    keras.Model(source, layers.MultiHeadAttention(1, 4)(x, x)).save(folder / "model.keras")


def zipped(folder, **files):
    with zipfile.ZipFile(folder / "model.keras", "w") as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "."), content)


def linked(folder):
    """Write a file whose array is in another file."""
    (folder / "secret").write_bytes(b"12345678")
    with h5py.File(folder / "model.weights.h5", "w") as file:
        file.create_dataset("layers/dense/vars/0", (2,), "f4", external=[(str(folder / "secret"), 0, 8)])
    settings = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps(settings | {"weights": "model.weights.h5"}))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (rnn, r"model.keras: has 0 encoder and 0 decoder blocks|encoder and \d decoder blocks of the tutorials"),
        (linked, r"layers/dense/vars/0 is no array of numbers in this file"),
        (lambda f: zipped(f, config__json="{}"), r"is damaged, or no file of Keras 3"),
        (
            lambda f: (f / "model.keras").write_bytes((f / "model.keras").read_bytes()[:-9000]),
            r"is damaged, or no file",
        ),
        (lambda f: change(f, heads=2), r"has 3 heads, not 2"),
        (lambda f: change(f, source_vocabulary=SPANISH), r"source_vocabulary has 11 entries, and there are 10 embed"),
    ],
)
def test_bad_files_are_refused_in_one_line(damage, message, theirs, tmp_path):
    refuse_in_one_line(theirs, tmp_path, damage, message)


def change(folder, **changes):
    file = folder / "model.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))
