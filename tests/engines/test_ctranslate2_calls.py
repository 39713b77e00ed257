"""What CTranslate2 is asked for: sizes of batches, limits, what is left to PyTorch, and how a model is opened."""

import time
from types import SimpleNamespace

import ctranslate2
import pytest

from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.hypothesis import Hypothesis
from translucid.engines import converted
from translucid.engines.ctranslate2 import opening, searching
from translucid.engines.ctranslate2.searching import CTranslate2Engine
from translucid.engines.ctranslate2.task import Task, wait_for
from translucid.ground.cancellation import Cancelled, asked_between_steps
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


class Answer:
    """A result that is there at once, or after some questions."""

    def __init__(self, result, questions=0):
        self.given, self.questions = result, questions

    def done(self):
        self.questions -= 1
        return self.questions < 0

    def result(self):
        return self.given


class Translator:
    """Notes what it is asked for; writes `outputs`, and gives each token -0.5."""

    compute_type = "int8_float32"

    def __init__(self, *outputs, scores=None):
        self.outputs = outputs or (["a"],)
        self.scores = scores or [-1.0 - i for i in range(len(self.outputs))]
        self.calls, self.scored = [], []

    def translate_batch(self, sources, prefixes, **options):
        self.calls.append((sources, prefixes, options))
        found = SimpleNamespace(hypotheses=[[*output] for output in self.outputs], scores=self.scores)
        return [Answer(found) for _ in sources]

    def score_batch(self, sources, targets, **options):
        self.scored.append((sources, targets, options))
        return [Answer(SimpleNamespace(log_probs=[-0.5] * (len(target) + 1))) for target in targets]


class Torch:
    """Stands for the PyTorch engine."""

    def __init__(self):
        self.decoded, self.scored = [], []

    def opened(self, tokenizer):
        return self

    def decode(self, sentences, options, *more):
        self.decoded.append((list(sentences), options, more))
        return [[Hypothesis([9], -9.0, -9.0)] for _ in sentences]

    def forced(self, pairs):
        self.scored.append(pairs)
        return [[-9.0] for _ in pairs]


@pytest.fixture
def engine(tmp_path, monkeypatch):
    """An engine without a model: engine(translator, threads=2)."""
    torch_engine = Torch()

    def make(translator, *, longest=None, **more):
        monkeypatch.setattr(searching, "open_translator", lambda *arguments: opened.append(arguments) or translator)
        made = CTranslate2Engine(tmp_path, Pieces(), lambda: torch_engine, longest=longest, **more)
        made.own = torch_engine
        return made

    opened = make.opened = []
    return make


GREEDY = DecodingOptions(beam=1, min_length=0, max_length_ratio=0, max_length_extra=5)


def test_a_call_has_sentences_of_similar_length_and_batches_a_limit(engine):
    translator = Translator()
    fast = engine(translator, threads=2)
    done = []
    short, long = [4, 3], [4, 5, 6, 3]
    options = DecodingOptions(beam=1, max_length_ratio=1.5, max_length_extra=2, no_repeat_ngram=4, min_length=1)
    found = fast.decode([short] * 1030 + [[3]] + [long] * 2, options, done.append)
    (first, prefixes, facts), (rest, _, last) = translator.calls
    assert first[:3] == [["s4", "s5", "s6", "</s>"]] * 2 + [["s4", "</s>"]] and prefixes is None
    assert (len(first), len(rest)) == (1024, 8)
    # 16 batches of 64, then 8 of one sentence; one token more than the limits 1.5 * 3 + 2 and 1.5 * 1 + 2.
    assert (facts["max_batch_size"], last["max_batch_size"]) == (64, 1)
    assert (facts["max_decoding_length"], last["max_decoding_length"]) == (7, 4)
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
        "no_repeat_ngram_size": 4,
        "disable_unk": True,
        "suppress_sequences": [["<pad>"], ["<s>"]],
    }
    assert last == expected
    assert done == [1] + [1] * 1032
    assert [len(nbest) for nbest in found] == [1] * 1033
    assert found[1030][0].tokens == [] and found[0][0].tokens == [4] and found[0][0].log_probability == -1.0
    fast.parts = 1
    fast.decode([short] * 80, options)
    assert translator.calls[-1][2]["max_batch_size"] == 64
    assert fast.decode([], options) == []


def test_the_prefix_of_all_outputs_counts_for_no_limit(engine):
    translator = Translator(["a", "b"])
    fast = engine(translator)
    opened = fast.opened(SimpleNamespace(target_opening=[7, 8]))
    assert (fast.opening, opened.opening) == ([], ["d", "e"])
    opened.decode([[4, 3]] * 2, GREEDY.model_copy(update={"min_length": 1}))
    (_, prefixes, facts) = translator.calls[0]
    assert prefixes == [["d", "e"]] * 2 and facts["min_decoding_length"] == 3
    opened.decode([[4, 3]], GREEDY)
    assert translator.calls[1][2]["min_decoding_length"] == 0
    assert opened.forced([([4, 3], [7, 8, 5, 3])]) == [[-0.5, -0.5]]


