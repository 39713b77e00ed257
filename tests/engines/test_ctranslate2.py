"""A converted model gives the same log-probabilities as ours, and its search follows the same rules."""

import math
import os
from itertools import pairwise

import ctranslate2
import numpy as np
import pytest
import torch

from bitext.pair import Pair
from translucid.corpora.phrasebook import generate
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions
from translucid.decoding.decoding_options import DecodingOptions, SearchRequest, find_loop, length_limit
from translucid.decoding.maps import cross_attention
from translucid.decoding.search import TorchEngine
from translucid.engines.ctranslate2.convert import export_ctranslate2, save_ctranslate2
from translucid.engines.ctranslate2.searching import CTranslate2Engine, open_translator
from translucid.engines.tuned import Tuned
from translucid.engines.tuning import trials
from translucid.ground.errors import UserError
from translucid.interop.ctranslate2 import read_model_file
from translucid.kernels import devices
from translucid.models.build import build_model
from translucid.models.model_options import TransformerOptions

CPU = torch.device("cpu")
PAIRS = [Pair(p.source, p.target) for p in generate(400, max_words=8)]


@pytest.fixture(scope="module", params=[True, False], ids=["joint", "separate"])
def tokenizer(request):
    return Tokenizer.learn(PAIRS, TokenizerOptions(vocabulary=200, joint=request.param), seed=1)


def model_of(tokenizer, **changes):
    """Return a random model with larger weights than usual, so that outputs have clearly different scores."""
    torch.manual_seed(1)
    shape = {"width": 16, "heads": 2, "feed_forward": 32, "encoder_layers": 2, "decoder_layers": 1, "dropout": 0.1}
    shape |= {"share_embeddings": tokenizer.joint, **changes}
    model = build_model(TransformerOptions(**shape), tokenizer.source_size, tokenizer.target_size).eval()
    for parameter in model.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    model.output.bias.data[:3] -= 20  # special tokens: CTranslate2 suppresses them before the softmax
    return model


def sources_of(tokenizer, count=40):
    texts = [pair.source for pair in PAIRS[:count]]
    return [[*ids, 3] for ids in tokenizer.encode_source(texts)]


def engines(model, tokenizer):
    torch_engine = TorchEngine.of(model, tokenizer, CPU)
    return torch_engine, CTranslate2Engine.of(torch_engine, tokenizer)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"norm": "post"},
        {"positions": "learned", "max_length": 60},
        {"positions": "none"},
        {"tie_output": False},
    ],
    ids=str,
)
def test_every_kind_of_transformer_gives_the_same_log_probabilities(tokenizer, changes, tmp_path):
    model = model_of(tokenizer, **changes)
    save_ctranslate2(model, tokenizer, tmp_path / "model")
    converted = ctranslate2.Translator(str(tmp_path / "model"), intra_threads=1)
    for source, pair in zip(sources_of(tokenizer, 5), PAIRS, strict=False):
        target = tokenizer.encode_target([pair.target])[0]
        pieces = tokenizer.source_pieces(source[:-1]), tokenizer.target_pieces(target)
        log_probs = converted.score_batch([[*pieces[0], "</s>"]], [pieces[1]])[0].log_probs
        with torch.no_grad():
            logits = model.decode(model.encode(torch.tensor([source])), torch.tensor([[2, *target]]))
        expected = logits.log_softmax(-1)[0].gather(1, torch.tensor([*target, 3])[:, None])[:, 0]
        torch.testing.assert_close(torch.tensor(log_probs), expected, atol=1e-4, rtol=1e-4)


