"""Calls of CTranslate2: batch sizes, limits, searches left to PyTorch, and opening a model."""

from types import SimpleNamespace

import ctranslate2
import pytest

from bitext.cancellation import Cancelled, call_between_steps
from translucid.decoding.decoding_options import DecodingOptions, SearchRequest
from translucid.decoding.hypothesis import Hypothesis
from translucid.engines import converted
from translucid.engines.ctranslate2 import searching
from translucid.engines.ctranslate2.searching import CTranslate2Engine, Task, wait_for
from translucid.kernels.machine import cores

SPECIAL = ["<pad>", "<unk>", "<s>", "</s>"]


class Pieces:
    """A tokenizer of six pieces on both sides."""

    source_size = target_size = 10
    source_opening = target_opening = ()
    fingerprint = "tokenizer"

    def source_pieces(self, ids):
        return [f"s{i}" for i in ids]

    def target_pieces(self, ids):
        return [[*SPECIAL, "a", "b", "c", "d", "e", "f"][i] for i in ids]

    def target_word_starts(self):
        return [True] * 10


class AsyncResult:
    """An asynchronous result that is done at once or after some polls."""

    def __init__(self, result, polls=0):
        self.value, self.polls = result, polls

    def done(self):
        self.polls -= 1
        return self.polls < 0

    def result(self):
        return self.value


class Translator:
    """A fake translator that records its calls, returns `outputs` and scores each token with -0.5."""

    compute_type = "int8_float32"

    def __init__(self, *outputs, scores=None):
        self.outputs = outputs or (["a"],)
        self.scores = scores or [-1.0 - i for i in range(len(self.outputs))]
        self.calls, self.scored = [], []

    def translate_batch(self, sources, prefixes, **options):
        self.calls.append((sources, prefixes, options))
        result = SimpleNamespace(hypotheses=[[*output] for output in self.outputs], scores=self.scores)
        return [AsyncResult(result) for _ in sources]

    def score_batch(self, sources, targets, **options):
        self.scored.append((sources, targets, options))
        return [AsyncResult(SimpleNamespace(log_probs=[-0.5] * (len(target) + 1))) for target in targets]


class FakeTorchEngine:
    """A fake PyTorch engine that records its calls."""

    def __init__(self):
        self.decoded, self.scored = [], []

    def opened(self, tokenizer):
        return self

    def decode(self, request):
        self.decoded.append((list(request.sentences), request.options, request.numbers))
        return [[Hypothesis([9], -9.0, -9.0)] for _ in request.sentences]

    def forced(self, pairs):
        self.scored.append(pairs)
        return [[-9.0] for _ in pairs]


@pytest.fixture
def make_engine(tmp_path, monkeypatch):
    """Return a function that makes an engine without a model: make_engine(translator, threads=2)."""
    torch_engine = FakeTorchEngine()

    def make(translator, *, longest=None, **options):
        monkeypatch.setattr(searching, "open_translator", lambda *arguments: opened.append(arguments) or translator)
        engine = CTranslate2Engine(tmp_path, Pieces(), lambda: torch_engine, longest=longest, **options)
        engine.own = torch_engine
        return engine

    opened = make.opened = []
    return make


GREEDY = DecodingOptions(beam=1, min_length=0, max_length_ratio=0, max_length_extra=5)