def test_a_shortlist_by_words_is_used_sentence_by_sentence_and_without_prefix_or_ban(engine, tmp_path):
    (tmp_path / "vmap.txt").touch()
    translator = Translator(["a"] * 9, ["b"])
    fast = engine(translator, considered="small shortlist")
    fast.decode([[4, 3]] * 2, DecodingOptions(beam=2, max_loops=2, max_length_ratio=9))
    first, *others = [facts for _, _, facts in translator.calls]
    assert (first["use_vmap"], first["max_batch_size"]) == (True, 1)
    assert others and not any(facts["use_vmap"] for facts in others)
    assert others[0]["suppress_sequences"] == [["<pad>"], ["<s>"], ["a", "a", "a"]]
    translator.calls.clear()
    fast.opened(SimpleNamespace(target_opening=[7])).decode([[4, 3]], GREEDY)
    assert translator.calls[0][2]["use_vmap"] is False
    assert str(fast) == "ctranslate2, int8, small shortlist"


@pytest.mark.parametrize(
    ("options", "fast"),
    [
        ({"beam": 32}, True),
        ({"beam": 33}, False),
        ({"min_length": 1}, True),
        ({"min_length": 2}, False),
        ({"sample": True}, False),
    ],
)
def test_some_searches_are_left_to_pytorch(engine, options, fast):
    translator = Translator()
    made = engine(translator)
    options = GREEDY.model_copy(update=options)
    ((found,),) = made.decode([[4, 3]], options, None, [7])
    assert (found.tokens == [4], len(translator.calls)) == (fast, int(fast))
    assert made.own.decoded == ([] if fast else [([[4, 3]], options, (None, [7]))])


@pytest.mark.parametrize(("longest", "most"), [(None, 1024), (8, 8)])
def test_sentences_too_long_for_the_table_of_positions_are_left_to_pytorch(engine, longest, most):
    translator = Translator()
    made = engine(translator, longest=longest)
    sentences = [[4] * (size - 1) + [3] for size in (most + 1, most, 2)]
    done = []
    found = made.decode(sentences, GREEDY, done.append)
    assert [one.tokens for (one,) in found] == [[9], [4], [4]]
    assert [len(given) for given, *_ in made.own.decoded] == [1] and made.own.decoded[0][0] == sentences[:1]
    assert done == [0, 1, 1, 1]
    # An output and its start token have to fit, too.
    longer = GREEDY.model_copy(update={"max_length_extra": most - 1})
    assert made.decode([[4, 3]], longer)[0][0].tokens == [4]
    if longest is None:
        assert made.decode([[4, 3]], longer.model_copy(update={"max_length_extra": most}))[0][0].tokens == [9]
    pairs = [([4, 3], [5] * most + [3]), ([4, 3], [5] * (most - 1) + [3]), ([4] * most + [3], [3]), ([4, 3], [3])]
    assert made.forced(pairs) == [[-9.0], [-0.5] * most, [-9.0], [-0.5]]
    assert made.own.scored == [[pairs[0], pairs[2]]]
    (sources, targets, _) = translator.scored[0]
    assert sources == [["s4", "</s>"]] * 2 and targets == [["b"] * (most - 1), []]


@pytest.mark.parametrize(("count", "threads", "size"), [(160, 2, 10), (161, 2, 11), (1, 2, 1), (5000, 2, 64)])
def test_scores_are_computed_in_batches(engine, count, threads, size):
    translator = Translator()
    engine(translator, threads=threads).forced([([4, 3], [3])] * count)
    ((_, _, options),) = translator.scored
    assert options == {"max_batch_size": size, "asynchronous": True}


def test_a_sentence_that_keeps_looping_is_searched_eight_times(engine):
    """Each time with more loops forbidden, at its own limit; the scores are those of the output alone."""
    translator = Translator(["a"] * 5)
    made = engine(translator)
    options = GREEDY.model_copy(update={"max_loops": 2})
    done = []
    assert made.decode([[4, 3]], options, done.append)[0][0].tokens == [9]
    assert len(translator.calls) == 8 and translator.scored == [] and done == [0, 1]
    limits = [facts["max_decoding_length"] for _, _, facts in translator.calls]
    assert limits == [6] + [5] * 7
    banned = [facts["suppress_sequences"][2:] for _, _, facts in translator.calls]
    assert banned == [[["a"] * 3] * number for number in range(8)]
    translator.calls.clear()
    assert made.decode([[4, 3]], GREEDY.model_copy(update={"max_loops": 0}))[0][0].tokens == [4] * 5
    assert len(translator.calls) == 1