def test_sentences_longer_than_the_table_of_computed_positions_are_left_to_pytorch(tokenizer, tmp_path):
    """The table has `max_length` rows, at most 1,024; CTranslate2 fails on longer sentences."""
    model = model_of(tokenizer, max_length=12)
    save_ctranslate2(model, tokenizer, tmp_path / "model", "int8")
    encodings = read_model_file(tmp_path / "model" / "model.bin").variables["decoder/position_encodings/encodings"]
    assert encodings.shape == (12, 16) and encodings.dtype == np.float16
    torch_engine, engine = engines(model, tokenizer)
    decoded = []
    decode = torch_engine.decode
    torch_engine.decode = lambda request: decoded.extend(request.sentences) or decode(request)
    options = DecodingOptions(beam=1, max_length_ratio=0, max_length_extra=3, max_loops=0)
    short, long = [5, 6, 7, 3], [*range(5, 17), 3]
    results = engine.decode(SearchRequest([short, long], options))
    assert decoded == [long] and len(results[0]) == len(results[1]) == 1
    save_ctranslate2(model_of(tokenizer, max_length=9999), tokenizer, tmp_path / "wide")
    encodings = read_model_file(tmp_path / "wide" / "model.bin").variables["encoder/position_encodings/encodings"]
    assert encodings.shape == (1024, 16) and encodings.dtype == np.float32


@pytest.mark.parametrize("beam", [1, 4])
def test_both_engines_find_the_same(tokenizer, beam):
    torch_engine, engine = engines(model_of(tokenizer), tokenizer)
    # Without loops, from which the two recover differently; and short, because its beam stays as wide when a hypothesis
    # ends while ours gets narrower.
    options = DecodingOptions(beam=beam, max_length_ratio=0.5, max_length_extra=5, max_loops=0)
    alone = sources_of(tokenizer)
    with_context = [[*previous[:-1], 4, *source] for previous, source in pairwise(alone)]  # any piece may separate them
    sources = [*alone, *with_context, [3]]
    progress = []
    expected, results = (
        torch_engine.decode(SearchRequest(sources, options)),
        engine.decode(SearchRequest(sources, options, progress.append)),
    )
    assert sum(progress) == len(sources)
    is_equal = [ours[0].tokens == theirs[0].tokens for ours, theirs in zip(expected, results, strict=True)]
    assert sum(is_equal) >= 0.99 * len(is_equal)
    for ours, theirs, equal in zip(expected, results, is_equal, strict=True):
        assert theirs[0].score >= ours[0].score - 1e-3
        if equal:
            assert theirs[0].log_probability == pytest.approx(ours[0].log_probability, abs=1e-3)
            assert theirs[0].score == pytest.approx(ours[0].score, abs=1e-3)
    assert results[-1][0].tokens == []


def bigram_model(tokenizer, probabilities):
    """Return a model whose next token depends on the last one only: {token: {next token: probability}}."""
    shape = {"width": 32, "norm": "pre", "positions": "none", "share_embeddings": False, "tie_output": False}
    model = model_of(tokenizer, **shape, scale_embeddings=False)
    for name, parameter in model.named_parameters():
        if name.startswith("decoder"):
            parameter.data.fill_(1.0 if name.endswith("norm.weight") else 0.0)
    one_hot = torch.zeros(tokenizer.target_size, 32)
    logits = torch.full((tokenizer.target_size, 32), -20.0)
    logits[:31] = -40.0
    one_hot[:, 31] = 1.0  # other tokens, which never end
    for token, following in probabilities.items():
        one_hot[token] = torch.eye(32)[token]
        for next_token, probability in following.items():
            logits[next_token, token] = math.log(probability)
    model.target_embedding.tokens.weight.data = one_hot
    normalized = torch.nn.functional.layer_norm(one_hot[2], (32,))
    high, low = normalized[2], normalized[0]
    model.output.weight.data = logits / (high - low)
    model.output.bias.data = -low * model.output.weight.data.sum(1)
    return model


