"""Trials and the choice of an engine: times, limits and messages, checked by hand."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from bitext.pair import Pair
from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.hypothesis import Hypothesis
from translucid.engines import choosing, tuning
from translucid.engines.choosing import _tuning_result, choose_engine, use_torch
from translucid.engines.tuned import Tuned, load_tuned, save_tuned
from translucid.engines.tuning import Comparison, Trial, fastest, greedy_texts
from translucid.ground.errors import UserError
from translucid.language.options import BiLSTMLanguageOptions
from translucid.models.model_options import RecurrentOptions, TransformerOptions


def piece_count(word):
    return 1 if word[0].isupper() else len(word)


class Tokens:
    """A tokenizer with a piece for each letter; source words with a capital letter are one piece."""

    source_opening, target_opening = (9,), ()
    has_placeholders, marks_terms = False, False
    target_size = 5

    def encode_source(self, texts):
        return [[9] + [10] * sum(map(piece_count, text.split())) for text in texts]

    def encode_target(self, texts):
        return [[10] * len(text) for text in texts]

    def decode(self, tokens):
        return tokens

    def mask(self, text, patterns=()):
        return SimpleNamespace(text=text, unmask=lambda text: text)


class Engine:
    """An engine that records the number of sentences of each search and returns a fixed text."""

    def __init__(self, text="a"):
        self.sizes, self.beams, self.text = [], [], text

    def decode(self, request):
        self.sizes.append(len(request.sentences))
        self.beams.append(request.options.beam)
        return [[Hypothesis(self.text, -1.0, -1.0)] for _ in request.sentences]


def test_a_trial_takes_the_time_of_one_search_after_a_first_batch(monkeypatch):
    engines = []

    def make_engine(original, tokenizer, tuned, shortlist):
        engines.append((Engine("uno dos tres cuatro" if len(engines) != 1 else "x"), tuned, shortlist))
        return engines[-1][0]

    clock = iter([5.0, 7.0, 20.0, 28.0, 30.0, 40.0])
    monkeypatch.setattr(tuning, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    monkeypatch.setattr(tuning, "engine_for", make_engine)
    monkeypatch.setattr(tuning.TorchEngine, "of", lambda *_: None)
    pairs = [Pair("one", "uno dos tres cuatro")] * 12
    configurations = [Tuned(), Tuned(quantization="int8", considered="seen pieces"), Tuned(engine="torch")]
    model = SimpleNamespace(max_length=None)
    files = {"seen pieces": Path("list.tsv")}
    results = list(tuning.trials(model, Tokens(), pairs, DecodingOptions(), configurations, files))
    assert [fake.sizes for fake, _, _ in engines] == [[8, 12]] * 3
    assert [(tuned, file) for _, tuned, file in engines] == list(
        zip(configurations, (None, Path("list.tsv"), None), strict=True)
    )
    assert [trial.sentences_per_second for trial in results] == [6.0, 1.5, 1.2]
    assert [trial.score for trial in results] == pytest.approx([100.0, 0.0, 100.0])
    assert [(trial.metric, trial.is_meaningful, trial.same) for trial in results] == [
        ("BLEU", True, True),
        ("BLEU", True, False),
        ("BLEU", True, True),
    ]
    assert str(Trial(Tuned(), 1234.5, 12.345)) == "ctranslate2, float32, all pieces (1,234 sentences/s, BLEU 12.35)"


def test_with_lists_by_words_greedy_search_and_single_sentences_are_timed_too(monkeypatch):
    engine, clock = Engine(), iter([0.0, 6.0, 10.0, 12.0, 20.0, 28.0])
    monkeypatch.setattr(tuning, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    monkeypatch.setattr(tuning, "engine_for", lambda *_: engine)
    monkeypatch.setattr(tuning.TorchEngine, "of", lambda *_: None)
    monkeypatch.setattr(tuning, "ALONE", 4)
    configurations = [Tuned(considered="small shortlist")]
    pairs = [Pair("one", "uno dos tres cuatro")] * 12
    (trial,) = tuning.trials(SimpleNamespace(max_length=None), Tokens(), pairs, DecodingOptions(), configurations, {})
    assert engine.sizes == [8, 12, 12, 1, 1, 1, 1] and engine.beams == [5, 5, 1, 5, 5, 5, 5]
    assert trial.speeds == (2.0, 6.0, 0.5)


def test_a_list_by_words_may_be_slower_in_no_use():
    without = Trial(Tuned(quantization="int8"), 100, 30.0, greedy=200, alone=50)
    slower = Trial(Tuned(), 90, 30.0, greedy=300, alone=10)  # of the run's own search, the only one that counts

    def chosen(*speeds):
        listed = Trial(Tuned(considered="small shortlist"), speeds[0], 30.0, greedy=speeds[1], alone=speeds[2])
        best = fastest([slower, without, listed], 0.2)
        assert best is not slower
        return best is listed

    assert chosen(120, 200, 50) and chosen(101, 250, 60)
    assert not chosen(120, 199, 90) and not chosen(120, 300, 49) and not chosen(99, 300, 90)


def test_a_loss_up_to_the_limit_is_allowed():
    results = [Trial(Tuned(), 1, 30.0), Trial(Tuned(quantization="int8"), 2, 29.75)]
    assert fastest(results, 0.25) is results[1] and fastest(results, 0.2) is results[0]
    run = Path("run")
    Comparison("BLEU", 30.0, 29.875, "int8", True).refuse_loss(run)
    message = (
        '^run: int8 costs 0.20 BLEU. Export with `quantization="float32"`, or leave out `check` if that does not m'
    )
    with pytest.raises(UserError, match=message.replace(".", r"\.")):
        Comparison("BLEU", 0.2, 0.0, "int8", True).refuse_loss(run)
    message = r"^run: float32 costs 0\.50 chrF\. Leave out `check` if that does not matter\.$"
    with pytest.raises(UserError, match=message):
        Comparison("chrF", 30.5, 30.0, "float32", True).refuse_loss(run)
    message = r"^run: can't be compared on `check`: chrF 3\.00 of its own translations is too low\. Give pairs that it"
    with pytest.raises(UserError, match=message):
        Comparison("chrF", 3.0, 3.0, "float32", False).refuse_loss(run)


def test_texts_for_a_comparison_are_those_of_a_greedy_search_that_may_loop(monkeypatch):
    calls = []

    class Noting:
        def decode(self, request):
            calls.append((request.sentences, request.options))
            return [[Hypothesis("x", -1.0, -1.0)]] * len(request.sentences)

    monkeypatch.setattr(tuning, "engine_for", lambda *arguments: calls.append(arguments[2:]) or Noting())
    monkeypatch.setattr(tuning.TorchEngine, "of", lambda *_: None)
    tuned = Tuned(quantization="int8")
    assert greedy_texts(SimpleNamespace(eos=3), Tokens(), [Pair("ab c", "x")] * 2, tuned) == ["x", "x"]
    assert calls == [(tuned, None), ([[9, 10, 10, 10, 3]] * 2, DecodingOptions(beam=1, max_loops=0))]


SMALL = {"width": 8, "heads": 2, "feed_forward": 8, "encoder_layers": 1, "decoder_layers": 1}


def configuration_of(model, languages=(None, None)):
    return SimpleNamespace(model=model, data=SimpleNamespace(languages=languages))


def test_without_tuning_transformers_run_by_ctranslate2_on_a_cpu(tmp_path):
    run = SimpleNamespace(path=tmp_path)
    elmo = TransformerOptions(**SMALL, elmo=BiLSTMLanguageOptions(width=8, hidden=8))
    for model, engine in (
        (TransformerOptions(**SMALL), "ctranslate2"),
        (elmo, "torch"),
        (TransformerOptions(**SMALL, decoder="ssru"), "onnx"),
        (RecurrentOptions(width=8), "onnx"),
        (RecurrentOptions(width=8, window=2), "onnx"),
    ):
        assert _tuning_result(run, configuration_of(model), use_shortlist=True) == Tuned(engine=engine)
    languages = ("en", "es")
    for listed, tuned_languages, considered in (
        (True, None, "seen pieces"),
        (True, languages, "seen pieces"),
        (True, ("es", "en"), "all pieces"),
        (False, languages, "all pieces"),
    ):
        save_tuned(tmp_path, Tuned(considered="seen pieces", languages=tuned_languages), "\t.\n")
        result = _tuning_result(run, configuration_of(elmo, languages), use_shortlist=listed)
        assert result == Tuned(considered=considered, languages=tuned_languages)


@pytest.mark.parametrize(
    ("name", "device", "engine"),
    [("auto", "cpu", "fast"), ("auto", "cuda:1", "own"), ("ctranslate2", "cuda:1", "fast"), ("torch", "mps", "own")],
)
def test_the_engine_depends_on_the_device(tmp_path, monkeypatch, name, device, engine):
    from translucid.engines.ctranslate2.searching import CTranslate2Engine

    calls = []
    fast = SimpleNamespace(difference=choosing.TOLERANCE, name="fast")
    monkeypatch.setattr(CTranslate2Engine, "of_run", lambda *_, **options: calls.append(options) or fast)
    monkeypatch.setattr(choosing, "choose_device", torch.device)
    run, configuration = SimpleNamespace(path=tmp_path), configuration_of(TransformerOptions(**SMALL))
    torch_engine = SimpleNamespace(name="own")
    chosen = choose_engine(name, run, configuration, None, lambda: torch_engine, device=device, threads=3, adapter="x")
    assert chosen.name == engine
    assert calls == ([{"device": device, "threads": 3, "adapter": "x"}] if engine == "fast" else [])


def test_a_disagreement_is_noted_with_the_shortlist_unless_the_folder_is_read_only(tmp_path, capsys, monkeypatch):
    tuned = Tuned(considered="seen pieces")
    save_tuned(tmp_path, tuned, "\t.\n")
    use_torch(tmp_path, tuned, 0.5)
    assert load_tuned(tmp_path) == Tuned(engine="torch", considered="seen pieces", difference=0.5)
    assert (tmp_path / "shortlist.tsv").read_text() == "\t.\n"
    message = (
        "warning: CTranslate2 does not compute what this model computes (log-probabilities differ by 0.50 a token): "
        "its attention or another equation was edited. Our own search translates; "
        f"translucid tune speed {tmp_path} compares again"
    )
    assert capsys.readouterr().err == message + "\n"

    def fail(*_):
        raise PermissionError

    monkeypatch.setattr(choosing, "save_tuned", fail)
    use_torch(tmp_path, tuned, 0.5)
    assert capsys.readouterr().err == message + "\n"
