"""The lines that the lessons show as the code of an equation compute what the models compute."""

import ast
import inspect

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from translucid.attention.attend import attend, masked_softmax, scaled_dot_product
from translucid.attention.masks import target_mask
from translucid.attention.multi_head import MultiHeadAttention
from translucid.attention.points import handling
from translucid.attention.scores import Concat, Dot, General
from translucid.circuits import Change, Transcoder
from translucid.circuits.dictionary import sublayers_of
from translucid.circuits.faithfulness import Question
from translucid.circuits.graph import logit_target
from translucid.circuits.linear import HeldModel, HeldNorm
from translucid.circuits.nodes import Parts
from translucid.circuits.steering import SteeredFeedForward
from translucid.data.document_context import ContextOptions
from translucid.decoding import search
from translucid.decoding.decoding_options import DecodingOptions, length_penalty
from translucid.decoding.pair_scores import pair_scores
from translucid.ground.special import SPECIAL
from translucid.inspection.ablation import replace_heads
from translucid.inspection.contributions import Terms, normalized
from translucid.inspection.lens import decoder_states, lens_log_probs
from translucid.inspection.patching import replacing
from translucid.layers.positions import sinusoidal_positions
from translucid.lessons import equations
from translucid.lessons.lessons import LESSONS
from translucid.live import Proposal
from translucid.live.policies import AlignAtt
from translucid.models.build import build_model
from translucid.models.model_options import RecurrentOptions, TransformerOptions

SHOWN = [name for lesson in LESSONS for name in lesson.equations]


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(7)


def test_every_lesson_shows_about_ten_lines_and_every_function_is_shown():
    functions = {name for name, _ in inspect.getmembers(equations, inspect.isfunction)}
    assert sorted(SHOWN) == sorted(functions)
    for lesson in LESSONS:
        lines = 0
        for name in lesson.equations:
            tree = ast.parse(inspect.getsource(getattr(equations, name)))
            statements = tree.body[0].body[1:]  # without the docstring
            lines += statements[-1].end_lineno - statements[0].lineno + 1
        assert 1 <= lines <= 12, lesson.name


def test_decoder_state():
    model = build_model(RecurrentOptions(width=6, attention="none", cell="gru", layers=1, bidirectional=False), 9, 9)
    model.eval()
    ids = torch.tensor([[4, 5, 6, SPECIAL.end]])
    nn.init.normal_(model.encoder.bridges[0].weight)
    states = model.encoder.recurrence.read(model.source_embedding(ids), torch.tensor([4]))[0][0]
    recurrence = model.decoder.recurrence
    words = torch.tensor([[1, 7, 8]])
    state = equations.decoder_state(
        states,
        model.target_embedding(words)[0],
        model.encoder.bridges[0].weight,
        lambda h, word: recurrence.step(word[None], (h[None, None],))[0][0],
    )
    model.encoder.bridges[0].bias.data.zero_()
    assert_close(state, model.features(model.encode(ids), words)[0, -1])


def test_scores():
    h, y = torch.randn(1, 6), torch.randn(5, 6)
    score = General(6)
    assert_close(equations.dot(h[0], y), Dot()(h, y)[0])
    assert_close(equations.general(h[0], y, score.weight.weight), score(h, score.keys(y))[0])
    score = Concat(6)
    nn.init.normal_(score.v)
    W, U = score.query.weight, score.key.weight
    key = score.keys(y)
    expected = score.over(key[None])(h[None], key[None])[0, 0]
    assert_close(equations.additive(h[0], y, W, U, score.v) - expected, torch.zeros(5), atol=1e-5, rtol=0)


def test_attention_and_masks():
    Q, K, V = torch.randn(3, 4), torch.randn(5, 4), torch.randn(5, 6)
    assert_close(equations.attention(Q, K, V), attend(Q, K, V)[0])
    tokens = torch.tensor([4, 5, 0, 0])
    m = equations.target_mask(tokens, 0)
    assert torch.equal(m, target_mask(tokens[None], 0)[0, 0])
    m[2] = False
    scores = torch.randn(4, 4)
    assert_close(equations.masked_weights(scores, m), masked_softmax(scores, m))


