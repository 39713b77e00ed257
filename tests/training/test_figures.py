"""Training figures checked by hand: display, records, comparison of weights, and memory limits."""

import io
import math
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from bitext.pair import Pair
from translucid.data.stores.store import Size
from translucid.evaluation.metrics import Criterion
from translucid.ground.console import Console
from translucid.ground.errors import UserError
from translucid.kernels.devices import memory_for_training
from translucid.language.options import LSTMLanguageOptions
from translucid.language.running_text import StreamValidator
from translucid.models.build import build_model
from translucid.models.model_options import TransformerOptions
from translucid.runs.configuration import resolve
from translucid.runs.training_options import TrainingOptions
from translucid.training import experiment
from translucid.training.experiment import explained_when_full, refuse_too_large
from translucid.training.extras.trained_weights import L2SP, freeze, parts
from translucid.training.records import record
from translucid.training.records.record import Recent, Record, Status
from translucid.training.records.trackers import TensorBoard
from translucid.training.schedule import self_critical
from translucid.training.steps import dataset_steps
from translucid.training.text import TextDataset, report_too_long
from translucid.training.trainer import random_states, restore_random_states
from translucid.training.validation import GENERAL, GuardedValidator, PairsValidator, Sample, Validation
from translucid.training.weights import sizes

SMALL = TransformerOptions(width=8, heads=2, feed_forward=8, encoder_layers=1, decoder_layers=1)
STATUS = Status(1200, 2, 0.25, 30.0, 2.5, 12.1824939, 0.5, 3456.7, 0.001, 0, 0.25)


def test_the_figures_of_a_status():
    assert STATUS.line() == (
        "step 1,200  epoch 3  loss 2.500  ppl 12.18  acc 50.0%  reward 0.250  3,457 tokens/s  1:30 left"
    )
    assert STATUS.figures() == {**STATUS._asdict(), "total": 1.0, "seconds_left": 90.0}
    assert [STATUS._replace(done=done).seconds_left for done in (0.001, 0.002, 1.0)] == [None, 14970.0, 0.0]