def test_a_call_has_sentences_of_similar_length_and_batches_a_limit(make_engine):
    translator = Translator()
    engine = make_engine(translator, threads=2)
    progress = []
    short, long = [4, 3], [4, 5, 6, 3]
    options = DecodingOptions(beam=1, max_length_ratio=1.5, max_length_extra=2, no_repeat_ngram=4, min_length=1)
    results = engine.decode(SearchRequest([short] * 1030 + [[3]] + [long] * 2, options, progress.append))
    (first, prefixes, first_options), (remaining, _, last_options) = translator.calls
    assert first[:3] == [["s4", "s5", "s6", "</s>"]] * 2 + [["s4", "</s>"]] and prefixes is None
    assert (len(first), len(remaining)) == (1024, 8)
    # 16 batches of 64, then 8 of one sentence; the limits are 1.5 * 3 + 2 and 1.5 * 1 + 2 tokens and an end token.
    assert (first_options["max_batch_size"], last_options["max_batch_size"]) == (64, 1)
    assert (first_options["max_decoding_length"], last_options["max_decoding_length"]) == (7, 4)
    expected = {
        "asynchronous": True,
        "max_batch_size": 1,
        "use_vmap": False,
        "beam_size": 1,
        "num_hypotheses": 1,
        "length_penalty": 0,
        "return_scores": True,
        "min_decoding_length": 1,
        "max_decoding_length": 4,
        "max_input_length": 0,
        "no_repeat_ngram_size": 0,  # repetitions are left to PyTorch
        "patience": 1,
        "disable_unk": True,
        "suppress_sequences": [["<pad>"], ["<s>"]],
    }
    assert last_options == expected
    assert progress == [1] + [1] * 1032
    assert [len(nbest) for nbest in results] == [1] * 1033
    assert results[1030][0].tokens == [] and results[0][0].tokens == [4] and results[0][0].log_probability == -1.0
    engine.parts = 1
    engine.decode(SearchRequest([short] * 80, options))
    assert translator.calls[-1][2]["max_batch_size"] == 64
    engine.parts = 2
    for count, size in ((7, 7), (8, 4)):  # few sentences are one batch
        engine.decode(SearchRequest([short] * count, options))
        assert translator.calls[-1][2]["max_batch_size"] == size
    assert engine.decode(SearchRequest([], options)) == []


def test_the_prefix_of_all_outputs_counts_for_no_limit(make_engine):
    translator = Translator(["a", "b"])
    engine = make_engine(translator)
    with_opening = engine.opened(SimpleNamespace(target_opening=[7, 8]))
    assert (engine.opening, with_opening.opening) == ([], ["d", "e"])
    with_opening.decode(SearchRequest([[4, 3]] * 2, GREEDY.model_copy(update={"min_length": 1})))
    (_, prefixes, options) = translator.calls[0]
    assert prefixes == [["d", "e"]] * 2 and options["min_decoding_length"] == 3
    with_opening.decode(SearchRequest([[4, 3]], GREEDY))
    assert translator.calls[1][2]["min_decoding_length"] == 0
    assert with_opening.forced([([4, 3], [7, 8, 5, 3])]) == [[-0.5, -0.5]]


def test_a_shortlist_by_words_is_used_sentence_by_sentence_and_without_prefix_or_ban(make_engine, tmp_path):
    (tmp_path / "vmap.txt").touch()
    translator = Translator(["a"] * 9, ["b"])
    engine = make_engine(translator, considered="small shortlist")
    engine.decode(SearchRequest([[4, 3]] * 2, DecodingOptions(beam=2, max_loops=2, max_length_ratio=9)))
    first, *others = [options for _, _, options in translator.calls]
    assert (first["use_vmap"], first["max_batch_size"]) == (True, 1)
    assert others and not any(options["use_vmap"] for options in others)
    assert others[0]["suppress_sequences"] == [["<pad>"], ["<s>"], ["a", "a", "a"]]
    translator.calls.clear()
    engine.opened(SimpleNamespace(target_opening=[7])).decode(SearchRequest([[4, 3]], GREEDY))
    assert translator.calls[0][2]["use_vmap"] is False
    assert str(engine) == "ctranslate2, int8, small shortlist"


@pytest.mark.parametrize(
    ("options", "is_fast"),
    [
        ({"beam": 32}, True),
        ({"beam": 33}, False),
        ({"min_length": 1}, True),
        ({"min_length": 2}, False),
        ({"sample": True}, False),
    ],
)
def test_some_searches_are_left_to_pytorch(make_engine, options, is_fast):
    translator = Translator()
    engine = make_engine(translator)
    options = GREEDY.model_copy(update=options)
    ((hypothesis,),) = engine.decode(SearchRequest([[4, 3]], options, None, [7]))
    assert (hypothesis.tokens == [4], len(translator.calls)) == (is_fast, int(is_fast))
    assert engine.own.decoded == ([] if is_fast else [([[4, 3]], options, [7])])


