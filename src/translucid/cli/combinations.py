"""The tables of options that exclude or need each other on the command line."""

from __future__ import annotations

from collections.abc import Mapping

from translucid.cli.flags import with_flags
from translucid.engines import combinations
from translucid.ground.errors import UserError

DOCUMENT = "a document"
"""The name of the translated file in the tables."""
CONSTRAINED = with_flags(combinations.CONSTRAINED)
CONFLICTS = (
    ("--rerank-with", "--mbr", "each of them decides on the order"),
    *((with_flags(option), with_flags(other), with_flags(reason)) for option, other, reason in combinations.CONFLICTS),
    ("--wrapped", "--format jsonl", "it gives plain text"),
    ("--wrapped", "--alignments", "it gives plain text"),
    ("--wrapped", "--nbest", "it gives one text"),
    ("--context", "--wrapped", "the sentences of a paragraph are each other's context"),
    ("--separate-lines", "--wrapped", "the lines of a paragraph belong together"),
    ("--wrapped", "--no-split-sentences", "sentences go on from line to line"),
    (DOCUMENT, "--format jsonl", "it becomes a document"),
    (DOCUMENT, "--alignments", "it becomes a document"),
    (DOCUMENT, "--nbest", "it becomes one document"),
    (DOCUMENT, "--wrapped", "its format says where paragraphs end"),
    (DOCUMENT, "--ray", "workers of a cluster read lines"),
    ("--output", "--output-dir", "one names a file, the other the folder of several"),
)
"""Pairs of options that exclude each other, and why."""
NEEDS = {
    "--memory-from": "--memory",
    "--reverse-weight": "--rerank-with",
    "--length-weight": "--rerank-with",
    "--tune-on": "--rerank-with",
    "--inflect-terms": "--terms",
    "--terms-mode": "--terms",
    "--token-scores": "--format jsonl",
    "--retranslate": DOCUMENT,
    "--output-dir": DOCUMENT,
}
"""The option that each of these options modifies."""


def refuse_together(options: Mapping[str, object]) -> None:
    """Check that the options in use, those with a true value, go together.

    Raises:
        UserError: two options exclude each other, or an option modifies one that is not in use.
    """
    combinations.refuse_together(options, CONFLICTS)
    for name, needed in NEEDS.items():
        if options.get(name) and not options.get(needed):
            raise UserError(f"{name} is for {needed}", fix=f"Add {needed}, or leave {name} out.")