def test_short_hypotheses_do_not_end_the_search(tokenizer):
    """The fifth hypothesis ends before the best one, which is the longest."""
    start, end, first, second, third, other, *long = range(2, 15)
    following = {
        start: {first: 0.4, long[0]: 0.25, second: 0.2, third: 0.15},
        first: {end: 0.8, other: 0.2},
        second: {end: 0.61, other: 0.39},
        third: {other: 1.0},
        other: {end: 1.0},
    }
    following |= {token: {next_token: 1.0} for token, next_token in pairwise([*long, end])}
    torch_engine, engine = engines(bigram_model(tokenizer, following), tokenizer)
    options = DecodingOptions(beam=5, max_loops=0, max_length_ratio=0, max_length_extra=20)
    for searching in (torch_engine, engine):
        ((best,),) = searching.decode(SearchRequest([[5, 3]], options))
        assert best.tokens == long
        assert best.log_probability == pytest.approx(math.log(0.25), abs=1e-3)


@pytest.mark.parametrize(
    ("beam", "options"),
    [
        (1, {"no_repeat_ngram": 1}),
        (4, {"no_repeat_ngram": 2, "nbest": 4}),
        (4, {"max_length_ratio": 0, "max_length_extra": 4, "nbest": 4}),
        (1, {"max_length_ratio": 0.3, "max_length_extra": 1, "length_penalty": 0}),
        (4, {"min_length": 3}),
    ],
    ids=str,
)
def test_an_option_gives_what_our_search_gives(tokenizer, beam, options):
    """Forbidden tokens keep their probability, and an output that is cut off by its limit has to end."""
    torch_engine, engine = engines(model_of(tokenizer), tokenizer)
    options = {"max_loops": 0, "max_length_ratio": 0.5, **options}
    decoding = DecodingOptions(beam=beam, **options | {"nbest": min(options.get("nbest", 1), beam)})
    sources = sources_of(tokenizer)
    equal = total = 0
    for ours, theirs in zip(
        torch_engine.decode(SearchRequest(sources, decoding)),
        engine.decode(SearchRequest(sources, decoding)),
        strict=True,
    ):
        equal += [hypothesis.tokens for hypothesis in ours] == [hypothesis.tokens for hypothesis in theirs]
        total += 1
        # Where the searches differ, as the one gets narrower, CTranslate2's is no worse.
        assert theirs[0].score >= ours[0].score - 1e-3
    assert equal >= 0.95 * total


def test_the_rules_hold_whatever_the_engine(tokenizer):
    torch_engine, engine = engines(model_of(tokenizer), tokenizer)
    sources = sources_of(tokenizer)
    short = DecodingOptions(beam=2, max_length_ratio=0, max_length_extra=3, min_length=2)
    loops = DecodingOptions(beam=1, max_loops=2, max_length_extra=40)
    without_repeats = DecodingOptions(beam=3, nbest=3, no_repeat_ngram=2, length_penalty=0.6, max_length_extra=10)
    sampled = DecodingOptions(sample=True, max_length_extra=5, max_length_ratio=1)
    for options in (short, loops, without_repeats, sampled):
        expected, results = (
            torch_engine.decode(SearchRequest(sources, options)),
            engine.decode(SearchRequest(sources, options)),
        )
        for ours, theirs in zip(expected, results, strict=True):
            assert 1 <= len(theirs) <= options.nbest
            assert all(options.min_length <= len(h.tokens) for h in theirs)
            if options is short:
                assert all(len(h.tokens) <= 3 for h in theirs)
            if options in (loops, sampled):
                assert ours[0].tokens == theirs[0].tokens
            if options is without_repeats:
                bigrams = list(pairwise(theirs[0].tokens))
                assert len(bigrams) == len(set(bigrams))
            assert [h.score for h in theirs] == sorted((h.score for h in theirs), reverse=True)


@pytest.mark.parametrize(("beam", "shortest"), [(1, 2), (4, 8), (4, 30)])
def test_a_minimum_length_gives_what_our_search_gives_also_beyond_the_limit(tokenizer, beam, shortest):
    torch_engine, engine = engines(model_of(tokenizer), tokenizer)
    options = DecodingOptions(beam=beam, nbest=beam, min_length=shortest, max_length_ratio=1, max_length_extra=1)
    sources = [*sources_of(tokenizer), [3]]
    limits = [length_limit(len(ids) - 1, options, None) for ids in sources]
    assert shortest != 30 or min(limits) < 30
    expected, results = (
        torch_engine.decode(SearchRequest(sources, options)),
        engine.decode(SearchRequest(sources, options)),
    )
    assert expected == results
    for hypotheses, limit in zip(results[:-1], limits, strict=False):
        assert all(min(shortest, limit) <= len(hypothesis.tokens) <= limit for hypothesis in hypotheses)