@pytest.mark.parametrize(("longest", "limit"), [(None, 1024), (8, 8)])
def test_sentences_too_long_for_the_table_of_positions_are_left_to_pytorch(make_engine, longest, limit):
    translator = Translator()
    engine = make_engine(translator, longest=longest)
    sentences = [[4] * (size - 1) + [3] for size in (limit + 1, limit, 2)]
    progress = []
    results = engine.decode(SearchRequest(sentences, GREEDY, progress.append))
    assert [hypothesis.tokens for (hypothesis,) in results] == [[9], [4], [4]]
    assert [len(decoded) for decoded, *_ in engine.own.decoded] == [1] and engine.own.decoded[0][0] == sentences[:1]
    assert progress == [1, 1, 1]
    # An output with its start token has to fit, too.
    longer = GREEDY.model_copy(update={"max_length_extra": limit - 1})
    assert engine.decode(SearchRequest([[4, 3]], longer))[0][0].tokens == [4]
    if longest is None:
        too_long = longer.model_copy(update={"max_length_extra": limit})
        assert engine.decode(SearchRequest([[4, 3]], too_long))[0][0].tokens == [9]
    pairs = [([4, 3], [5] * limit + [3]), ([4, 3], [5] * (limit - 1) + [3]), ([4] * limit + [3], [3]), ([4, 3], [3])]
    assert engine.forced(pairs) == [[-9.0], [-0.5] * limit, [-9.0], [-0.5]]
    assert engine.own.scored == [[pairs[0], pairs[2]]]
    (sources, targets, _) = translator.scored[0]
    assert sources == [["s4", "</s>"]] * 2 and targets == [["b"] * (limit - 1), []]


@pytest.mark.parametrize(("count", "threads", "size"), [(160, 2, 10), (161, 2, 11), (1, 2, 1), (5000, 2, 64)])
def test_scores_are_computed_in_batches(make_engine, count, threads, size):
    translator = Translator()
    make_engine(translator, threads=threads).forced([([4, 3], [3])] * count)
    ((_, _, options),) = translator.scored
    assert options == {"max_batch_size": size, "asynchronous": True}


def test_a_sentence_that_keeps_looping_is_searched_eight_times(make_engine):
    """Each search forbids more loops; the last resort is PyTorch."""
    translator = Translator(["a"] * 5)
    engine = make_engine(translator)
    options = GREEDY.model_copy(update={"max_loops": 2})
    progress = []
    assert engine.decode(SearchRequest([[4, 3]], options, progress.append))[0][0].tokens == [9]
    assert len(translator.calls) == 8 and translator.scored == [] and progress == [1]
    limits = [call_options["max_decoding_length"] for _, _, call_options in translator.calls]
    assert limits == [6] + [5] * 7
    banned = [call_options["suppress_sequences"][2:] for _, _, call_options in translator.calls]
    assert banned == [[["a"] * 3] * number for number in range(8)]
    translator.calls.clear()
    assert engine.decode(SearchRequest([[4, 3]], GREEDY.model_copy(update={"max_loops": 0})))[0][0].tokens == [4] * 5
    assert len(translator.calls) == 1


def test_an_output_beyond_its_limit_is_left_to_pytorch_or_else_searched_for_again_and_scored(make_engine, monkeypatch):
    class Cut(Translator):
        def translate_batch(self, sources, prefixes, **options):
            self.outputs = [["a"] * min(options["max_decoding_length"], 6), ["b"]]
            return super().translate_batch(sources, prefixes, **options)

    translator = Cut(scores=[-9.0, -9.5])
    engine = make_engine(translator)
    options = DecodingOptions(beam=2, nbest=2, max_loops=0, max_length_ratio=0, max_length_extra=5, length_penalty=1)
    progress = []
    assert engine.decode(SearchRequest([[4, 3]], options))[0][0].tokens == [9] and len(translator.calls) == 1
    monkeypatch.setattr("translucid.engines.ctranslate2.searching.has_pytorch", lambda: False)
    ((first, second),) = engine.decode(SearchRequest([[4, 3]], options, progress.append))
    assert [(hypothesis.tokens, hypothesis.log_probability) for hypothesis in (first, second)] == [
        ([5], -1.0),
        ([4] * 5, -3.0),
    ]
    assert (first.score, second.score) == (-1.0 / (7 / 6), -3.0 / (11 / 6))
    ((sources, targets, score_options),) = translator.scored
    assert sources == [["s4", "</s>"]] * 2 and targets == [["a"] * 5, ["b"]] and score_options == {"asynchronous": True}
    assert progress == [1]


def test_scores_that_are_no_numbers_are_left_to_pytorch_which_reports_them(make_engine):
    engine = make_engine(Translator(["a"], scores=[float("nan")]))
    assert engine.decode(SearchRequest([[4, 3]], GREEDY))[0][0].tokens == [9]


