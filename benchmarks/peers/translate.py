"""Translate test_2016_flickr: `python translate.py ctranslate2|translucid|torch|hf MODEL SENTENCES`.

MODEL is a run folder for `translucid` and `torch` (our own engine). For `ctranslate2` it is the output of `translucid
export`, used directly with the best of several settings. `hf` ignores it and generates the same number of tokens with
untrained weights, because Hugging Face has no model with our pre-norm layers. Sentences/s are from text to text, and
for `ctranslate2` and `hf` from pieces to pieces.
"""

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from common import DATA, SIZES, load_pairs, peak_mib, report, versions

NAME, MODEL = sys.argv[1], sys.argv[2]
LINES, REFERENCES = (
    (DATA / f"test.{side}").read_text(encoding="utf-8").splitlines()[: int(sys.argv[3])] for side in ("en", "de")
)
LATENCY = 40
"""Sentences translated one by one."""
TRIES = 6
"""Rounds of our own engine; the best one counts, as does the best of six settings of `ctranslate2`."""
TOKENS = 13
"""The output length for `hf`: about the mean of the trained models."""


def clocked(action: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    result = action()
    return time.perf_counter() - started, result


def latency(translate: Callable[[str], object]) -> float:
    """Return the median milliseconds of a sentence translated alone."""
    translate(LINES[0])
    times = [clocked(partial(translate, line))[0] for line in LINES[:LATENCY]]
    return 1000 * statistics.median(times)


def bleu(texts: Sequence[str]) -> float:
    import sacrebleu

    return sacrebleu.corpus_bleu(list(texts), [REFERENCES], tokenize="none", force=True).score


def ctranslate2() -> None:
    import ctranslate2
    import sentencepiece

    model = sentencepiece.SentencePieceProcessor(model_file=f"{MODEL}/tokenizer.model")
    sources = [[*model.encode(line, out_type=str), "</s>"] for line in LINES]
    for compute, beam in product(("float32", "int8"), (1, 5)):
        tries = {}
        for inter, intra in ((1, 2), (2, 1)):
            translator = ctranslate2.Translator(MODEL, compute_type=compute, inter_threads=inter, intra_threads=intra)
            translator.translate_batch(sources[:8], beam_size=beam)
            for size in (32, 64, 128):
                started = time.perf_counter()
                results = translator.translate_batch(
                    sources, beam_size=beam, max_batch_size=size, max_decoding_length=100
                )
                tries[time.perf_counter() - started] = f"{inter} × {intra} threads, batch {size}", results
        best = min(tries)
        texts = [model.decode(output.hypotheses[0]) for output in tries[best][1]]
        pieces = dict(zip(LINES, sources, strict=True))
        waits = []
        for intra in (1, 2):
            translator = ctranslate2.Translator(MODEL, compute_type=compute, inter_threads=1, intra_threads=intra)
            waits.append(latency(partial(one_by_one, translator, pieces, beam)))
        report(
            key=f"{compute}, beam {beam}",
            sentences_per_second=len(LINES) / best,
            settings=tries[best][0],
            bleu=bleu(texts),
            alone_ms=min(waits),
            peak_mib=peak_mib(),
            versions=versions("ctranslate2"),
        )


def one_by_one(translator: Any, pieces: dict[str, list[str]], beam: int, line: str) -> object:
    return translator.translate_batch([pieces[line]], beam_size=beam)


def translucid(engine: str) -> None:
    from translucid import Translator
    from translucid.decoding.decoding_options import DecodingOptions
    from translucid.engines.tuned import Tuned, load_tuned
    from translucid.kernels.devices import configure_process

    configure_process()  # as our command does
    translator = Translator.load(MODEL, "cpu", engine)  # type: ignore[arg-type]
    tuned = load_tuned(Path(MODEL)) or Tuned()
    weights = tuned.quantization + (f", {tuned.considered}" if tuned.considered != "all pieces" else "")
    for beam in (1, 5):
        options = DecodingOptions(beam=beam)
        translator.translate(LINES[:8], options)
        tries = [clocked(partial(translator.translate, LINES, options, split=False)) for _ in range(TRIES)]
        seconds, translations = min(tries, key=lambda attempt: attempt[0])
        report(
            key=f"{weights}, beam {beam}",
            sentences_per_second=len(LINES) / seconds,
            bleu=bleu([translation.text for translation in translations]),
            alone_ms=latency(partial(translator.translate, options=options, split=False)),
            peak_mib=peak_mib(),
            versions=versions("translucid"),
        )


def hf() -> None:
    import torch
    from marian import marian

    model = marian(SIZES["tiny"]).eval()
    padding = model.config.pad_token_id
    sources = sorted((source for source, _ in load_pairs("test")), key=len)

    def generate(batch: Sequence[list[int]], beam: int) -> None:
        longest = max(map(len, batch))
        ids = torch.tensor([[*source, *[padding] * (longest - len(source))] for source in batch])
        with torch.inference_mode():
            model.generate(
                input_ids=ids,
                attention_mask=(ids != padding).long(),
                num_beams=beam,
                do_sample=False,
                min_new_tokens=TOKENS,
                max_new_tokens=TOKENS,
            )

    for beam in (1, 5):
        generate(sources[:8], beam)
        tries = {}
        for size in (32, 128):
            started = time.perf_counter()
            for first in range(0, len(sources), size):
                generate(sources[first : first + size], beam)
            tries[time.perf_counter() - started] = f"batch {size}"
        times = []
        for source in sources[:: len(sources) // LATENCY]:
            started = time.perf_counter()
            generate([source], beam)
            times.append(time.perf_counter() - started)
        best = min(tries)
        report(
            key=f"float32, beam {beam}",
            sentences_per_second=len(sources) / best,
            settings=tries[best],
            alone_ms=1000 * statistics.median(times),
            peak_mib=peak_mib(),
            versions=versions("transformers"),
        )


if __name__ == "__main__":
    {"ctranslate2": ctranslate2, "hf": hf}.get(NAME, lambda: translucid({"translucid": "auto"}.get(NAME, NAME)))()