def test_scores_are_higher_by_what_is_forbidden_there(tokenizer):
    options = DecodingOptions(beam=1, min_length=0, max_length_ratio=0.5, max_length_extra=5, max_loops=0)
    sources = sources_of(tokenizer)
    compared = 0
    for ending in (3, 5):  # so that outputs end before the limit
        model = model_of(tokenizer)
        model.output.bias.data[:4] += torch.tensor([20.0, 20.0, 20.0, ending])
        torch_engine, engine = engines(model, tokenizer)
        for source, (ours,), (theirs,) in zip(
            sources,
            torch_engine.decode(SearchRequest(sources, options)),
            engine.decode(SearchRequest(sources, options)),
            strict=True,
        ):
            if ours.tokens == theirs.tokens and len(ours.tokens) < length_limit(len(source) - 1, options, None):
                with torch.no_grad():
                    logits = model.decode(model.encode(torch.tensor([source])), torch.tensor([[2, *ours.tokens]]))
                suppressed = -(1 - logits.softmax(-1)[0, :, :3].sum(-1)).log().sum().item()
                assert theirs.log_probability - ours.log_probability == pytest.approx(suppressed, abs=1e-3)
                compared += suppressed > 0.01
    assert compared > 5


def test_limits_are_those_of_our_search_and_loops_need_no_other_engine(tokenizer, monkeypatch):
    torch_engine, engine = engines(model_of(tokenizer), tokenizer)
    sources = sources_of(tokenizer)
    unlimited = DecodingOptions(beam=1, max_loops=0, max_length_ratio=0, max_length_extra=8)
    loops = unlimited.model_copy(update={"max_loops": 2})
    beam_options = unlimited.model_copy(update={"beam": 4, "nbest": 4})
    expected_lists_by_options = [
        torch_engine.decode(SearchRequest(sources, options)) for options in (loops, beam_options)
    ]
    assert any(
        find_loop(best.tokens, 2, engine.word_starts) for (best,) in engine.decode(SearchRequest(sources, unlimited))
    )
    assert any(len(best.tokens) == 8 for best, *_ in expected_lists_by_options[1])
    for options, expected_lists in zip((beam_options, loops), expected_lists_by_options[::-1], strict=True):
        if options is loops:
            monkeypatch.setattr(torch_engine, "decode", None)
        for ours, theirs in zip(expected_lists, engine.decode(SearchRequest(sources, options)), strict=True):
            assert [h.tokens for h in ours] == [h.tokens for h in theirs]
            assert [h.log_probability for h in theirs] == pytest.approx([h.log_probability for h in ours], abs=1e-3)


def test_sources_too_long_for_the_table_are_left_to_pytorch(tokenizer, monkeypatch):
    torch_engine, engine = engines(model_of(tokenizer), tokenizer)
    engine.longest = 12
    options = DecodingOptions(beam=2, max_length_ratio=0.5, max_length_extra=2)
    sources = [ids * 3 for ids in sources_of(tokenizer, 4)] + sources_of(tokenizer, 8)
    decoded = []
    decode = torch_engine.decode
    monkeypatch.setattr(torch_engine, "decode", lambda request: decoded.extend(request.sentences) or decode(request))
    results = engine.decode(SearchRequest(sources, options))
    assert {tuple(ids) for ids in sources if len(ids) > 12} <= set(map(tuple, decoded))
    assert [h[0].tokens for h in results] == [h[0].tokens for h in torch_engine.decode(SearchRequest(sources, options))]


