"""The extras of a training by the setting that asks for them, in order; files of `extras/` say what each adds.

The plain training needs none of them: `trainer.py` has its update, and `text.py` its corpus.
"""

from __future__ import annotations

from operator import attrgetter

from translucid.runs.configuration import Configuration
from translucid.training.dataset import DatasetStep
from translucid.training.extras.corpus_text import DocumentContext, Placeholders, Prefixes, SubwordDropout, Terms
from translucid.training.extras.directions import Directions
from translucid.training.extras.distillation import Distillation, SoftTargets
from translucid.training.extras.formality import Formality
from translucid.training.extras.fuzzy_matches import FuzzyMatches
from translucid.training.extras.guided_alignment import GuidedAlignment, WordLinks
from translucid.training.extras.seen_index import SeenIndex
from translucid.training.extras.trained_weights import (
    Adapters,
    FrozenOutputBias,
    FrozenParts,
    GradualUnfreezing,
    L2SPStep,
    QuantizedWeights,
)
from translucid.training.extras.training_step import TrainingStep

DATASET_STEPS: dict[str, type[DatasetStep]] = {
    "data.seen_index": SeenIndex,
    "data.placeholders": Placeholders,
    "data.terms": Terms,
    "training.needs_word_links": WordLinks,
    "data.formality": Formality,
    "data.fuzzy_matches": FuzzyMatches,
    "data.tokenizer.languages": Directions,
    "training.soft_targets": SoftTargets,
    "data.subword_dropout": SubwordDropout,
    "data.context": DocumentContext,
    "training.prefixes": Prefixes,
}
TRAINING_STEPS: dict[str, type[TrainingStep]] = {
    "training.freeze": FrozenParts,
    "training.begin_from": FrozenOutputBias,
    "training.adapter_rank": Adapters,
    "training.unfreeze": GradualUnfreezing,
    "training.quantized_weights": QuantizedWeights,
    "training.l2_sp": L2SPStep,
    "training.distillation_weight": Distillation,
    "training.guided_alignment": GuidedAlignment,
}
"""A dataset may add a step of its kind of model, `TrainingData.steps`, such as the self-critical loss of captioners."""


def dataset_steps(configuration: Configuration) -> list[DatasetStep]:
    """Return the steps of the corpus whose settings are set."""
    return [step(configuration) for setting, step in DATASET_STEPS.items() if attrgetter(setting)(configuration)]


def training_steps(configuration: Configuration) -> list[TrainingStep]:
    """Return the steps of the model whose settings are set."""
    return [step(configuration) for setting, step in TRAINING_STEPS.items() if attrgetter(setting)(configuration)]