@pytest.mark.parametrize("power", [0, 0.5, 1])
def test_slopes_are_those_of_the_softmax(power):
    q, K = torch.randn(8), torch.randn(3, 8)
    scores = scaled_dot_product(q[None], K, 8**-power)[0]
    jacobian = torch.autograd.functional.jacobian(masked_softmax, scores)
    assert_close(equations.slopes(q, K, power), jacobian.diagonal())


def test_positions():
    assert_close(equations.positions(70, 128), sinusoidal_positions(70, 128), atol=1e-4, rtol=0)


def test_heads():
    module = MultiHeadAttention(8, 2)
    x, y = torch.randn(3, 8), torch.randn(5, 8)
    W_Q = module.query.weight.unflatten(0, (2, 4)).mT
    W_K, W_V = (weight.unflatten(0, (2, 4)).mT for weight in module.key_value.weight.chunk(2))
    W_O = module.output.weight.T
    assert_close(equations.multi_head(x, y, W_Q, W_K, W_V, W_O), module(x[None], y[None])[0])
    heads = [equations.attention(x @ W_Q[i], y @ W_K[i], y @ W_V[i]) for i in range(2)]
    handler = replace_heads([1], [None])
    with handling(module, {"attention.heads": handler}):
        without = module(x[None], y[None])[0]
    assert_close(equations.multi_head_without(heads, W_O.chunk(2), {1}), without)


SIZES = {"width": 8, "heads": 2, "feed_forward": 16, "encoder_layers": 1, "decoder_layers": 2}


@pytest.fixture
def model():
    model = build_model(TransformerOptions(**SIZES), 9, 9).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.4)
    return model


@pytest.mark.parametrize("K", [1, 2, 4])
def test_beam_search(model, K):
    source = torch.tensor([[4, 5, 6, SPECIAL.end]])
    never = [model.pad, model.bos, SPECIAL.unknown]  # a search never writes padding, the start token or <unk>
    memory = model.encode(source)

    def log_probs(prefix):
        target = torch.tensor([[model.bos, *prefix]])
        values = model.output(model.features(memory, target))[0, -1].log_softmax(-1)
        values[never] = -torch.inf
        if len(prefix) < 3:
            values[model.eos] = -torch.inf
        return values.tolist()

    def score(log_p, length):
        return log_p / length_penalty(length, 1.0)

    with torch.inference_mode():
        model.output.weight.mul_(0.3)
        model.output.bias[model.eos] += 3  # hypotheses end before the limit
        words = equations.beam_search(log_probs, model.eos, K, 30, score)
    options = DecodingOptions(beam=K, length_penalty=1.0, min_length=3, max_length_extra=50, max_loops=0)
    assert 1 < len(words) < 30
    assert list(words) == searched(model, source[0].tolist(), options)


def test_layers(model):
    source, target = torch.tensor([[4, 5, 2]]), torch.tensor([[6, 7, 2]])
    for layer, state in enumerate(decoder_states(model, source, target)):
        expected = lens_log_probs(model, state, layer)[0, 1].exp()
        shown = equations.layer_prediction(state[0, 1], model.decoder_norm, model.output.weight, model.output.bias)
        assert_close(shown, expected)


def test_contributions():
    inputs, weights = torch.randn(1, 1, 4, 6), torch.rand(1, 1, 1, 4)
    terms = weights[0, 0, 0][:, None] * inputs[0, 0]
    sublayer = Terms(weights, inputs, torch.zeros(1, 1, 6), terms.sum(0)[None, None])
    expected = normalized(sublayer.differences().clamp(min=0))
    assert_close(equations.contributions(terms), expected[0, 0])


def test_patching():
    states, clean = torch.randn(1, 4, 6), torch.randn(1, 4, 6)
    expected = replacing(clean, [[(2, 2)]])(states, 0)
    assert_close(equations.patched(states[0], clean[0], 2), expected[0])
    assert equations.carried(6.0, -4.0, -4.0) == 0 and equations.carried(6.0, -4.0, 6.0) == 1
    assert equations.carried(6.0, -4.0, 3.5) == 0.75


