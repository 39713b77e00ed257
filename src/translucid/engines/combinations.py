"""The table of translation options that exclude each other, for the command line and for `Translator`."""

from __future__ import annotations

from collections.abc import Mapping

from translucid.ground.errors import UserError

DOCUMENT = "a document"
"""The name of the translated file in the table."""
CONSTRAINED = "constrained --terms"
"""Terms that the search enforces, without annotating them for the model."""


CONFLICTS = (
    ("--rerank-with", "--mbr", "each of them decides on the order"),
    ("--rerank-with", "--sample", "it ranks what a beam search finds"),
    ("--rerank-with", "--beam 1", "one hypothesis leaves nothing to rank; 5 are usual"),
    (CONSTRAINED, "--sample", "a constrained search draws nothing at random"),
    ("--adapter", "--ensemble", "an adapter belongs to one run, and several are averaged"),
    ("--engine ctranslate2", "--ensemble", "our own search averages runs: --engine torch"),
    ("--engine onnx", "--ensemble", "our own search averages runs: --engine torch"),
    ("--ablate", "--ensemble", "heads belong to one run, and several are averaged"),
    ("--ablate", "--engine ctranslate2", "our own search switches heads off: --engine torch"),
    ("--ablate", "--engine onnx", "our own search switches heads off: --engine torch"),
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
    for option, other, reason in CONFLICTS:
        if options.get(option) and options.get(other):
            raise UserError(f"{option} and {other} do not go together: {reason}", fix="Leave one of them out.")
    for name, needed in NEEDS.items():
        if options.get(name) and not options.get(needed):
            raise UserError(f"{name} is for {needed}", fix=f"Add {needed}, or leave {name} out.")
