"""The ONNX engine finds the same outputs as our own search, which decodes unsupported models and options."""

import copy
import itertools
import math
import shutil
import subprocess
import sys

import numpy as np
import onnx
import pytest
import torch

from bitext.cancellation import Cancelled, call_between_steps
from bitext.pair import Pair
from tests.engines.test_engines import run_at
from translucid import Translator, UserError
from translucid.attention.scores import General
from translucid.corpora.phrasebook import generate
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.decoding_options import DecodingOptions, SearchRequest
from translucid.decoding.search import TorchEngine
from translucid.decoding.shortlist import Shortlist
from translucid.engines.onnx import conventions, recording, searching
from translucid.engines.onnx.quantization import quantize_products
from translucid.engines.onnx.recording import Graph
from translucid.engines.onnx.searching import OnnxEngine
from translucid.engines.tuned import Tuned, save_tuned
from translucid.engines.tuning import all_configurations
from translucid.models.build import build_model
from translucid.models.model_options import RecurrentOptions
from translucid.runs.configuration import resolve

BLOCKS = {"kind": "transformer", "heads": 2, "feed_forward": 24, "encoder_layers": 1, "decoder_layers": 2}
RECURRENT = {"kind": "recurrent"}
KINDS = {
    "pre-norm": BLOCKS | {"norm": "pre"},
    "post-norm, learned positions": BLOCKS | {"norm": "post", "positions": "learned", "nonlinearity": "gelu"},
    "without positions": BLOCKS
    | {"positions": "none", "nonlinearity": "swish", "zero_start": True, "source_end": False},
    "SSRU": BLOCKS | {"decoder": "ssru", "scale_embeddings": False},
    "Bahdanau": RECURRENT | {"cell": "gru", "attention": "bahdanau"},
    "Bahdanau, two layers": RECURRENT | {"cell": "lstm", "attention": "bahdanau", "layers": 2},
    "Luong": RECURRENT | {"attention": "luong-general", "combine_bias": True},
    "Luong, dot, input feeding": RECURRENT | {"attention": "luong-dot", "input_feeding": True, "bidirectional": False},
    "Luong, scaled dot": RECURRENT
    | {"cell": "gru", "attention": "luong-scaled-dot", "layers": 2, "first_state": "mean"},
    "Luong, concat": RECURRENT | {"attention": "luong-concat"},
    "no attention": RECURRENT | {"attention": "none", "layers": 2, "first_state": "last"},
    "Luong, local": RECURRENT | {"cell": "gru", "window": 2},
    "attention-only": {"kind": "attention-only", "encoder_layers": 1, "decoder_layers": 2},
}
OPTIONS = {
    "greedy": {"beam": 1},
    "beam": {"beam": 5},
    "n-best, no length penalty": {"beam": 4, "nbest": 3, "length_penalty": 0},
    "short outputs": {"beam": 6, "nbest": 6, "length_penalty": 2.0, "max_length_ratio": 0.5, "max_length_extra": 1},
    "long outputs, few loops": {"beam": 3, "min_length": 9, "max_loops": 2},
    "loops": {"beam": 3, "max_loops": 0},
}
WITH_ALL_OPTIONS = ("Luong",)
"""The kind that is searched with all options; others with n-best lists, whose states change places, and one more."""
PAIRS = [Pair(pair.source, pair.target) for pair in generate(200)]


@pytest.fixture(scope="module")
def engine_of():
    """Return a function for the PyTorch engine with a random model of a kind, and its tokenizer."""
    configuration = resolve(overrides={"data.tokenizer.vocabulary": 150})
    tokenizer = Tokenizer.learn(PAIRS, configuration.data.tokenizer, seed=1)
    engines = {}

    def make(kind):
        if kind not in engines:
            shape = resolve(overrides={"model": {"width": 16, "tie_output": False, **KINDS[kind]}}).model
            torch.manual_seed(3)
            model = build_model(shape, tokenizer.source_size, tokenizer.target_size).eval()
            for parameter in model.parameters():
                parameter.data += 0.4 * torch.randn_like(parameter)
            model.output.bias.data[3] += 2  # so that outputs end
            engines[kind] = TorchEngine.of(model, tokenizer, torch.device("cpu"))
        return engines[kind], tokenizer

    return make


def sources(tokenizer, count=16):
    encoded = tokenizer.encode_source([pair.source for pair in PAIRS[:count]])
    return [[*ids, 3] for ids in encoded] + [[3]]


