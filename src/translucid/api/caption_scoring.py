"""A captioner on a test set: what it writes, how good that is, and whether it looks at what it speaks of."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from translucid.api.captioner import Captioner
from translucid.data.batching import padded
from translucid.data.images.image_files import ImageFiles
from translucid.data.images.pixels import Picture
from translucid.data.readers.corpus import Pair
from translucid.data.stores.image_store import TOGETHER
from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.maps import forced_features
from translucid.evaluation.caption_scores import CaptionScores, caption_scores
from translucid.evaluation.pointing import Hit, KindScore, by_kind, points_of
from translucid.evaluation.report import Forced
from translucid.evaluation.scene_gold import GoldImage
from translucid.ground.console import Console, counting
from translucid.kernels.machine import cores
from translucid.models.protocol import SequenceModel


@dataclass(frozen=True)
class CaptionEvaluation:
    """Figures of one test set."""

    scores: CaptionScores
    images: int
    references: int
    seconds: float
    """Spent on reading images and writing captions."""
    forced: Forced | None = None
    """How the model finds the references."""
    pointing: dict[str, KindScore] = field(default_factory=dict)
    """By kind of word whether it looks at what it speaks of, if there is gold."""

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        record: dict[str, Any] = {**self.scores.to_json(), "images": self.images, "references": self.references}
        record["seconds"] = round(self.seconds, 3)
        if self.forced:
            record |= dict(zip(("perplexity", "token_accuracy", "tokens"), self.forced, strict=True))
        if self.pointing:
            record["pointing"] = {kind: found._asdict() for kind, found in self.pointing.items()}
        return record

    def render(self) -> Iterator[RenderableType]:
        """Yield what a person wants to see."""
        table = Table(box=None, pad_edge=False)
        for column in ("metric", "score", "how"):
            table.add_column(column, overflow="fold")
        how = "lower-cased, without punctuation, as papers count"
        for n, value in enumerate(self.scores.bleu, 1):
            table.add_row(f"BLEU-{n}", Text(f"{value:.2f}", "bold"), Text(how, "dim"))
        table.add_row("CIDEr-D", Text(f"{self.scores.cider:.3f}", "bold"), Text(how, "dim"))
        own = self.scores.sacrebleu
        table.add_row(own.name, Text(f"{own.value:.2f}", "bold"), Text(own.signature, "dim"))
        yield table
        rate = self.images / max(self.seconds, 1e-9)
        yield Text(f"{self.images:,} images, {self.references:,} references; {rate:,.1f} images/s, reading included")
        if self.forced:
            p = self.forced
            right = f"{100 * p.accuracy:.1f}% of {p.tokens:,} tokens right"
            yield Text(f"references: perplexity {p.perplexity:.2f}, {right}")
        if self.pointing:
            yield _pointing_table(self.pointing)


class ScoredCaptions(NamedTuple):
    """What came of a test set."""

    evaluation: CaptionEvaluation
    texts: dict[str, str]
    """The captions by name of the image."""


def score_captions(
    captioner: Captioner,
    pairs: Sequence[Pair],
    files: ImageFiles,
    options: DecodingOptions | None = None,
    *,
    perplexity: bool = True,
    gold: Mapping[str, GoldImage] | None = None,
    console: Console,
) -> ScoredCaptions:
    """Write captions for a test set and score them.

    Args:
        captioner: any.
        pairs: names of images and references, several of an image.
        files: the images.
        options: how to search; the run's own settings if not given.
        perplexity: whether the captioner is made to write the references too.
        gold: what the words of captions are about, by image.
        console: where progress is shown.

    Raises:
        UserError: an image is missing or can't be read.
    """
    references: dict[str, list[str]] = {}
    for pair in pairs:
        references.setdefault(pair.source, []).append(pair.target)
    for name, every in references.items():  # a blank one is none, if there is another
        references[name] = [text for text in every if text.strip()] or every
    files.refuse_missing(references)
    names, started = list(references), time.perf_counter()
    texts: dict[str, str] = {}
    points: list[tuple[str, Hit | None]] = []
    forcing = Forcing(captioner) if perplexity else None
    wanted = gold if gold is not None and captioner.can_look() else {}
    aside = 0.0
    with counting(console, "captioning", len(names)) as advance:
        found = captioner.stream(_pictures(captioner, names, files), options, on_done=advance)
        while some := list(islice(found, TOGETHER)):
            begun = time.perf_counter()
            for one in some:
                texts[one.name] = one.text
                if one.name in wanted:
                    looked = one.looked
                    points += points_of(looked.words, looked.weights().flatten(1), captioner.grid, wanted[one.name])
            if forcing:
                forcing.add([one.picture for one in some], [references[one.name] for one in some])
            aside += time.perf_counter() - begun
    seconds = time.perf_counter() - started - aside
    forced = forcing.result() if forcing else None
    language = captioner.configuration.data.languages[1]
    scores = caption_scores([texts[name] for name in names], [references[name] for name in names], language)
    pointing = by_kind(points) if points else {}
    evaluation = CaptionEvaluation(scores, len(names), len(pairs), seconds, forced, pointing)
    return ScoredCaptions(evaluation, texts)


def _pointing_table(scores: Mapping[str, KindScore]) -> Table:
    """Show for each kind of word how often the most looked-at cell is where the thing is."""
    table = Table(box=None, pad_edge=False)
    for column in ("words for", "judged", "cell at it", "by chance", "its middle in it", "by chance"):
        table.add_column(column, justify="left" if column == "words for" else "right")
    for kind, found in scores.items():
        shares = (found.overlaps, found.chance, found.centred, found.chance_centred)
        table.add_row(kind, f"{found.judged:,} of {found.words:,}", *(f"{100 * share:.1f}%" for share in shares))
    return table


def _pictures(captioner: Captioner, names: Sequence[str], files: ImageFiles) -> Iterator[Picture]:
    """Read images, a few ahead on all cores."""
    with ThreadPoolExecutor(cores()) as pool:
        coming = iter(names)
        while window := list(islice(coming, TOGETHER)):
            yield from pool.map(lambda name: captioner.picture(files.read(name), name), window)


class Forcing:
    """How a captioner finds references: what it says of their tokens when it is made to write them."""

    def __init__(self, captioner: Captioner) -> None:
        """Begin with none."""
        self.captioner = captioner
        self.entropy, self.correct, self.tokens = 0.0, 0, 0

    @torch.inference_mode()
    def add(self, pictures: Sequence[Picture], references: Sequence[Sequence[str]]) -> None:
        """Make it write the references of each of some pictures."""
        model, tokenizer, device = self.captioner.model, self.captioner.tokenizer, self.captioner.device
        memory = model.encode(torch.from_numpy(np.stack([picture.source for picture in pictures])).to(device))
        most = max(map(len, references))
        captions = [tokenizer.encode_target(list(of_image)) for of_image in references]
        ids = [row for of_image in captions for row in _filled(of_image, most, model)]
        target = padded(ids, model.pad).to(device)
        real = target != model.pad
        logits = model.output(forced_features(model, memory, target)[real]).float()
        self.entropy += float(F.cross_entropy(logits, target[real], reduction="none").cpu().double().sum())
        self.correct += int((logits.argmax(-1) == target[real]).sum())
        self.tokens += len(logits)

    def result(self) -> Forced:
        """Return perplexity, accuracy and number of all tokens so far."""
        return Forced(math.exp(min(self.entropy / self.tokens, 700)), self.correct / self.tokens, self.tokens)


def _filled(captions: list[list[int]], most: int, model: SequenceModel) -> list[list[int]]:
    """Return the captions of an image with their end tokens, and padding for those that it has fewer than others."""
    return [[*ids, model.eos] for ids in captions] + [[model.pad]] * (most - len(captions))
