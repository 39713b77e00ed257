"""The table of translation options that exclude each other, whoever translates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from translucid.ground.errors import UserError

CONSTRAINED = "constrained `terms`"
"""Terms that the search enforces, without annotating them for the model."""
INTERVENTIONS = "`interventions`"
KNN = "`knn`"
"""Retrieval in the decoder."""
MAX_LENGTH = "`max_length`"

CONFLICTS = (
    ("`ranking`", "`sample`", "it ranks what a beam search finds"),
    ("`ranking`", "`beam=1`", "one hypothesis leaves nothing to rank; 5 are usual"),
    (CONSTRAINED, "`sample`", "a constrained search draws nothing at random"),
    (MAX_LENGTH, "`sample`", "a search keeps to a length, random samples do not"),
    ("`adapter`", "`others`", "an adapter belongs to one run, and several are averaged"),
    ('`engine="ctranslate2"`', "`others`", 'our own search averages runs: `engine="torch"`'),
    ('`engine="onnx"`', "`others`", 'our own search averages runs: `engine="torch"`'),
    (INTERVENTIONS, "`others`", "heads and features belong to one run, and several are averaged"),
    (INTERVENTIONS, '`engine="ctranslate2"`', 'our own search changes heads and features: `engine="torch"`'),
    (INTERVENTIONS, '`engine="onnx"`', 'our own search changes heads and features: `engine="torch"`'),
    (KNN, "`others`", "similar segments are compared by the states of one run, and several are averaged"),
    (KNN, '`engine="ctranslate2"`', 'our own search retrieves; `engine="auto"` uses it where a segment is similar'),
    (KNN, '`engine="onnx"`', 'our own search retrieves; `engine="auto"` uses it where a segment is similar'),
)
"""Pairs of options that exclude each other, and why."""


def refuse_together(options: Mapping[str, object], conflicts: Sequence[tuple[str, str, str]] = CONFLICTS) -> None:
    """Check that the options in use, those with a true value, go together.

    Raises:
        UserError: two options exclude each other.
    """
    for option, other, reason in conflicts:
        if options.get(option) and options.get(other):
            raise UserError(f"{option} and {other} do not go together: {reason}", fix="Leave one of them out.")
