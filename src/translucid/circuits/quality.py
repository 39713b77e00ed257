"""How good a dictionary is: what it explains, and what the model does when nothing else is left of its sublayers.

The figures of a system, which replaces the feed-forward sublayers, on held-out pairs:

    unexplained variance    sum |y - t(x)|^2 / sum |y - mean y|^2 on states of the original model; mean over sublayers
    L0                      the number of active units at a position, mean over positions and sublayers
    loss, KL, BLEU          with all sublayers of encoder and decoder replaced at once, without error terms

The loss is -log p of a reference token, and KL(p || p') that from the original model, both in nats a token.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from translucid.api.translator import Translator
from translucid.circuits.dictionary import Dictionary, circuits_folder, sublayers_of
from translucid.circuits.replacement import Replacement, read_states
from translucid.circuits.transcoder import Transcoder
from translucid.decoding.pair_scores import ROWS, paired_batches
from translucid.evaluation.metrics import Criterion
from translucid.evaluation.system_table import markdown_table
from translucid.ground.atomic import write_atomically
from translucid.ground.console import Console, progress_bar, table_of
from translucid.ground.errors import UserError
from translucid.layers.feed_forward import FeedForward
from translucid.runs.run_folder import RunFolder

if TYPE_CHECKING:
    from rich.table import Table

    from translucid.models.protocol import SequenceModel

BATCH_TOKENS = 2048
SAMPLE = 4000
"""The number of pairs of the training text from which the baselines are computed, and dead features are counted."""
ORIGINAL, DICTIONARY = "nothing", "dictionary"
"""The names of two systems."""
BEAM = 5
RIDGE = 1e-3
Ids = tuple[list[int], list[int]]


class TopNeurons(nn.Module):
    """The k neurons of a sublayer that write most at a position."""

    def __init__(self, sublayer: FeedForward, k: int) -> None:
        """`k` is the number of neurons."""
        super().__init__()
        self.sublayer, self.k = sublayer, k
        self.lengths = sublayer.outer.weight.detach().norm(dim=0)

    def active(self, x: Tensor) -> float:
        """Return the number of neurons that are kept and not 0 for inputs x [n, D], summed over them."""
        return (self.sublayer.neurons(x) != 0).sum(-1).clamp(max=self.k).sum().item()

    def forward(self, x: Tensor) -> Tensor:
        """Map x [.., D] to [.., D]."""
        neurons = self.sublayer.neurons(x)
        kept = (neurons.abs() * self.lengths).topk(min(self.k, neurons.size(-1)), dim=-1).indices
        return self.sublayer.outer(torch.zeros_like(neurons).scatter(-1, kept, neurons.gather(-1, kept)))


class Projection(nn.Module):
    """The output of a sublayer in its k principal directions, the mean elsewhere."""

    def __init__(self, sublayer: FeedForward, mean: Tensor, directions: Tensor) -> None:
        """`mean` [D], and orthonormal `directions` [k, D]."""
        super().__init__()
        self.sublayer, self.mean, self.directions = sublayer, mean, directions

    def forward(self, x: Tensor) -> Tensor:
        """Map x [.., D] to [.., D]."""
        return self.mean + (self.sublayer(x) - self.mean) @ self.directions.T @ self.directions


class Zero(nn.Module):
    """No output."""

    def forward(self, x: Tensor) -> Tensor:
        """Map x [.., D] to zeros."""
        return torch.zeros_like(x)


class Moments:
    """Sums over the states of a sample, from which the baselines of a sublayer are computed."""

    def __init__(self, transcoder: Transcoder, seed: int) -> None:
        """Choose random features, as many as those of a transcoder, of which as many are active."""
        width, features = transcoder.decoder_weight.size(1), transcoder.width
        weight = transcoder.decoder_weight
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.random = Transcoder(width, features, transcoder.k).to(weight.device, weight.dtype)
        self.random.requires_grad_(False)
        self.count = 0
        self.output, self.outer = weight.new_zeros(width), weight.new_zeros(width, width)
        self.active = weight.new_zeros(features)
        # With a last feature that is always 1, for the bias.
        self.gram = weight.new_zeros(features + 1, features + 1)
        self.product = weight.new_zeros(features + 1, width)

    def add(self, transcoder: Transcoder, x: Tensor, y: Tensor) -> None:
        """Add inputs and outputs [n, D] of the sublayer."""
        self.count += len(x)
        self.output += y.sum(0)
        self.outer += y.T @ y
        self.active += (transcoder.features(x) > 0).sum(0)
        f = torch.cat([self.random.features(x), torch.ones_like(x[:, :1])], 1)
        self.gram += f.T @ f
        self.product += f.T @ y

    def principal(self, sublayer: FeedForward, k: int) -> Projection:
        """Return the projection on the first k principal components."""
        mean = self.output / self.count
        covariance = self.outer / self.count - mean[:, None] * mean
        # On the CPU in float64, which not every device has; the eigenvalues ascend.
        vectors = torch.linalg.eigh(covariance.cpu().double()).eigenvectors.T[-min(k, len(mean)) :]
        return Projection(sublayer, mean, vectors.to(mean.dtype).to(mean.device))

    def random_dictionary(self) -> Transcoder:
        """Return the random features with the output that fits best, by least squares."""
        gram, product = self.gram.cpu().double(), self.product.cpu().double()
        ridge = RIDGE * gram.diagonal().mean() * torch.eye(len(gram), dtype=gram.dtype)
        solution = torch.linalg.solve(gram + ridge, product).to(self.product.dtype).to(self.product.device)
        self.random.decoder_weight.copy_(solution[:-1])
        self.random.decoder_bias.copy_(solution[-1])
        return self.random


class SublayerFigures(NamedTuple):
    """The figures of a transcoder."""

    sublayer: str
    unexplained: float
    """The share of the variance of the output that it leaves unexplained."""
    active: float
    """The mean number of active features."""
    dead: float
    """The share of features that are never active in the sample."""


@dataclass(frozen=True)
class SystemFigures:
    """The figures of a system; see the module."""

    system: str
    unexplained: float
    active: float | None
    """L0; None if there are no units to count."""
    loss: float
    divergence: float
    greedy: float
    """BLEU of greedy search, or chrF if the references are too short for it."""
    beam: float
    """That of a beam search with 5 hypotheses."""


@dataclass(frozen=True)
class Quality:
    """The figures of a dictionary and of the baselines."""

    pairs: int
    """The number of held-out pairs."""
    sample: int
    """The number of tokens of the training text in which dead features are never active."""
    sublayers: Sequence[SublayerFigures]
    systems: Sequence[SystemFigures]
    metric: str = "BLEU"
    """`BLEU` or `chrF`."""

    def to_json(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        sublayers = [figures._asdict() for figures in self.sublayers]
        return {
            "pairs": self.pairs,
            "sample": self.sample,
            "metric": self.metric,
            "sublayers": sublayers,
            "systems": list(map(asdict, self.systems)),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Quality:
        """Return the figures that `to_json` returned as plain values."""
        sublayers = [SublayerFigures(**figures) for figures in values["sublayers"]]
        systems = [SystemFigures(**figures) for figures in values["systems"]]
        return cls(values["pairs"], values["sample"], sublayers, systems, values.get("metric", "BLEU"))

    def render(self) -> list[Table]:
        """Return tables for the terminal."""
        tables = []
        for head, rows in self.tables():
            tables.append(table_of(head[0], figures=head[1:]))
            for row in rows:
                tables[-1].add_row(*row)
        return tables

    def tables(self) -> list[tuple[list[str], list[list[str]]]]:
        """Return the heads and the rows of two tables: the sublayers of the dictionary, and all systems."""
        sublayers: list[list[str]] = []
        for name, unexplained, active, dead in self.sublayers:
            sublayers.append([name, f"{unexplained:.1%}", f"{active:.1f}", f"{dead:.1%}"])
        systems: list[list[str]] = []
        for s in self.systems:
            units = "" if s.active is None else f"{s.active:.1f}"
            figures = [f"{s.unexplained:.1%}", units, f"{s.loss:.3f}", f"{s.divergence:.3f}"]
            systems.append([s.system, *figures, f"{s.greedy:.1f}", f"{s.beam:.1f}"])
        searches = f"{self.metric} greedy", f"{self.metric} beam {BEAM}"
        return [
            (["sublayer", "unexplained", "L0", "dead"], sublayers),
            (["replaced by", "unexplained", "L0", "loss", "KL", *searches], systems),
        ]


def save_quality(run: RunFolder, dictionary: Dictionary, quality: Quality) -> None:
    """Write a dictionary with its figures into a run, also as `dictionary.json` and `card.md`.

    Raises:
        UserError: the folder can't be written to.
    """
    dictionary.with_quality(quality.to_json()).save(run)
    configuration = asdict(dictionary.configuration)
    values = {"configuration": configuration, "quality": quality.to_json()}
    text = json.dumps(values, ensure_ascii=False, indent=2) + "\n"
    write_atomically(circuits_folder(run) / "dictionary.json", text.encode())
    write_atomically(circuits_folder(run) / "card.md", card(dictionary, quality).encode())


def card(dictionary: Dictionary, quality: Quality) -> str:
    """Return a description of a dictionary with its figures, in Markdown."""
    c, size = dictionary.configuration, f"{dictionary.width:,} features each"
    lines = [
        "# Dictionary of features",
        "",
        f"Transcoders (Dunefsky et al. 2024, arXiv 2406.11944) of {len(dictionary.sublayers)} feed-forward sublayers,",
        f"with {size} ({c.expansion} times the width), of which at most {c.active} are active",
        f"at a position. Learned in {c.updates:,} updates from {c.pairs:,} pairs, seed {c.seed}:",
        f"{', '.join(map(escape, c.text))}.",
        "",
        f"Figures on {quality.pairs:,} held-out pairs; dead features were not active in {quality.sample:,} tokens.",
        "Loss and KL are in nats a token. All feed-forward sublayers are replaced at once, without error terms.",
    ]
    for head, rows in quality.tables():
        lines += ["", markdown_table(head, rows).rstrip()]
    return "\n".join([*lines, ""])


def measure(
    translator: Translator,
    dictionary: Dictionary,
    training: Sequence[tuple[str, str]],
    held_out: Sequence[tuple[str, str]],
    *,
    console: Console,
) -> Quality:
    """Measure a dictionary on held-out pairs, beside baselines.

    Args:
        translator: the translator, with the PyTorch engine.
        dictionary: its dictionary.
        training: pairs that the dictionary was learned from; the baselines are computed from a sample of them.
        held_out: other pairs.
        console: shows the progress.

    Raises:
        UserError: there are no held-out pairs that the model can read.
    """
    model, device, pipeline = translator.model, translator.device, translator.pipeline
    dictionary.to(device)
    transcoders = dictionary.transcoders
    sublayers, k = sublayers_of(model), dictionary.configuration.active
    encoded = [pair.ids for pair in pipeline.pairs(held_out)]
    usable = [i for i, ids in enumerate(encoded) if max(map(len, ids)) <= pipeline.longest]
    texts, ids = [held_out[i] for i in usable], [encoded[i] for i in usable]
    if not ids:
        raise UserError("there are no pairs to measure the dictionary on", fix="Give some that the model can read.")
    moments = {name: Moments(transcoder, dictionary.configuration.seed) for name, transcoder in transcoders.items()}
    training = training[:: max(1, len(training) // SAMPLE)]
    sample = pipeline.short_pairs(training)
    with torch.inference_mode():
        for _, source, target in paired_batches(sample, model.pad, device, BATCH_TOKENS):
            states = read_states(model, transcoders, source, target)
            for name, transcoder in transcoders.items():
                moments[name].add(transcoder, states.inputs[name], states.outputs[name])
        systems: dict[str, Mapping[str, nn.Module]] = {
            ORIGINAL: {},
            DICTIONARY: transcoders,
            f"{k} strongest neurons": {name: TopNeurons(layer, k) for name, layer in sublayers.items()},
            f"{k} components (PCA)": {name: moments[name].principal(layer, k) for name, layer in sublayers.items()},
            "random dictionary": {name: moments[name].random_dictionary() for name in sublayers},
            "zeros": {name: Zero() for name in sublayers},
        }
    criterion = Criterion([[target for _, target in texts]], translator.languages[1])
    figures, explained = [], {}
    with progress_bar(console, "measuring", 2 * len(systems) * len(texts)) as advance:
        for system, modules in systems.items():
            shares, active = _explained(model, modules, [*sublayers], ids, device)
            explained[system] = shares, active
            loss, divergence = _losses(translator, modules, ids)
            sources = [source for source, _ in texts]
            greedy, beam = (
                criterion.score(_translations(translator, modules, sources, beam, advance)) for beam in (1, BEAM)
            )
            mean_active = sum(active.values()) / len(active) if active else None
            mean_share = sum(shares.values()) / len(shares)
            figures.append(SystemFigures(system, mean_share, mean_active, loss, divergence, greedy, beam))
    shares, active = explained[DICTIONARY]
    by_sublayer = []
    for name in transcoders:
        dead = (moments[name].active == 0).float().mean().item()
        by_sublayer.append(SublayerFigures(name, shares[name], active[name], dead))
    dictionary.to("cpu")
    sample_tokens = max(moment.count for moment in moments.values())
    return Quality(len(texts), sample_tokens, by_sublayer, figures, criterion.name)


def _explained(
    model: SequenceModel, modules: Mapping[str, nn.Module], sublayers: Sequence[str], pairs: Sequence[Ids], device: Any
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the unexplained variance of each sublayer, and L0 where modules have units."""
    errors, sums, squares = ({name: torch.zeros((), device=device) for name in sublayers} for _ in range(3))
    active: dict[str, float] = {}
    counts = dict.fromkeys(sublayers, 0)
    with torch.inference_mode():
        for _, source, target in paired_batches(pairs, model.pad, device, BATCH_TOKENS):
            states = read_states(model, sublayers, source, target)
            for name in sublayers:
                x, y = states.inputs[name], states.outputs[name]
                counts[name] += len(y)
                sums[name] = sums[name] + y.sum(0)
                squares[name] += y.pow(2).sum()
                if module := modules.get(name):
                    errors[name] += (y - module(x)).pow(2).sum()
                if isinstance(module, Transcoder):
                    active[name] = active.get(name, 0.0) + (module.features(x) > 0).sum().item()
                elif isinstance(module, TopNeurons):
                    active[name] = active.get(name, 0.0) + module.active(x)
    shares = {}
    for name in sublayers:
        variance = squares[name] - sums[name].pow(2).sum() / counts[name]
        shares[name] = (errors[name] / variance).item()
        if name in active:
            active[name] /= counts[name]
    return shares, active


