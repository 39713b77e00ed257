"""Guided alignment: one head of the cross-attention learns word links (Garg et al. 2019, arXiv 1909.02074).

    loss = cross-entropy + w / T * sum_t sum_s -G_ts log A_ts

A [T, S] are the weights of the head, T is the number of target tokens. G are the links: the row of a linked target
piece is uniform over the source pieces that it is linked to; other rows are 0 (section 4.2). Pairs that have no links
are linked by statistics, once, in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bitext.pair import Pair
from translucid.attention.attend import scaled_dot_product
from translucid.attention.points import points_of, recording
from translucid.data.batching import Batch
from translucid.data.filtering import Filter, fault, reservoir_sample
from translucid.data.linked_pairs import LinkedPair
from translucid.data.stores.encoded import WordStarts
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.evaluation.alignment_error import AlignmentOptions, to_pharaoh
from translucid.ground.cache import needed_in_cache
from translucid.ground.console import Console, progress_bar
from translucid.ground.errors import UserError
from translucid.ground.iteration import batched
from translucid.inspection.statistical_alignment import statistical_links
from translucid.kernels.packing import Packing
from translucid.models.protocol import SequenceModel
from translucid.runs.configuration import Configuration
from translucid.runs.corpus_files import Corpora
from translucid.runs.guided_alignment import LinkFile, guided_reading
from translucid.training.dataset import DatasetStep, Initialization, TrainingCorpus, sha256
from translucid.training.extras.training_step import TrainingStep
from translucid.training.objective import Loss, LossFunction
from translucid.training.weights import Weights

SMALLEST = 1e-9
"""Smaller weights count as this one, because Luong's local attention has weights of 0."""
KEPT = 4
"""The number of cached sets of links; the least recently used ones are removed."""
TOGETHER = 200_000
"""The largest number of pairs that are linked together, which takes about a minute and 1 GB on one core."""
CORPUS, READ, SEED = 20_000, 1_000_000, 1
"""The links of validation pairs are learned with `CORPUS` training pairs, sampled from the first `READ` with `SEED`."""


class AlignmentLoss(NamedTuple):
    """Sums over the linked target pieces of a batch."""

    cross_entropy: Tensor
    """[] -sum G log A, in nats."""
    pieces: Tensor
    """[] the number of linked target pieces."""


class GuidedHead:
    """The head that learns word links."""

    def __init__(self, reading: AlignmentOptions) -> None:
        """`reading`: the reading of the head's layer and number."""
        assert reading.layer is not None and reading.head is not None
        self.attention, self.head = f"decoder.{reading.layer}.cross", reading.head

    def points(self, model: SequenceModel) -> list[str]:
        """Return the points to record.

        Recording queries and keys leaves multi-head attention on its fused path, unlike recording the weights.
        """
        names = [f"{self.attention}.queries", f"{self.attention}.keys"]
        return names if points_of(model).keys() >= set(names) else [f"{self.attention}.weights"]

    def loss(self, record: Mapping[str, Tensor], batch: Batch, mask: Tensor) -> AlignmentLoss:
        """Return the cross-entropy of the head to the links of a batch.

        Args:
            record: what the model computed at the points.
            batch: the batch, with links.
            mask: [B, S], True at source positions without padding.
        """
        assert batch.links is not None
        positions, weights = batch.links
        if batch.packing:
            positions, mask = batch.packing.padded_indices(positions), batch.packing.source.padded(mask)
        log_weights = self._log_weights(record, mask, batch.packing).flatten()  # [B T S]
        return AlignmentLoss(-(weights * log_weights.index_select(0, positions)).sum(), weights.sum())

    def _log_weights(self, record: Mapping[str, Tensor], mask: Tensor, packing: Packing | None) -> Tensor:
        """Return log A [B, T, S], at least in float32."""
        if f"{self.attention}.weights" in record:
            return _exact(record[f"{self.attention}.weights"][:, self.head]).clamp(min=SMALLEST).log()
        query, key = (_exact(record[f"{self.attention}.{kind}"][:, self.head]) for kind in ("queries", "keys"))
        if packing:
            query, key = packing.target.padded(query), packing.source.padded(key)
        with torch.autocast(query.device.type, enabled=False):
            scores = scaled_dot_product(query, key)
        return scores.masked_fill(~mask[:, None], torch.finfo(scores.dtype).min).log_softmax(-1)