def assert_same(our_lists, their_lists, atol=1e-3):
    """Assert that n-best lists are the same, except for the order of hypotheses with nearly equal scores."""
    for our_nbest, their_nbest in itertools.zip_longest(our_lists, their_lists):
        np.testing.assert_allclose([h.score for h in our_nbest], [h.score for h in their_nbest], atol=atol)
        for ours, theirs in zip(our_nbest, their_nbest, strict=True):
            if ours.tokens == theirs.tokens:
                np.testing.assert_allclose(ours.token_log_probabilities, theirs.token_log_probabilities, atol=atol)
                np.testing.assert_allclose(ours.log_probability, theirs.log_probability, atol=10 * atol)
            else:
                assert abs(ours.score - theirs.score) < 1e-5


@pytest.mark.parametrize("kind", KINDS)
def test_the_search_in_numpy_finds_what_our_own_search_finds(engine_of, kind):
    torch_engine, tokenizer = engine_of(kind)
    engine, ids = OnnxEngine.of(torch_engine, tokenizer), sources(tokenizer, 4)
    names = [*OPTIONS]
    if kind not in WITH_ALL_OPTIONS:
        names = ["n-best, no length penalty", names[[*KINDS].index(kind) % len(names)]]
    for name in names:
        settings = OPTIONS[name]
        options = DecodingOptions(**{"max_length_ratio": 1.0, "max_length_extra": 4, **settings})
        assert_same(torch_engine.decode(SearchRequest(ids, options)), engine.decode(SearchRequest(ids, options)))
    assert OnnxEngine.difference_from(torch_engine, tokenizer) < 1e-4


@pytest.mark.parametrize(("kind", "weights"), [("Luong", "float32"), ("SSRU", "int8")])
def test_a_translation_does_not_depend_on_the_others(engine_of, monkeypatch, kind, weights):
    torch_engine, tokenizer = engine_of(kind)
    engine, ids = OnnxEngine.of(torch_engine, tokenizer, quantization=weights, threads=2), sources(tokenizer, 9)
    assert str(engine) == f"onnx, {weights}, all pieces"
    options = DecodingOptions(beam=4, nbest=2, max_length_ratio=1)
    expected = [engine.decode(SearchRequest([sentence], options))[0] for sentence in ids]
    for rows in (searching.ROWS, 20):  # one batch; several batches, in two threads
        monkeypatch.setattr(searching, "ROWS", rows)
        assert_same(engine.decode(SearchRequest(ids, options)), expected, atol=1e-5)


def test_outputs_begin_with_the_target_prefix(engine_of):
    torch_engine, tokenizer = engine_of("Bahdanau")
    torch_engine = TorchEngine(torch_engine.model, torch_engine.word_starts, opening=[20, 11])
    engine = OnnxEngine.of(torch_engine, tokenizer)
    engine.opening = [20, 11]
    options = DecodingOptions(beam=3, nbest=2, min_length=4)
    expected, outputs = (
        torch_engine.decode(SearchRequest(sources(tokenizer, 5), options)),
        engine.decode(SearchRequest(sources(tokenizer, 5), options)),
    )
    assert_same(expected, outputs)
    assert outputs[0][0].tokens[:2] == [20, 11]
    assert outputs[0][0].token_log_probabilities[:2] == [0, 0]


def test_only_the_candidates_are_found(engine_of):
    torch_engine, tokenizer = engine_of("Luong")
    considered = "seen pieces"
    torch_engine = TorchEngine(
        torch_engine.model, torch_engine.word_starts, None, considered, Shortlist(range(4, 150, 3), {})
    )
    engine = OnnxEngine.of(torch_engine, tokenizer, considered=considered)
    options = DecodingOptions(beam=4, nbest=3)
    outputs = engine.decode(SearchRequest(sources(tokenizer), options))
    assert_same(torch_engine.decode(SearchRequest(sources(tokenizer), options)), outputs)
    assert all((token - 4) % 3 == 0 for nbest in outputs for hypothesis in nbest for token in hypothesis.tokens)
    assert str(engine) == "onnx, float32, seen pieces"


def test_unsupported_options_are_left_to_our_own_search(engine_of, monkeypatch):
    torch_engine, tokenizer = engine_of("post-norm, learned positions")
    engine, ids, calls = OnnxEngine.of(torch_engine, tokenizer), sources(tokenizer, 4), []
    engine.torch_engine = lambda: calls.append(True) or torch_engine
    for settings in ({"sample": True, "nbest": 2}, {"no_repeat_ngram": 2}):
        options = DecodingOptions(**settings)
        numbers = range(5, 5 + len(ids))
        assert engine.decode(SearchRequest(ids, options, None, numbers)) == torch_engine.decode(
            SearchRequest(ids, options, None, numbers)
        )
        assert calls.pop()
    engine.positions = 30  # too few for the longer source
    mixed, options, progress = [[9, 8, 3], [*range(20, 55), 3]], DecodingOptions(beam=2, max_length_ratio=0), []
    assert_same(
        engine.decode(SearchRequest(mixed, options, progress.append)),
        torch_engine.decode(SearchRequest(mixed, options)),
    )
    assert len(calls) == 1
    assert sum(progress) == 2
    engine.decode(SearchRequest(mixed[:1], options))
    assert len(calls) == 1
    assert engine.forced([(ids[0], [9, 3])]) == torch_engine.forced([(ids[0], [9, 3])])