def test_an_output_beyond_its_limit_is_searched_for_again_and_scored(engine):
    class Cut(Translator):
        def translate_batch(self, sources, prefixes, **options):
            self.outputs = [["a"] * min(options["max_decoding_length"], 6), ["b"]]
            return super().translate_batch(sources, prefixes, **options)

    translator = Cut(scores=[-9.0, -9.5])
    made = engine(translator)
    options = DecodingOptions(beam=2, nbest=2, max_loops=0, max_length_ratio=0, max_length_extra=5, length_penalty=1)
    done = []
    ((first, second),) = made.decode([[4, 3]], options, done.append)
    assert [(one.tokens, one.log_probability) for one in (first, second)] == [([5], -1.0), ([4] * 5, -3.0)]
    assert (first.score, second.score) == (-1.0 / (7 / 6), -3.0 / (11 / 6))
    ((sources, targets, how),) = translator.scored
    assert sources == [["s4", "</s>"]] * 2 and targets == [["a"] * 5, ["b"]] and how == {"asynchronous": True}
    assert done == [0, 1]


def test_scores_that_are_no_numbers_are_left_to_pytorch_which_reports_them(engine):
    made = engine(Translator(["a"], scores=[float("nan")]))
    assert made.decode([[4, 3]], GREEDY)[0][0].tokens == [9]


def test_single_searches_begin_a_few_ahead(engine):
    made = engine(Translator())
    made.parts = 2
    begun = []
    made._begin = lambda tasks, *more: begun.append(tasks[0].number) or ["answer"]
    tasks = [Task(number, [4, 3], 5) for number in range(5)]
    counts = [(task.number, answer, len(begun)) for task, answer in made._one_by_one(tasks, GREEDY)]
    assert counts == [(number, "answer", min(number + 3, 5)) for number in range(5)]


def test_who_waits_is_asked_whether_the_result_is_still_wanted(monkeypatch):
    pauses, asked = [], []
    monkeypatch.setattr(time, "sleep", pauses.append)
    assert wait_for(Answer("x", 9)) == "x" and pauses == []  # nobody asks
    with asked_between_steps(lambda: asked.append(1)):
        assert wait_for(Answer("x", 7)) == "x"
    assert len(asked) == 7 and pauses == [0.0005, 0.001, 0.002, 0.004, 0.008, 0.01, 0.01]

    def cancel():
        raise Cancelled

    with asked_between_steps(cancel), pytest.raises(Cancelled):
        wait_for(Answer("x", 1))


@pytest.mark.parametrize(
    ("device", "threads", "parts", "batch", "kind"),
    [
        ("cpu", 3, 16, 64, "cpu"),
        ("cpu", None, cores(), 64, "cpu"),
        ("cuda:1", 3, 1, 256, "cuda"),
    ],
)
def test_threads_and_batches_depend_on_the_device(engine, tmp_path, device, threads, parts, batch, kind):
    made = engine(Translator(), threads=threads, device=device, compute_type="float16")
    assert (made.parts, made.batch, made.device_type) == (parts, batch, kind)
    assert engine.opened == [(tmp_path, device, threads or cores(), "float16")]
    assert made.difference == 0.0
    (tmp_path / "difference.json").write_text("0.25")
    assert engine(Translator()).difference == 0.25


def test_a_model_is_opened_on_the_device(tmp_path, monkeypatch):
    monkeypatch.setattr(ctranslate2, "Translator", lambda *arguments, **more: (arguments, more))
    usual = {"compute_type": "default", "intra_threads": 1}
    assert opening.open_translator(tmp_path, "cpu", 3, "default") == (
        (str(tmp_path), "cpu"),
        {"device_index": 0, "inter_threads": 3, **usual},
    )
    for device, index in (("cuda", 0), ("cuda:2", 2)):
        assert opening.open_translator(tmp_path, device, 3, "default") == (
            (str(tmp_path), "cuda"),
            {"device_index": index, "inter_threads": 1, **usual},
        )
    assert [opening.gpu_of(device) for device in ("cpu", "mps", "cuda", "cuda:1")] == [None, None, 0, 1]


@pytest.mark.parametrize(
    ("device", "quantization", "supported", "wanted"),
    [
        ("cpu", "float32", {"float16"}, "default"),
        ("cuda:1", "float32", {"float16"}, "float16"),
        ("cuda:1", "float32", {"int8_float16"}, "default"),
        ("cuda:1", "int8", {"int8_float16"}, "int8_float16"),
        ("cuda:1", "int8", {"float16"}, "default"),
    ],
)
def test_a_gpu_computes_in_half_precision_if_it_can(monkeypatch, device, quantization, supported, wanted):
    asked = []
    monkeypatch.setattr(ctranslate2, "get_supported_compute_types", lambda *device: asked.append(device) or supported)
    assert opening.half_precision(device, quantization) == wanted
    assert asked == ([] if device == "cpu" else [("cuda", 1)])


def test_so_many_converted_models_are_kept(monkeypatch, tmp_path):
    kept = []
    monkeypatch.setattr(converted, "find_kept", lambda *_: None)
    monkeypatch.setattr(converted, "keep", lambda kind, made_from, make, most: kept.append((kind, made_from, most)))
    made_from = {"model": "abc"}
    opened = converted.open_converted(
        "ctranslate2", made_from, lambda folder: folder.mkdir(), lambda folder: folder.name
    )
    assert opened == "model"
    ((kind, fingerprint, most),) = kept
    assert (kind, most) == ("ctranslate2", 8)
    assert len(fingerprint) == 64 and int(fingerprint, 16)
