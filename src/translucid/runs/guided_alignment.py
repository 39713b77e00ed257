"""Guided alignment: the head that it teaches, and the files with the word links of a training corpus."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from bitext.pair import Pair
from bitext.readers.file_kinds import ending_of
from translucid.data.linked_pairs import LinkedPair
from translucid.data.readers.corpus import CorpusName, read_lines
from translucid.evaluation.alignment_error import AlignmentOptions, linked_to_gold
from translucid.ground.errors import UserError
from translucid.runs.configuration import Configuration
from translucid.runs.data_options import DataOptions


def guided_reading(configuration: Configuration) -> AlignmentOptions:
    """Return the reading of the head that guided alignment teaches.

    By default, it is the first head of the last decoder layer, which aligns better here than that of the last layer but
    one, which Garg et al. 2019 (arXiv 1909.02074, section 5.3) teach (docs/claims/19-guided-alignment.md).
    """
    layer = configuration.training.guided_layer
    if layer is None:
        layer = configuration.model.cross_attentions - 1
    return AlignmentOptions(layer=layer, head=0)


def guided_readings(configuration: Configuration) -> list[AlignmentOptions]:
    """Return the readings of the taught head, from both sides and from one; none without guided alignment."""
    if not configuration.training.guided_alignment:
        return []
    reading = guided_reading(configuration).of(has_layer=False)
    return [reading, reading.model_copy(update={"both": False})]


class LinkFile(NamedTuple):
    """A file with the word links of a corpus, one line for each pair; it may be the .jsonl file of the corpus."""

    file: str
    reverse: bool = False
    """Whether the pairs are read in reverse; the file is not."""

    def of(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """Yield the pairs of the corpus with their links.

        Raises:
            UserError: a line has another format or links a word that does not exist, or lines are missing.
        """
        for pair, gold in linked_to_gold(self.file, pairs, reverse=self.reverse):
            yield LinkedPair.of(pair, gold.to_learn())


def link_files(options: DataOptions) -> dict[str, str]:
    """Return the file with the word links of each training corpus that has one, by the name of the corpus.

    Raises:
        UserError: `data.skip_bad` is set; skipped lines would shift the pairs against their links.
    """
    files = dict(zip(options.train, options.train_alignments, strict=False))
    for name in (*options.train, *options.synthetic, *options.mix):
        if name not in files and _has_links(name):
            files[name] = CorpusName.parse(name).files
    if files and options.skip_bad:
        what = "has word links, with which data.skip_bad does not go together"
        raise UserError(what, file=next(iter(files)), fix="Correct the bad lines, and leave data.skip_bad out.")
    return files


def _has_links(name: str) -> bool:
    """Whether the first record of a .jsonl file has word links."""
    file = CorpusName.parse(name).files
    if ending_of(file) != ".jsonl":
        return False
    with suppress(ValueError):  # a bad line is reported when the pairs are read
        record = json.loads(next(read_lines(file), ""))
        return isinstance(record, dict) and "alignment" in record
    return False