def _exact(x: Tensor) -> Tensor:
    """Return x in float32, or in float64 if that is its type; large projections return bfloat16 in training."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def guided_head(configuration: Configuration) -> GuidedHead | None:
    """Return the head that a training with guided alignment teaches; None without guided alignment."""
    if not configuration.training.guided_alignment:
        return None
    return GuidedHead(guided_reading(configuration))


class GuidedLoss:
    """The loss of a batch, with the alignment loss of a head."""

    def __init__(self, model: SequenceModel, loss_of: LossFunction, head: GuidedHead, weight: float) -> None:
        """Add `weight` times the alignment loss of a head to the loss of a model in training."""
        self.model, self.loss_of, self.head, self.weight = model, loss_of, head, weight
        self.names = head.points(model)

    def __call__(self, batch: Batch, smoothing: float = 0.0) -> Loss:
        """Return the loss of a batch."""
        with recording(self.model, self.names) as record:
            loss = self.loss_of(batch, smoothing)
        alignment = self.head.loss(record, batch, self.model.source_mask(batch.source)).cross_entropy
        return loss._replace(smoothed=loss.smoothed + self.weight * alignment)


class GuidedAlignment(TrainingStep):
    """Adds the alignment loss."""

    def begin(self, weights: Weights) -> None:
        """Add the alignment loss to that of the model."""
        assert isinstance(weights.model, SequenceModel)
        head = GuidedHead(guided_reading(self.configuration))
        weights.loss = GuidedLoss(weights.model, weights.loss, head, self.options.guided_alignment)


def word_starts(configuration: Configuration, tokenizer: Tokenizer) -> WordStarts | None:
    """Return the pieces that begin words, if the training needs the words of pairs."""
    return WordStarts.of(tokenizer) if configuration.training.needs_word_links else None


class WordLinks(DatasetStep):
    """Links the words of the pairs that have no links.

    With guided alignment, those of validation pairs, too, to measure the alignment loss.
    """

    def corpora(self, corpora: Corpora, console: Console) -> Corpora:
        """Link words.

        Raises:
            UserError: the cache can't be written.
        """
        pair_filter, train = self.data.filter, list(corpora.train)
        unlinked = [number for number, corpus in enumerate(train) if not _has_links(corpus)]
        digest = sha256(f"{corpora.digest} {unlinked} {pair_filter}")
        linked = _linked([train[number] for number in unlinked], list, pair_filter, digest, console)
        for number, corpus in zip(unlinked, linked, strict=True):
            train[number] = corpus
        # Validation pairs may change when a run is resumed, so the links of training pairs don't depend on them.
        valid_digest = sha256(f"{digest} {corpora.valid!r}")

        def corpus_sample() -> list[Pair]:
            return reservoir_sample(islice(corpora.filtered(pair_filter), READ), CORPUS, SEED)

        valid: Sequence[Pair] = corpora.valid
        if valid and self.configuration.training.guided_alignment:
            (linked_valid,) = _linked([valid], corpus_sample, pair_filter, valid_digest, console)
            valid = list(linked_valid)
        return replace(corpora, train=train, valid=valid, digest=digest)

    def configured(self, configuration: Configuration) -> Configuration:
        """Store the layer, so that the same one is trained and read if a later version has another default."""
        if not configuration.training.guided_alignment:
            return configuration
        reading = guided_reading(configuration)
        training = configuration.training.model_copy(update={"guided_layer": reading.layer})
        return configuration.model_copy(update={"alignment": reading, "training": training})

    def identity(self) -> list[Any]:
        """Return that the store has links."""
        return ["word links"]

    def encoded(self, corpus: TrainingCorpus, start: Initialization) -> None:
        """Check the links.

        Raises:
            UserError: no words are linked.
        """
        links = corpus.stored.pairs.links
        if links and not len(links.words):
            what = "no training pair has word links between words that the tokenizer separates"
            setting = "guided_alignment" if self.configuration.training.guided_alignment else "prefixes"
            raise UserError(what, fix=f"Set training.{setting}=0, or give links with `train_alignments`.")


class _Linked:
    """A corpus with links from a file."""

    def __init__(self, corpus: Iterable[Pair], file: Path) -> None:
        self.corpus, self.file = corpus, LinkFile(str(file))

    def __iter__(self) -> Iterator[Pair]:
        return self.file.of(self.corpus)


def _has_links(corpus: Iterable[Pair]) -> bool:
    return isinstance(next(iter(corpus), None), LinkedPair)


def _linked(
    texts: Sequence[Iterable[Pair]],
    extra_pairs: Callable[[], list[Pair]],
    pair_filter: Filter,
    key: str,
    console: Console,
) -> list[_Linked]:
    """Return texts with statistical links, which are learned from them and from `extra_pairs`.

    The links are in the cache under `key`, or are put there.

    Raises:
        UserError: the cache can't be written.
    """

    def make(folder: Path) -> None:
        folder.mkdir()
        with progress_bar(console, "linking words by statistics", None) as advance:
            lines = _statistical_links([*texts, extra_pairs()], pair_filter, advance)
            for number, text in enumerate(texts):
                with (folder / f"{number}.links").open("w", encoding="ascii") as file:
                    file.writelines(islice(lines, sum(1 for _ in text)))

    if not texts:
        return []
    folder = needed_in_cache("training.guided_alignment", "links", key, make, KEPT)
    return [_Linked(text, folder / f"{number}.links") for number, text in enumerate(texts)]


def _statistical_links(
    texts: Sequence[Iterable[Pair]], pair_filter: Filter, advance: Callable[[int], None]
) -> Iterator[str]:
    """Yield a line with the links of each pair of some texts; pairs that the filter skips have none."""
    total = sum(1 for _ in chain.from_iterable(texts))
    group_count = -(-total // TOGETHER)
    for group in batched(chain.from_iterable(texts), -(-total // group_count)):
        pairs = []
        for pair in group:
            is_skipped = fault(pair, pair_filter) is not None
            pairs.append(Pair("", "") if is_skipped else pair)
        for links in statistical_links(pairs, len(pairs)):
            yield to_pharaoh(sorted(links.possible)) + "\n"
        advance(len(pairs))