def _losses(translator: Translator, modules: Mapping[str, nn.Module], pairs: Sequence[Ids]) -> tuple[float, float]:
    """Return the loss of the references, and the divergence from the original model, in nats a token."""
    model = translator.model
    replaced = Replacement(modules).applied(model)
    loss = divergence = 0.0
    count = 0
    with torch.inference_mode():
        for _, source, target in paired_batches(pairs, model.pad, translator.device, BATCH_TOKENS):
            labels = target[target != model.pad]
            expected, features = (read_states(m, (), source, target).features for m in (model, replaced))
            # A few rows at a time: the distributions over a large vocabulary could fill the memory.
            for rows in torch.arange(len(labels), device=labels.device).split(ROWS):
                log_p, log_q = (model.output(states[rows]).log_softmax(-1) for states in (expected, features))
                loss -= log_q.gather(1, labels[rows, None]).sum().item()
                divergence += (log_p.exp() * (log_p - log_q)).sum().item()
            count += len(labels)
    return loss / count, divergence / count


def _translations(
    translator: Translator,
    modules: Mapping[str, nn.Module],
    sources: Sequence[str],
    beam: int,
    advance: Callable[[int], None],
) -> list[str]:
    """Translate with other sublayers in the model."""
    if modules:
        translator = translator.with_interventions(Replacement(modules))
    options = translator.configuration.decoding_with({"beam": beam})
    return [translation.text for translation in translator.stream(sources, options, split=False, on_done=advance)]