def test_single_searches_begin_a_few_ahead(make_engine):
    engine = make_engine(Translator())
    engine.parts = 2
    started_numbers = []
    engine._start_search = lambda tasks, *arguments: started_numbers.append(tasks[0].number) or ["answer"]
    tasks = [Task(number, [4, 3], 5) for number in range(5)]
    counts = [(task.number, answer, len(started_numbers)) for task, answer in engine._search_one_by_one(tasks, GREEDY)]
    assert counts == [(number, "answer", min(number + 3, 5)) for number in range(5)]


def test_waiting_for_a_result_checks_for_cancellation(monkeypatch):
    pauses, checks, times = [], [], iter([0.0, 0.0, 0.001, 0.003, 0.05, 0.2])
    clock = SimpleNamespace(monotonic=lambda: next(times), sleep=pauses.append)
    monkeypatch.setattr(searching, "time", clock)
    with call_between_steps(lambda: checks.append(1)):
        assert wait_for(AsyncResult("x", 5)) == "x"
    # A tenth of the time that has passed, within bounds.
    assert len(checks) == 5 and pauses == pytest.approx([0.0002, 0.0002, 0.0003, 0.005, 0.01])
    monkeypatch.undo()
    assert wait_for(AsyncResult("x", 9)) == "x" and len(pauses) == 5  # without a cancellation check

    def cancel():
        raise Cancelled

    with call_between_steps(cancel), pytest.raises(Cancelled):
        wait_for(AsyncResult("x", 1))


@pytest.mark.parametrize(
    ("device", "threads", "parts", "batch", "kind"),
    [
        ("cpu", 3, 16, 64, "cpu"),
        ("cpu", None, cores(), 64, "cpu"),
        ("cuda:1", 3, 1, 256, "cuda"),
    ],
)
def test_threads_and_batches_depend_on_the_device(make_engine, tmp_path, device, threads, parts, batch, kind):
    engine = make_engine(Translator(), threads=threads, device=device, compute_type="float16")
    assert (engine.parts, engine.batch, engine.device_type) == (parts, batch, kind)
    assert make_engine.opened == [(tmp_path, device, threads or cores(), "float16")]
    assert engine.difference == 0.0
    (tmp_path / "difference.json").write_text("0.25")
    assert make_engine(Translator()).difference == 0.25


def test_a_model_is_opened_on_the_device(tmp_path, monkeypatch):
    monkeypatch.setattr(ctranslate2, "Translator", lambda *arguments, **keywords: (arguments, keywords))
    defaults = {"compute_type": "default", "intra_threads": 1}
    assert searching.open_translator(tmp_path, "cpu", 3, "default") == (
        (str(tmp_path), "cpu"),
        {"device_index": 0, "inter_threads": 3, **defaults},
    )
    for device, index in (("cuda", 0), ("cuda:2", 2)):
        assert searching.open_translator(tmp_path, device, 3, "default") == (
            (str(tmp_path), "cuda"),
            {"device_index": index, "inter_threads": 1, **defaults},
        )
    assert [searching.gpu_of(device) for device in ("cpu", "mps", "cuda", "cuda:1")] == [None, None, 0, 1]


@pytest.mark.parametrize(
    ("device", "quantization", "supported", "expected"),
    [
        ("cpu", "float32", {"float16"}, "default"),
        ("cuda:1", "float32", {"float16"}, "float16"),
        ("cuda:1", "float32", {"int8_float16"}, "default"),
        ("cuda:1", "int8", {"int8_float16"}, "int8_float16"),
        ("cuda:1", "int8", {"float16"}, "default"),
    ],
)
def test_a_gpu_computes_in_half_precision_if_it_can(monkeypatch, device, quantization, supported, expected):
    queries = []
    monkeypatch.setattr(ctranslate2, "get_supported_compute_types", lambda *device: queries.append(device) or supported)
    assert searching.half_precision(device, quantization) == expected
    assert queries == ([] if device == "cpu" else [("cuda", 1)])


def test_so_many_converted_models_are_kept(monkeypatch, tmp_path):
    calls = []
    monkeypatch.setattr(converted, "find_cached", lambda *_: None)
    monkeypatch.setattr(
        converted, "add_to_cache", lambda kind, made_from, make, limit: calls.append((kind, made_from, limit))
    )
    made_from = {"model": "abc"}
    opened = converted.open_converted(
        "ctranslate2", made_from, lambda folder: folder.mkdir(), lambda folder: folder.name
    )
    assert opened == "model"
    ((kind, fingerprint, limit),) = calls
    assert (kind, limit) == ("ctranslate2", 8)
    assert len(fingerprint) == 64 and int(fingerprint, 16)