def test_weights_that_are_no_numbers_are_an_error(tokenizer):
    model = model_of(tokenizer)
    model.output.bias.data.fill_(torch.nan)
    with pytest.raises(UserError, match="not numbers"):
        engines(model, tokenizer)[1].decode(SearchRequest(sources_of(tokenizer, 2), DecodingOptions(beam=2)))


def test_a_model_to_take_away(tokenizer, tmp_path):
    model, out = model_of(tokenizer), tmp_path / "out"
    before = {name: weights.clone() for name, weights in model.state_dict().items()}
    export_ctranslate2(model, tokenizer, out, "int8")
    assert all(torch.equal(weights, before[name]) for name, weights in model.state_dict().items())
    assert Tokenizer.load(out).fingerprint == tokenizer.fingerprint
    assert ctranslate2.Translator(str(out)).translate_batch([["▁a", "</s>"]], max_decoding_length=5)
    with pytest.raises(UserError, match="already"):
        export_ctranslate2(model, tokenizer, out, "float32")
    export_ctranslate2(model, tokenizer, out, "float32", overwrite=True)
    assert not list(tmp_path.glob(".*"))
    (tmp_path / "mine").mkdir()
    with pytest.raises(UserError, match="not a CTranslate2 model"):
        export_ctranslate2(model, tokenizer, tmp_path / "mine", "float32", overwrite=True)
    configurations = [Tuned(), Tuned(quantization="int8")]
    full_score, int8_score = (
        trial.score for trial in trials(model, tokenizer, PAIRS[:5], DecodingOptions(beam=1), configurations, {})
    )
    assert 0 <= full_score < 20 and 0 <= int8_score < 20


def test_instructions_that_the_processor_lacks_are_given_up_or_an_error(tokenizer, tmp_path, monkeypatch):
    save_ctranslate2(model_of(tokenizer), tokenizer, tmp_path / "model")
    calls = []

    def translator(*arguments, **options):
        calls.append(os.environ.get("CT2_FORCE_CPU_ISA"))
        if calls[-1]:
            raise ValueError("The CPU does not support AVX512")
        return "opened"

    monkeypatch.setattr(ctranslate2, "Translator", translator)
    monkeypatch.setenv("CT2_FORCE_CPU_ISA", "AVX512")
    arguments = (tmp_path / "model", "cpu", 1, "default")
    with pytest.raises(UserError, match="can't use the instructions of CT2_FORCE_CPU_ISA=AVX512"):
        open_translator(*arguments)
    monkeypatch.setattr(devices, "_chose_instructions", True)
    assert open_translator(*arguments) == "opened"
    assert calls == ["AVX512", "AVX512", None]


def test_an_ssru_is_refused(tokenizer, tmp_path):
    model = build_model(TransformerOptions(width=16, heads=2, decoder="ssru"), 50, 50)
    with pytest.raises(
        UserError, match=r"model.decoder=ssru can't become a CTranslate2 model.*`export_onnx` or `export_marian`"
    ):
        export_ctranslate2(model, tokenizer, tmp_path / "out", "float32")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("layer", [0, 1])
def test_an_export_returns_the_attention_of_the_taught_head(layer, tokenizer, tmp_path):
    model = model_of(tokenizer, decoder_layers=2)
    export_ctranslate2(model, tokenizer, tmp_path / "out", "float32", attention_layer=layer)
    (source,) = sources_of(tokenizer, 1)
    exported = ctranslate2.Translator(str(tmp_path / "out"))
    pieces, options = [tokenizer.source_pieces(source)], {"beam_size": 1, "max_decoding_length": 8}
    (result,) = exported.translate_batch(pieces, return_attention=True, return_end_token=True, **options)
    target = [tokenizer.target_vocabulary.index(piece) for piece in result.hypotheses[0]]
    weights = cross_attention(model, torch.tensor([source]), torch.tensor([target]), layer, 0)[0]
    torch.testing.assert_close(torch.tensor(result.attention[0]), weights, rtol=0, atol=1e-4)