def test_context(model):
    options = ContextOptions(max_sentences=1, separator=8, max_tokens=50)
    previous, sentence = [4, 5], [6, 7, 2]
    source = equations.with_context(previous, 8, sentence)
    assert source == [*options.context([previous], len(sentence)), *sentence]
    targets = {"y": [6, 2], "y'": [5, 4, 2]}
    first, second = pair_scores(model, [(source, targets["y"]), (source, targets["y'"])], torch.device("cpu"))

    def log_p(ids, text):
        ((score),) = pair_scores(model, [(ids, targets[text])], torch.device("cpu"))
        return score.log_probability

    expected = first.log_probability - second.log_probability
    assert equations.log_odds(log_p, source, "y", "y'") == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("f", [0, 1, 2, 9])
def test_live_translation(f):
    """The decisions are those of the policy on the same maps: attention of each target word after each source word."""
    source, target = list("abcdef"), list("ABCDE")
    maps = torch.rand(len(source) + 1, len(target), len(source), generator=torch.Generator().manual_seed(f))

    def continuation(x, y):
        for i in range(len(y), len(target)):
            yield target[i], maps[len(x), i, : len(x)]

    expected, policy = [], AlignAtt(f)
    for heard in range(1, len(source) + 1):
        while len(expected) < len(target):
            i = len(expected)
            proposal = Proposal(maps[heard, i, :heard].numpy(), range(heard), heard, i)
            if heard < len(source) and not policy.writes(proposal):
                break
            expected.append((target[i], heard))
    assert equations.live_translation(continuation, source, f) == expected
    assert [word for word, _ in expected] == target
    assert (expected[0][1] == len(source)) == (f == 9)


def test_transcoder_and_steering():
    module, x = Transcoder(6, 20, 4), torch.randn(6)
    nn.init.normal_(module.encoder_bias)
    nn.init.normal_(module.decoder_bias)
    f, written = equations.transcoder(x, *module.parameters(), 4)
    assert_close(f, module.features(x))
    assert_close(written, module(x))
    assert (f > 0).sum() == 4
    i, sublayer = int(f.argmax()), nn.Linear(6, 6)
    for factor in (0, 1, 3):
        expected = SteeredFeedForward(sublayer, module, {i: Change(factor=factor)})(x)
        assert_close(equations.steered(sublayer(x), f, module.decoder_weight, i, factor), expected)


def test_a_norm_whose_deviation_is_held():
    norm, x, other = nn.LayerNorm(6), torch.randn(1, 1, 6), torch.randn(1, 1, 6)
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    held = HeldNorm(norm)
    held(x)  # the sentence
    sigma = (x.var(unbiased=False) + norm.eps).sqrt()
    for state in (x, other):
        assert_close(equations.held_norm(state[0, 0], sigma, norm.weight, norm.bias), held(state)[0, 0])


def test_direct_effects(model):
    """The effects are those of the graph's nodes, and reach the logit of the model exactly."""
    model, source, prefix = model.double(), torch.tensor([[4, 5, 2]]), torch.tensor([[1, 6, 7]])
    held = HeldModel(model, source, prefix)
    transcoders = {}
    for name, sublayer in sublayers_of(model).items():
        transcoders[name] = Transcoder.of_neurons(sublayer, 16, 3).requires_grad_(False)
    parts = Parts(held, transcoders)
    target, output_bias = logit_target(Question(model, source, prefix, (5,)))
    w = torch.cat([vectors for _, vectors in parts.vectors.values()])

    def logit(w):
        leaves, start = {}, 0
        for point, (positions, vectors) in parts.vectors.items():
            own = w[start : start + len(vectors)]
            start += len(vectors)
            constant = parts.constant.get(point, torch.zeros_like(held.leaves[point]))
            leaves[point] = constant + torch.zeros_like(constant).index_add(1, positions, own[None])
        return held.values([target.point], leaves)[target.point][0, -1] @ target.vector + output_bias

    effects, bias = equations.direct_effects(logit, w)
    expected, _ = parts.effects(held.gradients([target]))
    assert_close(effects, expected[0])
    logits = model.decode(model.encode(source), prefix)[0, -1]
    assert_close(effects.sum() + bias, logits[5] - logits.mean())


def searched(model, ids, options):
    """Return the ids that the package's search finds."""
    with torch.inference_mode():
        ((best,),) = search.beam_search(search.prepare(model, torch.tensor([ids]), options), options.beam, 1).best(1)
    return best.with_end