def test_damaged_weights_are_reported(engine_of):
    torch_engine, tokenizer = engine_of("Bahdanau")
    damaged = copy.deepcopy(torch_engine)
    damaged.model.output.bias.data[7] = float("nan")
    with pytest.raises(UserError, match="not numbers"):
        OnnxEngine.of(damaged, tokenizer).decode(SearchRequest(sources(tokenizer, 1), DecodingOptions()))


def test_a_search_can_be_cancelled(engine_of):
    def cancel():
        raise Cancelled

    torch_engine, tokenizer = engine_of("Luong")
    engine = OnnxEngine.of(torch_engine, tokenizer, threads=2)
    with call_between_steps(cancel), pytest.raises(Cancelled):
        engine.decode(SearchRequest(sources(tokenizer), DecodingOptions(beam=40)))


def test_as_many_sentences_are_in_a_batch_as_the_cache_holds(engine_of, monkeypatch):
    torch_engine, tokenizer = engine_of("Luong")
    engine, sizes = OnnxEngine.of(torch_engine, tokenizer, threads=1), []
    search_batch = searching.search
    monkeypatch.setattr(
        searching,
        "search",
        lambda model, ids, *arguments: sizes.append(len(ids)) or search_batch(model, ids, *arguments),
    )
    short = {"max_length_ratio": 0, "max_length_extra": 1}
    engine.decode(SearchRequest(sources(tokenizer)[:5], DecodingOptions(beam=160, **short)))
    engine.decode(SearchRequest(sources(tokenizer)[:2], DecodingOptions(beam=1000, **short)))
    assert sizes == [2, 2, 1, 1, 1]


TEXTS = ["I like soccer.", "", "She works at the hospital."]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return the run folder of a recurrent model, with an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return run_at(tmp_path / "run", kind="recurrent")


def texts(run, engine="auto"):
    translator = Translator.load(run.path, "cpu", engine)
    return translator.engine.name, [result.text for result in translator.translate(TEXTS)]


def test_graphs_are_kept_until_the_weights_change(run, tmp_path, monkeypatch):
    save, saved = searching._save, []
    with monkeypatch.context() as patch:
        patch.setattr(searching, "_save", lambda *arguments: saved.append(arguments) or save(*arguments))
        assert texts(run) == ("onnx", texts(run, "torch")[1])
    assert len(saved) == 1  # the difference is measured with the same graphs
    (graphs,) = (tmp_path / "cache" / "translucid" / "onnx").glob("[!.]*")
    with monkeypatch.context() as patch:
        patch.setattr(searching, "_save", None)  # fails if a graph is converted again
        before = texts(run, "onnx")
    (graphs / "step.onnx").write_bytes(b"damaged")
    assert texts(run) == before
    shutil.copy(run_at(tmp_path / "other", seed=2, kind="recurrent").model_file, run.model_file)
    after = texts(run)
    assert after != before
    assert after[1] == texts(run, "torch")[1]


def test_graphs_have_edited_equations(run, monkeypatch, capsys):
    before = texts(run)
    monkeypatch.setattr(General, "forward", lambda self, query, key: -3 * query @ key.transpose(-2, -1))
    monkeypatch.setattr("translucid.engines.converted.equations_digest", lambda: "edited")
    assert texts(run) == ("onnx", texts(run, "torch")[1]) != before
    assert not capsys.readouterr().err


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        (lambda scores: torch.special.bessel_j0(scores), "the model's operation special_bessel_j0 can't become a part"),
        (lambda scores: scores * math.log(scores.size(-1)), "a number that depends on a length"),
        (lambda scores: scores - torch.tensor([1.0 / scores.size(-1)]), "a number that depends on a length"),
        (lambda scores: scores if scores.size(-1) % 2 else scores.tanh(), "other operations for other lengths"),
    ],
)
def test_our_own_search_computes_what_no_graph_can(run, monkeypatch, edit, problem):
    score = General.forward
    monkeypatch.setattr(General, "forward", lambda self, query, key: edit(score(self, query, key)))
    assert texts(run) == ("torch", texts(run, "torch")[1])
    with pytest.raises(UserError, match=problem):
        Translator.load(run.path, "cpu", "onnx")


