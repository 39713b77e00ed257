"""The learning of a dictionary: losses against NumPy, repetition, interruption and resumption."""

import os
import signal

import numpy as np
import pytest
import torch

from tests.inspection.conftest import untrained  # noqa: F401 - a fixture
from translucid import Translator, UserError
from translucid.circuits import training
from translucid.circuits.dictionary import Dictionary
from translucid.circuits.replacement import read_states, with_sublayers
from translucid.circuits.training import FeatureOptions, Learner, learn_features, revival_loss, text_pairs
from translucid.circuits.transcoder import Transcoder
from translucid.ground.console import Console
from translucid.ground.interruption import Interrupted

PAIRS = [("I like soccer.", "Me gusta el fútbol."), ("She reads a book.", "Ella lee un libro."), ("I like", "Me gusta")]
OPTIONS = FeatureOptions(expansion=4, active=4, updates=6, batch_tokens=40)
CONSOLE = Console(stderr=True)


@pytest.fixture
def translator(run):
    return Translator.load(run, "cpu", "torch")


def ids(translator, pairs=PAIRS):
    return [pair.ids for pair in translator.pipeline.pairs(pairs)]


def weights(transcoders):
    return {
        f"{name}.{key}": parameter.detach().clone()
        for name, transcoder in transcoders.items()
        for key, parameter in transcoder.named_parameters()
    }


def assert_equal(ours, theirs):
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_learning_explains_more(translator):
    learner = Learner(translator.model, ids(translator), FeatureOptions(4, 4, 80, 1, 200), "cpu")
    pairs = ids(translator)

    def figures():
        error = divergence = 0.0
        with torch.no_grad():
            for pair in pairs:
                source, target = (torch.tensor([side]) for side in pair)
                states = read_states(translator.model, learner.transcoders, source, target)
                for name, transcoder in learner.transcoders.items():
                    error += (states.outputs[name] - transcoder(states.inputs[name])).pow(2).sum().item()
                divergence += learner.divergence(source, target, states.features).item()
        return error, divergence

    before = figures()
    for _ in learner.learn():
        pass
    after = figures()
    assert after[0] < 0.6 * before[0] and after[1] < 0.6 * before[1]


def test_the_divergence_is_that_of_the_model_with_all_sublayers_replaced(translator):
    learner = Learner(translator.model, ids(translator), OPTIONS, "cpu")
    source, target = (torch.tensor([side]) for side in ids(translator)[0])
    with torch.no_grad():
        states = read_states(translator.model, learner.transcoders, source, target)
        divergence = learner.divergence(source, target, states.features).item()
        logits = translator.model.output(states.features).double().numpy()
        replaced = with_sublayers(translator.model, learner.transcoders)
        others = replaced.output(read_states(replaced, (), source, target).features).double().numpy()
    p, q = (np.exp(rows) / np.exp(rows).sum(-1, keepdims=True) for rows in (logits, others))
    assert divergence == pytest.approx((p * np.log(p / q)).sum(-1).mean(), rel=1e-4)
    assert divergence > 0.01


def test_dead_features_learn_what_is_missing():
    torch.manual_seed(1)
    transcoder = Transcoder(6, 10, 2)
    x, error = torch.randn(5, 6), torch.randn(5, 6)
    dead = torch.tensor([False] * 6 + [True] * 4)
    pre_activations = transcoder.pre_activations(x)
    loss = revival_loss(transcoder, pre_activations, error, dead)
    explained = np.zeros((5, 6))
    values = np.maximum(0, pre_activations.detach().numpy()[:, 6:])
    for row in range(5):
        for feature in np.argsort(-values[row])[:3]:  # D / 2 of them
            explained[row] += values[row, feature] * transcoder.decoder_weight[6 + feature].detach().numpy()
    expected = ((error.numpy() - explained) ** 2).sum() / (error.numpy() ** 2).sum()
    assert loss.item() == pytest.approx(expected, rel=1e-5)
    loss.backward()
    assert not transcoder.encoder_weight.grad[:6].any() and transcoder.encoder_weight.grad[6:].any()
    assert revival_loss(transcoder, pre_activations, error, torch.zeros(10, dtype=torch.bool)) == 0


