"""The scores of a captioner on a test set, and its pointing accuracy."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from bitext.pair import Pair
from translucid.captions.caption_scores import CaptionScores, caption_scores
from translucid.captions.captioner import Caption, Captioner
from translucid.captions.image_files import ImageFiles
from translucid.captions.image_store import BATCH_SIZE
from translucid.captions.pixels import Picture
from translucid.data.batching import padded
from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.maps import forced_features
from translucid.decoding.pair_scores import perplexity as perplexity_of
from translucid.evaluation.report import ForcedScores
from translucid.ground.console import Console, progress_bar, table_of, unbroken
from translucid.ground.iteration import batched
from translucid.kernels.machine import cores

if TYPE_CHECKING:
    from translucid.captions.pointing import GoldImage, Hit, KindScore


@dataclass(frozen=True)
class CaptionEvaluation:
    """The scores of one test set."""

    scores: CaptionScores
    images: int
    references: int
    seconds: float
    """The time for reading images and writing captions."""
    forced: ForcedScores | None = None
    """The perplexity and accuracy of the references."""
    pointing: dict[str, KindScore] = field(default_factory=dict)
    """The pointing accuracy by kind of word, if there are gold boxes."""

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        record: dict[str, Any] = {**self.scores.to_json(), "images": self.images, "references": self.references}
        record["seconds"] = round(self.seconds, 3)
        if self.forced:
            record |= dict(zip(("perplexity", "token_accuracy", "tokens"), self.forced, strict=True))
        if self.pointing:
            record["pointing"] = {kind: score._asdict() for kind, score in self.pointing.items()}
        return record

    def render(self) -> Iterator[RenderableType]:
        """Yield tables and lines for the terminal."""
        table = table_of("metric", "score", "how", overflow="fold")
        conditions = "lower-cased, without punctuation, as papers count"
        for n, value in enumerate(self.scores.bleu, 1):
            table.add_row(f"BLEU-{n}", Text(f"{value:.2f}", "bold"), Text(conditions, "dim"))
        table.add_row("CIDEr-D", Text(f"{self.scores.cider:.3f}", "bold"), Text(conditions, "dim"))
        sacrebleu = self.scores.sacrebleu
        table.add_row(sacrebleu.name, Text(f"{sacrebleu.value:.2f}", "bold"), Text("sacreBLEU's tokens", "dim"))
        yield table
        yield unbroken(f"{sacrebleu.name}|{sacrebleu.signature}")
        rate = self.images / max(self.seconds, 1e-9)
        yield Text(f"{self.images:,} images, {self.references:,} references; {rate:,.1f} images/s, reading included")
        if self.forced:
            p = self.forced
            right = f"{100 * p.accuracy:.1f}% of {p.tokens:,} tokens right"
            yield Text(f"references: perplexity {p.perplexity:.2f}, {right}")
        if self.pointing:
            yield _pointing_table(self.pointing)


class ScoredCaptions(NamedTuple):
    """The captions of a test set, and their scores."""

    evaluation: CaptionEvaluation
    texts: dict[str, str]
    """The captions by the name of the image."""


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
        captioner: the captioner.
        pairs: pairs of the name of an image and a reference; an image may have several.
        files: the images.
        options: how to search; the run's own settings by default.
        perplexity: whether to compute the perplexity of the references by forced decoding too.
        gold: the boxes of the things that words refer to, by image.
        console: shows the progress.

    Raises:
        UserError: an image is missing or can't be read.
    """
    references: dict[str, list[str]] = {}
    for pair in pairs:
        references.setdefault(pair.source, []).append(pair.target)
    for name, image_references in references.items():
        # An image needs a reference, so a blank one counts if there is no other.
        references[name] = list(filter(str.strip, image_references)) or image_references
    files.refuse_missing(references)
    names, started = list(references), time.perf_counter()
    texts: dict[str, str] = {}
    points: list[tuple[str, Hit | None]] = []
    forced_scorer = ForcedScorer(captioner)
    gold_images = gold if gold is not None and captioner.can_look() else {}
    other_seconds = 0.0  # the time for other results than captions, which does not count
    with progress_bar(console, "captioning", len(names)) as advance:
        captions = captioner.stream(_pictures(captioner, names, files), options, on_done=advance)
        for batch in batched(captions, BATCH_SIZE):
            batch_started = time.perf_counter()
            for caption in batch:
                texts[caption.name] = caption.text
                if caption.name in gold_images:
                    points += _pointing(caption, captioner, gold_images[caption.name])
            if perplexity:
                forced_scorer.add(batch, references)
            other_seconds += time.perf_counter() - batch_started
    seconds = time.perf_counter() - started - other_seconds
    forced = None
    if perplexity:
        forced = forced_scorer.result()
    language = captioner.configuration.data.languages[1]
    scores = caption_scores(list(texts.values()), list(references.values()), language)
    pointing: dict[str, KindScore] = {}
    if points:
        from translucid.captions.pointing import by_kind

        pointing = by_kind(points)
    evaluation = CaptionEvaluation(scores, len(names), len(pairs), seconds, forced, pointing)
    return ScoredCaptions(evaluation, texts)


