"""Keras 3's functional Transformer as in textbooks: `python train_keras.py SIZE SECONDS`.

Post-norm blocks, MultiHeadAttention, masks from the embedding, a softmax output over every position, model.fit; every
sentence padded or cut to one length.
"""

import contextlib
import sys
import time

import keras
import numpy as np
from common import SIZES, START, load_pairs, peak_mib, report, versions, vocabulary
from keras import layers, ops
from numpy.typing import NDArray

SIZE, SECONDS = SIZES[sys.argv[1]], float(sys.argv[2])
LENGTH, WARM_UP = 50, 3
ENTRIES = len(vocabulary()) + 1
"""Shift all ids by one, because 0 is padding here."""


def positions() -> NDArray[np.float32]:
    angle = np.arange(LENGTH)[:, None] / 10000 ** (np.arange(0, SIZE.width, 2) / SIZE.width)
    return np.stack([np.sin(angle), np.cos(angle)], -1).reshape(LENGTH, SIZE.width).astype("float32")


def build() -> keras.Model:
    s = SIZE

    def around(x, y):  # type: ignore[no-untyped-def]
        return layers.LayerNormalization()(layers.Add()([x, layers.Dropout(s.dropout)(y)]))

    def attention():  # type: ignore[no-untyped-def]
        return layers.MultiHeadAttention(s.heads, s.width // s.heads)

    def feed_forward(x):  # type: ignore[no-untyped-def]
        return around(x, layers.Dense(s.width)(layers.Dense(s.feed_forward, activation="relu")(x)))

    def embedded(ids):  # type: ignore[no-untyped-def]
        return layers.Embedding(ENTRIES, s.width, mask_zero=True)(ids) + ops.convert_to_tensor(positions()[None])

    source, target = keras.Input((LENGTH,), dtype="int32"), keras.Input((LENGTH,), dtype="int32")
    x, y = embedded(source), embedded(target)
    for _ in range(s.layers):
        x = feed_forward(around(x, attention()(x, value=x)))
    for _ in range(s.layers):
        y = around(y, attention()(y, value=y, use_causal_mask=True))
        y = feed_forward(around(y, attention()(y, value=x)))
    model = keras.Model([source, target], layers.Dense(ENTRIES, activation="softmax")(y))
    model.compile(loss="sparse_categorical_crossentropy", optimizer="nadam", metrics=["accuracy"])
    return model


def fixed(rows: list[list[int]]) -> NDArray[np.int32]:
    table = np.zeros((len(rows), LENGTH), "int32")
    for i, row in enumerate(rows):
        cut = [number + 1 for number in row[:LENGTH]]
        table[i, : len(cut)] = cut
    return table


class Clock(keras.callbacks.Callback):
    """Stops the training after the measured period."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[float] = []

    def on_train_batch_end(self, batch, logs=None):  # type: ignore[no-untyped-def]
        self.times.append(time.perf_counter())
        if len(self.times) > WARM_UP + 2 and self.times[-1] - self.times[WARM_UP - 1] > SECONDS:
            raise StopIteration  # model.fit looks at stop_training at the end of an epoch only


def main() -> None:
    pairs = load_pairs("train")
    size = round(SIZE.tokens / np.mean([len(target) for _, target in pairs]))
    pick = [pairs[i] for i in np.random.default_rng(1).permutation(len(pairs))]
    labels = fixed([target for _, target in pick])
    inputs = [fixed([source for source, _ in pick]), fixed([[START, *target[:-1]] for _, target in pick])]
    model, clock = build(), Clock()
    with contextlib.suppress(StopIteration):
        model.fit(inputs, labels, batch_size=size, epochs=1, shuffle=False, verbose=0, callbacks=[clock])
    updates = len(clock.times) - WARM_UP
    tokens = int((labels[WARM_UP * size : (WARM_UP + updates) * size] != 0).sum())
    report(
        tokens_per_second=tokens / (clock.times[-1] - clock.times[WARM_UP - 1]),
        updates=updates,
        peak_mib=peak_mib(),
        parameters=model.count_params(),
        versions=versions("keras"),
    )


if __name__ == "__main__":
    main()