def test_the_same_seed_gives_the_same_bits_also_after_an_interruption(translator, monkeypatch):
    monkeypatch.setattr(training, "DEAD_AFTER", 30)
    whole = Learner(translator.model, ids(translator), OPTIONS, "cpu")
    for _ in whole.learn():
        pass
    first = Learner(translator.model, ids(translator), OPTIONS, "cpu")
    updates = first.learn()
    for _ in range(4):
        next(updates)
    second = Learner(translator.model, ids(translator), OPTIONS, "cpu")
    second.load_state(*first.state())
    for _ in second.learn():
        pass
    assert second.update == whole.update == 6
    assert_equal(weights(second.transcoders), weights(whole.transcoders))
    other = Learner(translator.model, ids(translator), FeatureOptions(4, 4, 6, 2, 40), "cpu")
    for _ in other.learn():
        pass
    assert not torch.equal(other.transcoders["decoder.0"].encoder_weight, whole.transcoders["decoder.0"].encoder_weight)


def test_ctrl_c_saves_and_a_resumed_learning_ends_with_the_same_dictionary(translator, run, monkeypatch):
    expected = learn_features(translator, PAIRS, OPTIONS, console=CONSOLE)
    learn, state = Learner.learn, run / "circuits" / "state"
    assert not state.exists()

    def interrupted(self):
        for number, _ in enumerate(learn(self)):
            if number == 2:
                os.kill(os.getpid(), signal.SIGINT)
            yield

    with monkeypatch.context() as patched:
        patched.setattr(Learner, "learn", interrupted)
        with pytest.raises(Interrupted):
            learn_features(translator, PAIRS, OPTIONS, console=CONSOLE)
    assert (state / "checkpoint.safetensors").exists()
    with pytest.raises(UserError, match="other options, other text or another model"):
        learn_features(translator, PAIRS, FeatureOptions(4, 4, 7, 1, 40), console=CONSOLE, resume=True)
    resumed = learn_features(translator, PAIRS, OPTIONS, console=CONSOLE, resume=True)
    assert resumed.digest == expected.digest == Dictionary.load(run).digest
    assert not state.exists()
    assert learn_features(translator, PAIRS, OPTIONS, console=CONSOLE, resume=True).digest == expected.digest
    with pytest.raises(UserError, match="nothing to resume"):
        learn_features(translator, PAIRS, FeatureOptions(4, 4, 7, 1, 40), console=CONSOLE, resume=True)


def test_the_model_does_not_change(translator):
    before = {name: parameter.clone() for name, parameter in translator.model.named_parameters()}
    learn_features(translator, PAIRS, OPTIONS, console=CONSOLE)
    for name, parameter in translator.model.named_parameters():
        assert torch.equal(parameter, before[name]) and parameter.grad is None


def test_what_features_are_not_learned_from(translator, untrained):  # noqa: F811
    with pytest.raises(UserError, match="no feed-forward sublayers"):
        learn_features(Translator.load(untrained("bahdanau"), "cpu", "torch"), PAIRS, OPTIONS, console=CONSOLE)
    with pytest.raises(UserError, match="own weights"):
        learn_features(translator.ablated("encoder.0.self.head.0"), PAIRS, OPTIONS, console=CONSOLE)
    with pytest.raises(UserError, match="no pairs"):
        learn_features(translator, [], OPTIONS, console=CONSOLE)
    with pytest.raises(UserError, match="only 16 features"):
        learn_features(translator, PAIRS, FeatureOptions(1, 17), console=CONSOLE)


def test_text_without_targets_is_translated(translator, tmp_path):
    (tmp_path / "sources.txt").write_text("I like soccer.\n\nShe reads a book.\n", encoding="utf-8")
    (tmp_path / "pairs.tsv").write_text("I like\tMe gusta\n", encoding="utf-8")
    files = [str(tmp_path / "sources.txt"), str(tmp_path / "pairs.tsv")]
    pairs = text_pairs(translator, files, console=CONSOLE)
    assert [source for source, _ in pairs] == ["I like soccer.", "She reads a book.", "I like"]
    assert pairs[0][1] == translator.translate("I like soccer.", beam=1).text and pairs[2][1] == "Me gusta"
