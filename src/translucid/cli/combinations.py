"""The tables of options that exclude or need each other on the command line, or are for another kind of model."""

from __future__ import annotations

from collections.abc import Container, Mapping

from translucid.cli.flags import with_flags
from translucid.engines import combinations
from translucid.ground.errors import UserError

DOCUMENT = "a document"
"""The name of the translated file in the tables."""
SAMPLING = with_flags("`sample`")
CONSTRAINED = with_flags(combinations.CONSTRAINED)
INTERVENTIONS = "--ablate", "--feature"
_OF_INTERVENTIONS = [
    (with_flags(other), with_flags(reason))
    for option, other, reason in combinations.CONFLICTS
    if option == combinations.INTERVENTIONS
]
CONFLICTS = (
    *((with_flags(option), with_flags(other), with_flags(reason)) for option, other, reason in combinations.CONFLICTS),
    *((option, other, reason) for option in INTERVENTIONS for other, reason in _OF_INTERVENTIONS),
    ("--lines wrapped", "--format jsonl", "it gives plain text"),
    ("--lines wrapped", "--alignments", "it gives plain text"),
    ("--lines wrapped", "--nbest", "it gives one text"),
    ("--context", "--lines wrapped", "the sentences of a paragraph are each other's context"),
    ("--max-length", "--lines wrapped", "the lines of a paragraph are wrapped again"),
    ("--knn", "--pivot", "neither run translates between the languages of the memory"),
    (DOCUMENT, "--format jsonl", "it becomes a document"),
    (DOCUMENT, "--alignments", "it becomes a document"),
    (DOCUMENT, "--nbest", "it becomes one document"),
    (DOCUMENT, "--lines wrapped", "its format says where paragraphs end"),
    (DOCUMENT, "--workers ray", "workers of a cluster read lines"),
)
"""Pairs of options that exclude each other, and why."""
NEEDS = {
    "--terms-mode": "--terms",
    "--domain": "--terms",
    "--knn": "--memory",
    "--retranslate": DOCUMENT,
    "--reading-speed": DOCUMENT,
    "--line-length": DOCUMENT,
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


_FOR_TEXTS = "is for texts, this model reads images"
_FOR_IMAGES = "is for images, this model reads text"
_FOR_TRANSLATIONS = "is for translations, this model classifies texts"
_OF_TRANSLATORS = "--reference", "--by-length", "--lines", "--terms", "--memory", "--formality"
_OF_CAPTIONERS = ("--images",)
_OF_WRITERS = "--hypotheses", "--beam", "--samples", "--ensemble"
_OF_SOURCE_TEXTS = (
    "--flow",
    "--tsv",
    "--why",
    *INTERVENTIONS,
    "--context",
    "--language-piece",
    "--memory",
    "--formality",
)
_OF_ATTENTION = "--layer", "--head", "--flow", "--method", "--why", "--tsv", "--language-piece"
UNSUITABLE: Mapping[tuple[str, str], Mapping[str, tuple[str, ...]]] = {
    ("evaluate", "--pivot"): {
        "is for one model, and --pivot takes two steps": ("--gold", "--terms", "--lines separate", "--memory")
    },
    ("evaluate", "images"): {_FOR_TEXTS: (*_OF_TRANSLATORS, "--ensemble")},
    ("evaluate", "texts with labels"): {_FOR_TRANSLATIONS: (*_OF_TRANSLATORS, "--beam", *_OF_CAPTIONERS, "--gold")},
    ("evaluate", "running text"): {
        "is for models that write about a source": (*_OF_TRANSLATORS, *_OF_CAPTIONERS, *_OF_WRITERS, "--gold")
    },
    ("evaluate", "text"): {_FOR_IMAGES: _OF_CAPTIONERS},
    ("look", "images"): {_FOR_TEXTS: _OF_SOURCE_TEXTS},
    ("look", "images, --method content"): {"content is for texts, this model reads images": ("--method",)},
    ("look", "texts with labels"): {_FOR_TRANSLATIONS: (*_OF_SOURCE_TEXTS, "--layer", "--head", "--lens", "--method")},
    ("look", "--method content"): {"is the rollout of all weights": ("--flow",)},
    ("look", "--method norms"): {"is the rollout of weights": ("--flow",)},
    ("look", "--method contributions"): {
        "is the rollout of weights": ("--flow",),
        "is for weights and norms: contributions belong to layers, not to heads": ("--head",),
    },
    ("look", "--lens"): {"does not go with --lens": _OF_ATTENTION},
    ("look", "--lens tuned"): {
        "does not go with --lens tuned, which was learned from the unchanged model; --lens logit was not": INTERVENTIONS
    },
    ("look", "--lens decoder"): {"does not go with --lens decoder: the decoder writes freely": ("--target",)},
    ("explain", "images"): {_FOR_TEXTS: ("--k", "--context")},
    ("explain", "texts with labels"): {_FOR_IMAGES: ("--share",), _FOR_TRANSLATIONS: ("--word", "--context")},
    ("explain", "text"): {_FOR_IMAGES: ("--share", "--save")},
}
"""The options that a command does not take for a model that reads something, or with another option, and why."""


def refuse_unsuitable(command: str, flags: Container[str], *cases: str) -> None:
    """Check that a command has no flags that it does not take in these cases: what the model reads, or other flags.

    Raises:
        UserError: it has one.
    """
    for case in cases:
        for why, options in UNSUITABLE.get((command, case), {}).items():
            for name in options:
                if name in flags:
                    raise UserError(f"{name} {why}", fix="Leave it out.")