def test_the_figures_of_the_last_updates(monkeypatch):
    clock = iter([100.0, 101.0, 103.0])
    monkeypatch.setattr(record, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    recent = Recent()
    recent.add(20.0, 3, 8)
    recent.add(4.0, 1, 4, reward=0.5)
    assert recent.figures() == (2.0, math.exp(2), 1 / 3, 4.0)
    assert recent.facts() == {"recent": [(20.0, 3, 8, 1.0), (4.0, 1, 4, 2.0)], "rewards": [0.5]}
    assert recent.reward == 0.5
    monkeypatch.setattr(record, "time", SimpleNamespace(monotonic=lambda: 0.0))
    assert Recent().reward is None
    assert Recent([[1e6, 0, 1, 1.0]]).figures()[:2] == (1e6, math.exp(700))
    assert len(Recent([[1.0, 0, 1, 1.0]] * 60, [1.0] * 60).facts()["recent"]) == 50


class Board:
    """Collect the events of a tracker or of TensorBoard; report a failure after the first row."""

    name = "board"

    def __init__(self):
        self.events, self.warning = [], ""

    def log(self, *event):
        self.events.append(event)
        self.warning = "failed"

    add_scalar = add_text = log


def test_the_rows_of_a_record():
    rows, warnings = [], []
    written = Record(SimpleNamespace(add_metrics=rows.append), TrainingOptions(trackers=[]), 0, warnings.append)
    board = Board()
    written.trackers.append(board)
    written.write_training(STATUS._replace(reward=None))
    samples = [Sample(f"s{i}", f"r{i}", f"h{i}") for i in range(6)]
    written.write_validation(7, 1.23456789, Validation(2.5, 12.1824939, 0.5, {"bleu": 20.0}, 20.0, samples))
    training = {**STATUS._asdict(), "perplexity": 12.1825}
    del training["reward"], training["compile_seconds"]  # they have no value
    validation = {"seconds": 1.23457, "loss": 2.5, "perplexity": 12.1825, "accuracy": 0.5, "bleu": 20.0}
    assert rows == [{"kind": "training", **training}, {"kind": "validation", "step": 7, **validation}]
    del training["step"]
    training["perplexity"] = 12.1824939
    figures = {"loss": 2.5, "perplexity": 12.1824939, "accuracy": 0.5, "bleu": 20.0}
    texts = "\n\n".join(f"s{i}  \nr{i}  \n**h{i}**" for i in range(5))
    assert board.events == [
        ({f"training/{name}": value for name, value in training.items()}, 1200, ""),
        ({f"validation/{name}": value for name, value in figures.items()}, 7, texts),
    ]
    assert warnings == ["warning: the tracker board failed; metrics.jsonl has all of them"]


def test_events_of_tensorboard():
    tracker = TensorBoard.__new__(TensorBoard)
    tracker.writer = Board()
    tracker.log({"validation/loss": 2.5, "validation/bleu": 20.0}, 7, "samples")
    events = [("validation/loss", 2.5, 7), ("validation/bleu", 20.0, 7), ("validation/samples", "samples", 7)]
    assert tracker.writer.events == events


class Domain(PairsValidator):
    """A validator with a fixed score."""

    def __init__(self, score=0.0):
        super().__init__(None, batch_tokens=1)
        self.score, self.references = score, [["one two three four five"]]

    def choose(self, count):
        raise NotImplementedError

    def greedy(self, model, workers):
        raise NotImplementedError

    def measure(self, model, device, workers=None):
        return Validation(2.0, 7.0, 0.5, {"bleu": self.score}, self.score, [])


def validation_of(score, loss=2.0):
    return Validation(loss, 7.0, 0.5, {}, score, [])


@pytest.mark.parametrize(
    ("new", "score", "loss", "better"),
    [
        (validation_of(5.0), None, None, True),
        (validation_of(5.1), 5.0, 1.0, True),
        (validation_of(5.0), 5.0, None, False),
        (validation_of(5.0, 1.998), 5.0, 2.0, True),
        (validation_of(5.0, 1.9995), 5.0, 2.0, False),
        (validation_of(0.9, 1.5), 0.5, 2.0, True),  # a BLEU below 1 is ignored: the loss decides
        (validation_of(0.9, 2.0), 0.5, 2.0, False),
        (validation_of(4.9, 1.0), 5.0, 2.0, False),
        (validation_of(-2.0, 1.0), -1.0, 2.0, False),
    ],
)
def test_weights_are_better_by_the_score_or_if_it_says_nothing_by_the_loss(new, score, loss, better):
    assert Domain().is_better(new, score, loss) is better
    assert Domain().criterion.name == Criterion([["one two three four five"]]).name == "BLEU"
    assert Domain().describe(12.34) == "BLEU 12.3"


@pytest.mark.parametrize(("general", "score"), [(29.0, 40.0), (28.0, 40.0), (27.5, -0.5), (20.0, -8.0)])
def test_a_guarded_score_is_negative_by_what_was_forgotten_beyond_the_limit(general, score):
    guard = GuardedValidator(Domain(40.0), {("en", "es"): Domain(general)}, 2.0)
    guard.initial_measures = {GENERAL: 30.0}
    validation = guard.measure(None, None)
    assert (validation.score, validation.measures) == (score, {"bleu": 40.0, GENERAL: general})
    assert guard.describe(score) == ("BLEU 40.0" if score > 0 else f"forgot {-score:.1f} BLEU more than it may")
    guard.initial_measures = None
    assert guard.measure(None, None).score == 40.0


def test_the_last_share_of_a_training_is_self_critical():
    options = TrainingOptions(self_critical=0.25)
    assert [self_critical(options, progress) for progress in (0.7, 0.75, 1.0)] == [False, True, True]
    assert not self_critical(TrainingOptions(self_critical=0), 1.0)


def test_weights_may_fill_the_memory_of_a_gpu_and_not_more(monkeypatch):
    model = nn.Linear(1000, 1000)
    needed = memory_for_training(1_001_000, 0)
    for memory, processes in ((needed, 1), (needed // 2, 2), (None, 1)):
        monkeypatch.setattr(experiment, "gpu_memory", lambda device, memory=memory: memory)
        refuse_too_large(model, torch.device("cpu"), processes)
    monkeypatch.setattr(experiment, "gpu_memory", lambda device: needed - 1)
    with pytest.raises(UserError, match=r"to train 1M weights takes at least 0\.0 GiB, and the GPU has 0\.0 GiB"):
        refuse_too_large(model, torch.device("cpu"), 1)


def test_half_a_batch_is_advised_if_the_memory_is_full():
    for tokens, halved in ((4096, 2048), (1, 1)):
        options = TrainingOptions(batch_tokens=tokens, accumulate=3)
        with (
            pytest.raises(UserError, match=rf"training\.batch_tokens={halved} training\.accumulate=6"),
            explained_when_full(options),
        ):
            raise torch.OutOfMemoryError("CUDA out of memory.\nmore")
    with pytest.raises(RuntimeError, match="other"), explained_when_full(options):
        raise RuntimeError("other")


@pytest.mark.parametrize(
    ("settings", "shares", "pairs"),
    [
        ({}, None, None),
        ({"data.temperature": 2}, [0.75, 0.25], None),
        ({"data.mix": {"c.tsv": 0.5}}, [0.45, 0.05, 0.5], 200),
        ({"data.temperature": 2, "data.mix": {"c.tsv": 0.5}}, [0.375, 0.125, 0.5], 200),
    ],
)
def test_the_shares_of_corpora(settings, shares, pairs):
    """For 90 and 10 pairs, temperature 2 weights the corpora by square roots, 3 to 1."""
    dataset = TextDataset.__new__(TextDataset)
    dataset.configuration = resolve(overrides={"data.train": ["a.tsv", "b.tsv"], **settings})
    mixture, count = dataset._mixture([90, 10, 50][: 3 if pairs else 2])
    assert (mixture and pytest.approx(mixture), count) == (shares, pairs)


def test_placeholders_of_validation_pairs_are_masked_if_the_model_reads_masks():
    pair = Pair("Open {x} now", "Abra {x} ya")
    for share, masked in ((0.5, True), (0.0, False)):
        configuration = resolve(overrides={"data.placeholders": share})
        steps = dataset_steps(configuration)
        assert any(step.validation_texts([pair]) != [pair] for step in steps) is masked


@pytest.mark.parametrize(
    ("fit", "message"),
    [(1200, ""), (1199, "a.tsv: 1 of 1,200 validation pairs have more than 50 tokens"), (0, "all 1,200 validation")],
)
def test_pairs_that_are_too_long_are_counted(fit, message):
    console = Console(file=io.StringIO(), width=200)
    if fit:
        report_too_long("pairs", 1200, fit, 50, "a.tsv", console)
        text = console.file.getvalue()
    else:
        with pytest.raises(UserError) as caught:
            report_too_long("pairs", 1200, fit, 50, "a.tsv", console)
        text = str(caught.value)
    assert message in text and bool(text) == bool(message)


def test_a_perplexity_in_words():
    assert StreamValidator.describe(None, -12.346) == "perplexity 12.35 a word"


def test_a_perplexity_has_no_overflow(monkeypatch):
    domain = Domain()
    domain.sources, domain.references = ["a"], [["one two three four five"]]
    domain.tokenizer = SimpleNamespace(decode=lambda ids: "one two three four five")
    monkeypatch.setattr(domain, "greedy", lambda model, workers: [[4]])
    monkeypatch.setattr(domain, "_loss", lambda *_: [2e6, 1.0, 2.0])
    validation = PairsValidator.measure(domain, build_model(SMALL, 9, 9), torch.device("cpu"))
    sample = Sample("a", "one two three four five", "one two three four five")
    assert validation == Validation(1e6, math.exp(700), 0.5, {"bleu": pytest.approx(100)}, pytest.approx(100), [sample])
    monkeypatch.setattr(domain, "_loss", lambda *_: [0.0, 0.0, 0.0])
    assert PairsValidator.measure(domain, build_model(SMALL, 9, 9), torch.device("cpu"))[:3] == (0, 1, 0)


def test_only_the_first_process_measures_a_stream():
    model = build_model(LSTMLanguageOptions(width=4, hidden=4, layers=1), 9, 9)
    stream = StreamValidator(SimpleNamespace(size=Size(1, 2, 3)), None, window=4)
    workers = SimpleNamespace(leads=False, sum=lambda *sums: list(sums))
    measures = {"perplexity_word": 1.0, "bits_per_character": 0.0}
    assert stream.measure(model, torch.device("cpu"), workers) == Validation(0.0, 1.0, 0.0, measures, -1.0, [])


def test_parts_of_a_model_are_frozen_by_name():
    model = build_model(SMALL, 9, 9)
    assert parts(model)[:7] == ["embeddings", "decoder", "decoder_norm", "encoder", "encoder_norm", "output"] + [
        "source_embedding"
    ]
    total = sum(weight.numel() for weight in model.parameters())
    assert sizes(model) == (total, 0)
    freeze(model, ["encoder"])
    frozen = {name for name, weight in model.named_parameters() if not weight.requires_grad}
    assert frozen == {name for name, _ in model.named_parameters() if name.startswith(("encoder.", "encoder_norm."))}
    count = sum(model.get_parameter(name).numel() for name in frozen)
    assert sizes(model) == (total - count, count)
    with pytest.raises(UserError, match="has no part 'enkoder'"):
        freeze(model, ["enkoder"])
    with pytest.raises(UserError, match=r"training\.freeze=encoder,decoder,embeddings,output leaves nothing to learn"):
        freeze(model, ["encoder", "decoder", "embeddings", "output"])


def test_l2_sp_pulls_weights_to_their_initial_values():
    weight, unused = nn.Parameter(torch.tensor([1.0, 2.0])), nn.Parameter(torch.zeros(1))
    pull = L2SP([weight, unused], 0.5)
    weight.data += torch.tensor([2.0, -4.0])
    weight.grad = torch.tensor([10.0, 20.0])
    pull.pull()
    assert weight.grad.tolist() == [11.0, 18.0] and unused.grad is None


def test_states_of_other_devices_are_left_alone():
    state = torch.get_rng_state()
    expected = torch.rand(3)
    restore_random_states({"cpu": state, "mps": state, "cuda": state}, torch.device("cpu"))
    assert torch.equal(torch.rand(3), expected)
    restore_random_states({}, torch.device("mps"))
    assert list(random_states(torch.device("cpu"))) == ["cpu"]