def test_an_error_of_the_model_ends_the_log():
    with pytest.raises(ZeroDivisionError):
        recording.record(Graph(), lambda: 1 / 0, {}, {}, {})
    assert recording.as_one_operation(lambda x: [x], None, 1) == [1]  # outside a log, it needs no handler
    assert recording._current.get() is None


def test_models_without_graphs_are_refused():
    with pytest.raises(UserError, match="no ONNX graph"):
        conventions.refuse_unsupported(RecurrentOptions(attention="scores.py:Mine"))


def test_without_the_packages_our_own_search_is_used(run, monkeypatch):
    monkeypatch.setattr(conventions, "find_spec", lambda name: None if name == "onnxruntime" else name)
    assert texts(run)[0] == "torch"
    with pytest.raises(UserError, match=r"`engine=\"onnx\"` needs the package onnxruntime\. Install it with"):
        Translator.load(run.path, "cpu", "onnx")


def test_products_with_weights_of_8_bits(tmp_path):
    generator = np.random.default_rng(4)
    weights, bias = generator.normal(size=(6, 5)).astype(np.float32), generator.normal(size=6).astype(np.float32)
    rows = (generator.normal(size=(9, 5)) * 10.0 ** generator.integers(-3, 4, (9, 1))).astype(np.float32)
    rows[2] = weights[4] = 0
    graph = Graph()
    graph.input("x", torch.float32, {0: "rows"}, [None, 5])
    matrix, vector = graph.constant(torch.from_numpy(weights)), graph.constant(torch.from_numpy(bias))
    graph.output("with_bias", graph.add("Gemm", "x", matrix, vector, transB=1))
    graph.output("without", graph.add("Gemm", "x", matrix, transB=1))
    quantize_products(graph)
    graph.save(tmp_path / "x.onnx")
    session = searching._session(tmp_path / "x.onnx")
    outputs = session.run(None, {"x": rows})
    assert not any(constant.name == matrix for constant in onnx.load(tmp_path / "x.onnx").graph.initializer)

    def rounded(values, largest):
        scale = np.maximum(np.abs(values.astype(np.float64)).max(1, keepdims=True), 1e-30) / largest
        return scale * np.rint(values / scale)

    expected = rounded(rows, 127) @ rounded(weights, 63).T
    size = np.abs(rows).max(1, keepdims=True) + 1e-30
    np.testing.assert_allclose(outputs[1] / size, expected / size, atol=1e-5)
    np.testing.assert_allclose((outputs[0] - bias) / np.maximum(size, 1), expected / np.maximum(size, 1), atol=1e-5)
    assert np.abs(outputs[1] / size - rows @ weights.T / size).max() < 0.1
    for number in range(len(rows)):
        alone = session.run(None, {"x": rows[number : number + 1]})
        assert all((one == many[number]).all() for one, many in zip(alone, outputs, strict=True))


def test_weights_of_8_bits_are_used_if_they_were_chosen_for_this_engine(run):
    for engine, weights in (("ctranslate2", "float32"), ("onnx", "int8")):
        save_tuned(run.path, Tuned(engine=engine, quantization="int8"), None)
        translator = Translator.load(run.path, "cpu", "onnx")
        assert str(translator.engine) == f"onnx, {weights}, all pieces"
        assert translator.engine.difference < 1e-4  # that of the graphs before
    assert len(translator.translate(TEXTS)) == 3


def test_tuning_tries_onnx_where_ctranslate2_can_t_run(engine_of, monkeypatch):
    configurations = all_configurations(engine_of("Luong")[0].model, ["seen pieces", "small shortlist"])
    assert list(map(str, configurations)) == [
        "onnx, float32, all pieces",
        "onnx, int8, all pieces",
        "onnx, float32, seen pieces",
        "onnx, int8, seen pieces",
        "torch, float32, all pieces",
        "torch, float32, seen pieces",
        "torch, float32, small shortlist",
    ]


def test_pytorch_is_not_loaded_to_translate(run):
    program = (
        "import sys\nfrom translucid.cli.main import run\nsys.exit(run(sys.argv[1:]) or 10 * ('torch' in sys.modules))"
    )
    command = [sys.executable, "-c", program, "translate", str(run.path), TEXTS[0], "--device", "cpu"]
    expected = texts(run)  # converts the model; tests/engines/test_engines.py lets another process do that
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout == f"{expected[1][0]}\n"