def _pointing(caption: Caption, captioner: Captioner, gold: GoldImage) -> list[tuple[str, Hit | None]]:
    """Return whether the attention of each word of a caption hits the box of the thing that it refers to."""
    from translucid.captions.pointing import points_of

    attention = caption.looked
    return points_of(attention.words, attention.weights().flatten(1), captioner.grid, gold)


def _pointing_table(scores: Mapping[str, KindScore]) -> Table:
    """Return a table with the pointing accuracy of each kind of word."""
    table = table_of("words for", figures=("judged", "cell at it", "by chance", "its middle in it", "by chance"))
    for kind, score in scores.items():
        shares = (score.overlaps, score.chance, score.centred, score.chance_centred)
        percentages = [f"{100 * share:.1f}%" for share in shares]
        table.add_row(kind, f"{score.judged:,} of {score.words:,}", *percentages)
    return table


def _pictures(captioner: Captioner, names: Sequence[str], files: ImageFiles) -> Iterator[Picture]:
    """Read images, a few ahead on all cores."""
    with ThreadPoolExecutor(cores()) as pool:
        for window in batched(names, BATCH_SIZE):
            yield from pool.map(lambda name: captioner.picture(files.read(name), name), window)


class ForcedScorer:
    """The perplexity and accuracy of references under a captioner, by forced decoding."""

    def __init__(self, captioner: Captioner) -> None:
        """Begin without references."""
        self.captioner = captioner
        self.entropy, self.correct, self.tokens = 0.0, 0, 0

    @torch.inference_mode()
    def add(self, captions: Sequence[Caption], references: Mapping[str, list[str]]) -> None:
        """Add the references of images that have been captioned; `references` has those of each name."""
        model, tokenizer, device = self.captioner.model, self.captioner.tokenizer, self.captioner.device
        sources, targets = [], []
        for caption in captions:
            sources.append(caption.picture.source)
            targets.append(tokenizer.encode_target(references[caption.name]))
        memory = model.encode(torch.from_numpy(np.stack(sources)).to(device))
        # The model expects the same number of captions for each image: rows of padding fill it up, and do not count.
        captions_per_image = max(map(len, targets))
        ids: list[list[int]] = []
        for image_targets in targets:
            for tokens in image_targets:
                ids.append([*tokens, model.eos])
            ids += [[model.pad]] * (captions_per_image - len(image_targets))
        target = padded(ids, model.pad).to(device)
        mask = target != model.pad
        logits = model.output(forced_features(model, memory, target)[mask]).float()
        # Summed in float64 on the CPU: not every device has it.
        self.entropy += float(F.cross_entropy(logits, target[mask], reduction="none").cpu().double().sum())
        self.correct += int((logits.argmax(-1) == target[mask]).sum())
        self.tokens += len(logits)

    def result(self) -> ForcedScores:
        """Return perplexity, accuracy and number of all tokens so far."""
        return ForcedScores(perplexity_of(-self.entropy, self.tokens), self.correct / self.tokens, self.tokens)
