"""Word alignments from the attention that CTranslate2 returns with a translation, against those of a second pass.

    python -m benchmarks.engine_attention runs/demo

Translates phrasebook sentences with a beam of 5, keeps the translations that are the reference, and measures tags and
the alignment error rate with their gold links. CTranslate2 averages the heads of one layer. Prints a table for
docs/tag-results.md.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import ctranslate2
import numpy as np

from benchmarks.tags import COUNT, score
from translucid.api.translator import Translator
from translucid.corpora.phrasebook import generate
from translucid.corpora.phrasebook.text import Phrase
from translucid.engines.ctranslate2 import convert
from translucid.evaluation.alignment_error import AlignmentOptions, Gold, alignment_score
from translucid.ground.special import SPELLINGS
from translucid.inspection.alignment import weights_of
from translucid.inspection.inspected import Inspected
from translucid.inspection.word_weights import WordWeights

BATCH = 32
BEAM = 5
SAME = 1e-3
"""The largest difference between two attention weights that are the same except for rounding."""


class Engine:
    """CTranslate2 with a model that returns the attention of one layer, averaged over its heads."""

    def __init__(self, translator: Translator, layer: int) -> None:
        """Convert the model."""
        tokenizer = translator.tokenizer
        self.sources = tokenizer.source_pieces(range(tokenizer.source_size))
        from_config = convert.specs.TransformerSpec.from_config

        def with_all_heads(*arguments: Any, **options: Any) -> Any:
            return from_config(*arguments, **options | {"alignment_heads": translator.configuration.model.heads})

        with (
            tempfile.TemporaryDirectory() as folder,
            patch.object(convert.specs.TransformerSpec, "from_config", with_all_heads),
        ):
            convert.save_ctranslate2(translator.model, tokenizer, Path(folder), attention_layer=layer)
            self.translator = ctranslate2.Translator(folder, "cpu", inter_threads=1, intra_threads=1)

    def translate(self, sentences: Sequence[list[int]], *, attention: bool) -> list[ctranslate2.TranslationResult]:
        """Translate sentences; attention has a row for each token, the end token included."""
        pieces = [[*map(self.sources.__getitem__, ids[:-1]), SPELLINGS.end] for ids in sentences]
        return self.translator.translate_batch(
            pieces,
            max_batch_size=BATCH,
            beam_size=BEAM,
            length_penalty=0,
            return_attention=attention,
            return_end_token=attention,
        )


def main() -> None:
    """Measure the run of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("--count", type=int, default=COUNT)
    arguments = parser.parse_args()
    translator = Translator.load(arguments.run, "cpu", "torch")
    pairs = list(generate(arguments.count, split="test"))
    texts = [(pair.source, pair.target) for pair in pairs]
    ids = [pair.ids for pair in translator.pipeline.pairs(texts)]
    sources = [source for source, _ in ids]
    engine = Engine(translator, -1)
    seconds = [_seconds(partial(engine.translate, sources, attention=attention)) for attention in (False, True)]
    results = engine.translate(sources, attention=True)
    exact = []
    for i, ((_, target), result) in enumerate(zip(ids, results, strict=True)):
        pieces = translator.tokenizer.target_pieces(target[:-1])
        if result.hypotheses[0][:-1] == pieces:
            exact.append(i)
    exact_pairs, exact_sources = [pairs[i] for i in exact], [sources[i] for i in exact]
    started = time.perf_counter()
    inspected = translator.inspector.inspect([(pair.source, pair.target) for pair in exact_pairs])
    second_pass = 1000 * (time.perf_counter() - started) / len(exact_pairs)
    print(f"{len(exact_pairs)} of {len(pairs)} translations are the reference\n")
    print("| attention | tags | alignment error rate |\n| --- | ---: | ---: |")
    _print(
        "second pass, all layers",
        exact_pairs,
        [weights_of(sentence, AlignmentOptions(learned=False)) for sentence in inspected],
    )
    for layer in range(translator.configuration.model.decoder_layers):
        options = AlignmentOptions(learned=False, layer=layer)
        by_second_pass = [weights_of(sentence, options) for sentence in inspected]
        _print(f"second pass, layer {layer}", exact_pairs, by_second_pass)
        results = Engine(translator, layer).translate(exact_sources, attention=True)
        rows = [np.array(result.attention[0]) for result in results]
        _print(f"CTranslate2, layer {layer}", exact_pairs, list(map(_merged, by_second_pass, inspected, rows)))
        _print_differences(layer, inspected, rows)
    print(f"\n{seconds[0]:.1f} ms a sentence, {seconds[1]:.1f} ms with attention, a second pass {second_pass:.1f} ms")


def _seconds(translate: Any) -> float:
    """Return the milliseconds for each sentence, the lesser of two runs."""
    times = []
    for _ in range(2):
        started = time.perf_counter()
        count = len(translate())
        times.append(1000 * (time.perf_counter() - started) / count)
    return min(times)


def _merged(like: WordWeights, inspected: Inspected, rows: Any) -> WordWeights:
    """Return weights [T, S] of pieces as weights between the same words as in `like`."""
    weights = np.zeros_like(like.weights)
    for row, (_, first_row, after_row) in enumerate(like.target):
        for column, (_, first, after) in enumerate(like.source):
            weights[row, column] = rows[first_row:after_row, first:after].sum(1).mean()
    return like._replace(weights=weights)


def _print(name: str, pairs: Sequence[Phrase], weights: Sequence[WordWeights]) -> None:
    gold = [Gold(frozenset(pair.alignment), frozenset(pair.alignment)) for pair in pairs]
    right, total, _ = score(pairs, [sentence_weights.soft_links() for sentence_weights in weights])
    rate = alignment_score([sentence_weights.links(both=True) for sentence_weights in weights], gold).error_rate
    print(f"| {name} | {right / total:.1%} | {rate:.3f} |")


def _print_differences(layer: int, sentences: Sequence[Inspected], rows: Sequence[Any]) -> None:
    """Print in how many sentences the first row, and another row, is not that of the second pass."""
    first = other_differences = 0
    for inspected, returned in zip(sentences, rows, strict=True):
        right = inspected.maps[f"decoder.{layer}.cross"].mean(0).numpy()
        wrong = abs(right - returned).max(1) > SAME
        first += wrong[0]
        other_differences += wrong[1:].any()
    print(f"  first row differs in {first} sentences, another row in {other_differences}")


if __name__ == "__main__":
    main()
