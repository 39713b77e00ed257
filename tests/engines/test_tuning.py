"""`tune`: the configurations that are tried, the files and limits, and the saved result; trials are faked."""

import shutil

import pytest
import torch

from bitext.pair import Pair
from bitext.protected_spans import PLACEHOLDERS
from tests.devices.emulated import Emulation
from tests.engines.test_engines import run_at
from translucid.api.translator import Translator
from translucid.data.placeholders import Masked
from translucid.data.text_pipeline import EncodedPair, TextPipeline
from translucid.data.tokenizing.pieces import SPACE
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions
from translucid.engines import tuning
from translucid.engines.ctranslate2.searching import CTranslate2Engine
from translucid.engines.tuned import Tuned, load_tuned
from translucid.engines.tuning import Trial, find_fastest
from translucid.ground.console import Console
from translucid.ground.errors import UserError
from translucid.models.build import build_model
from translucid.runs.configuration import resolve
from translucid.runs.run_folder import RunFolder


class FakeTrials:
    """A fake of `trials` that records its arguments; the last configuration is the fastest."""

    def __init__(self, **fields):
        self.fields = fields

    def __call__(self, model, tokenizer, pairs, options, configurations, files, language, device):
        self.pairs, self.options, self.configurations, self.language = pairs, options, configurations, language
        self.device = device
        self.lists = {name: file.read_text(encoding="utf-8") for name, file in files.items()}
        for number, configuration in enumerate(configurations):
            yield Trial(configuration, 10.0 + number, 30.0 - number, **self.fields)


@pytest.fixture
def fake_trials(monkeypatch):
    fake = FakeTrials()
    monkeypatch.setattr(tuning, "trials", fake)
    monkeypatch.setattr(CTranslate2Engine, "difference_from", lambda *_: tuning.TOLERANCE)
    return fake


@pytest.fixture
def run(small_run, tmp_path):
    return shutil.copytree(small_run, tmp_path / "run")


@pytest.fixture
def console(tmp_path):
    with (tmp_path / "said").open("w+", encoding="utf-8") as file:
        yield Console(file=file, width=200)


def console_output(console):
    console.file.seek(0)
    return console.file.read()


FULL = [Tuned(), Tuned(quantization="int8")]
SEEN_PIECES = [Tuned(considered="seen pieces"), Tuned(considered="seen pieces", quantization="int8")]
TORCH = [Tuned(engine="torch"), Tuned(engine="torch", considered="seen pieces")]


def test_the_ways_are_tried_on_the_files_of_the_run_and_the_fastest_is_saved(run, fake_trials, console):
    results, best = find_fastest(run, console=console, allow=3.0)
    assert fake_trials.configurations == [*FULL, *SEEN_PIECES, *TORCH] == [trial.tuned for trial in results]
    # Scores of 30 - 3 or more are allowed: the fourth configuration is the fastest of those.
    assert best is results[3] and load_tuned(run) == SEEN_PIECES[1]
    assert (run / "shortlist.tsv").read_text(encoding="utf-8") == fake_trials.lists["seen pieces"]
    assert len(fake_trials.pairs) == 20 and fake_trials.options.max_length_extra == 4 and fake_trials.language is None
    assert console_output(console) == ""
    assert find_fastest(run, console=console)[1].tuned == Tuned()
    assert load_tuned(run) == Tuned() and not (run / "shortlist.tsv").exists()


def test_on_a_gpu_precisions_and_captured_steps_are_tried_and_the_rest_remains(run, fake_trials, console):
    Tuned(quantization="int8").write(run / "tuned.json")
    with Emulation("cuda") as emulation:
        results, best = find_fastest(run, console=console, allow=4.0, device="cuda")
        assert fake_trials.device == emulation.device and fake_trials.lists == {}
        tried = [(trial.tuned.gpu.precision, trial.tuned.gpu.captured) for trial in results]
        precisions = ["float32", "bfloat16", "float16"]
        assert tried == [(name, captured) for captured in (False, True) for name in precisions]
        assert best is results[4] and str(best.tuned) == "torch, bfloat16, captured, all pieces"
        assert load_tuned(run) == Tuned(quantization="int8", gpu=best.tuned.gpu)
        engine = Translator.load(run, device="cuda").engine
        assert engine.captured.model.output.weight.dtype == torch.bfloat16
        assert engine.model.output.weight.dtype == torch.float32
        assert str(engine) == "torch, bfloat16, captured, all pieces"
    find_fastest(run, console=console)
    assert load_tuned(run) == Tuned(gpu=best.tuned.gpu)


def test_a_gpu_has_no_shortlists(run, console):
    with Emulation("cuda"), pytest.raises(UserError, match="shortlists are for a CPU"):
        find_fastest(run, console=console, device="cuda", shortlists=True)
    with Emulation("mps"), pytest.raises(UserError, match="not for mps"):
        find_fastest(run, console=console, device="mps")


def test_files_limits_and_languages_may_be_other_ones(run, fake_trials, console, tmp_path):
    (tmp_path / "train.tsv").write_text("I read\tleo\nI like soccer\tme gusta\n")
    (tmp_path / "valid.tsv").write_text("I like soccer\tme gusta\n" * 5)
    files = {"train": [str(tmp_path / "train.tsv")], "valid": [str(tmp_path / "valid.tsv")]}
    find_fastest(run, console=console, **files, sentences=3)
    assert len(fake_trials.pairs) == 3
    pieces = fake_trials.lists["seen pieces"].replace("\t", "").replace(SPACE, "")
    assert {*pieces.replace(" ", "").strip()} == {*"leomegusta"}


def test_so_many_sentences_and_pairs_are_enough(run, fake_trials, console, tmp_path, monkeypatch):
    """At most 1,000 sentences are translated, and shortlists are learned from at most 50,000 pairs."""
    (tmp_path / "train.tsv").write_text("a b\tc d\n" * 50_001)
    (tmp_path / "valid.tsv").write_text("I like soccer\tme gusta\n" * 1001)
    counts = []

    def learn_links(model, ids, device, advance, *, guided):
        counts.append((len(ids), str(device)))
        advance(1)
        return Links()

    class Links:
        def shortlist(self, tokenizer, each, always, languages):
            counts.append((each, always, languages))
            return f"\t{each}\n"

    monkeypatch.setattr(tuning, "learn_links", learn_links)
    monkeypatch.setattr(tuning, "seen_pieces", lambda *_: "\t.\n")  # encoding all texts would take seconds
    encoded = EncodedPair([4, 3], [4, 3], Masked("", {}))
    monkeypatch.setattr(TextPipeline, "pairs", lambda self, pairs: [encoded] * len(pairs))
    files = {"train": [str(tmp_path / "train.tsv")], "valid": [str(tmp_path / "valid.tsv")]}
    find_fastest(run, console=console, **files, shortlists=True)
    assert len(fake_trials.pairs) == 1000
    assert counts == [(50_000, "cpu"), (20, 400, []), (80, 1200, [])]
    assert [*fake_trials.lists] == ["seen pieces", "small shortlist", "large shortlist"]
    assert fake_trials.lists["small shortlist"] == "\t20\n"
    counts.clear()
    find_fastest(run, console=console, **files, shortlists=True, pairs=7)
    assert counts[0] == (7, "cpu")


def test_pairs_too_long_for_the_model_are_neither_tried_nor_learned_from(tmp_path, fake_trials, console, monkeypatch):
    run = run_at(tmp_path / "run", positions="learned", max_length=12)
    monkeypatch.setattr(
        tuning, "learn_links", lambda model, ids, *_, guided: lengths.append([*map(list, ids)]) or Empty()
    )

    class Empty:
        def shortlist(self, *_):
            return "\t.\n"

    lengths = []
    tokenizer = run.tokenizer()
    texts = ["I like soccer and the sun and the sea.", "I read", "I"]
    fitting = [text for text in texts if len(tokenizer.encode_source([text])[0]) + 1 <= 12]
    assert 0 < len(fitting) < 3
    (tmp_path / "pairs.tsv").write_text("".join(f"{text}\tleo\n" for text in texts))
    files = {name: [str(tmp_path / "pairs.tsv")] for name in ("train", "valid")}
    find_fastest(run.path, console=console, **files, shortlists=True)
    assert [pair.source for pair in fake_trials.pairs] == fitting
    assert [len(pairs) for pairs in lengths] == [len(fitting)]
    (tmp_path / "pairs.tsv").write_text(f"{texts[0]}\tleo\n")
    with pytest.raises(
        UserError, match=r"^there are no sentences to try that the model takes in one piece. See `valid`"
    ):
        find_fastest(run.path, console=console, **files)


def test_runs_that_can_not_be_tuned_are_refused(tmp_path, run, fake_trials, console, monkeypatch):
    monkeypatch.setattr(tuning, "onnx_is_installed", lambda: False)
    (tmp_path / "pairs.tsv").write_text("I read\tleo\n" * 3)
    files = {name: [str(tmp_path / "pairs.tsv")] for name in ("train", "valid")}
    without_attention = run_at(tmp_path / "plain", kind="recurrent", attention="none").path
    with pytest.raises(UserError, match="there are no shortlists: they are learned from attention, and it has none"):
        find_fastest(without_attention, console=console, **files, shortlists=True)
    recurrent = run_at(tmp_path / "recurrent", kind="recurrent", window=2).path
    message = "one engine runs this model, and the vocabulary is of the target language alone: nothing to try"
    with pytest.raises(UserError, match=f"{message}. See `shortlists=True`"):
        find_fastest(recurrent, console=console, valid=files["valid"])
    # A joint vocabulary also has source pieces, so the pieces of the target text are a second configuration.
    find_fastest(recurrent, console=console, **files)
    assert fake_trials.configurations == TORCH
    transformer = run_at(tmp_path / "transformer").path
    with pytest.raises(
        UserError, match=r"the run does not say which files it was trained on. Give them with `train=FILES`"
    ):
        find_fastest(transformer, console=console, valid=files["valid"], shortlists=True)


def test_vocabularies_of_the_target_language_alone_need_no_list_of_seen_pieces(tmp_path, fake_trials, console):
    shape = {"width": 16, "heads": 2, "feed_forward": 32, "encoder_layers": 1, "decoder_layers": 1}
    settings = {"vocabulary": 25, "joint": False}
    configuration = resolve(overrides={"model": {**shape, "share_embeddings": False}, "data": {"tokenizer": settings}})
    tokenizer = Tokenizer.learn([Pair("I like soccer", "me gusta el sol")] * 9, configuration.data.tokenizer, seed=1)
    run = RunFolder(tmp_path / "run")
    run.begin(configuration, tokenizer)
    run.save_model(build_model(configuration.model, tokenizer.source_size, tokenizer.target_size), tokenizer, {})
    (tmp_path / "pairs.tsv").write_text("I like\tme gusta\n" * 3)
    files = {name: [str(tmp_path / "pairs.tsv")] for name in ("train", "valid")}
    find_fastest(run.path, console=console, **files)
    assert fake_trials.configurations == [*FULL, TORCH[0]] and fake_trials.lists == {}


def test_an_engine_that_computes_other_numbers_is_not_tried(run, fake_trials, console, monkeypatch):
    difference = tuning.TOLERANCE * 1.5
    monkeypatch.setattr(CTranslate2Engine, "difference_from", lambda *_: difference)
    find_fastest(run, console=console)
    assert fake_trials.configurations == [
        configuration.model_copy(update={"difference": difference}) for configuration in TORCH
    ]
    assert load_tuned(run).difference == difference
    assert console_output(console).startswith(
        "CTranslate2 does not compute what this model computes (log-probabilities differ"
    )
    assert console_output(console).endswith("edited; our own search is used\n")


def test_a_score_too_low_to_compare_is_reported(run, console, monkeypatch):
    monkeypatch.setattr(tuning, "trials", FakeTrials(metric="chrF", is_meaningful=False))
    monkeypatch.setattr(CTranslate2Engine, "difference_from", lambda *_: 0.0)
    find_fastest(run, console=console)
    assert console_output(console) == (
        "chrF 30.00 is too low to measure a loss: only configurations with the same translations are considered\n"
    )


@pytest.mark.parametrize("engine", ["ctranslate2", "torch"])
def test_a_model_is_converted_for_the_first_translation_where_ctranslate2_translates(
    run, fake_trials, console, monkeypatch, engine
):
    calls = []
    monkeypatch.setattr(tuning, "choose_engine", lambda *args, **keywords: calls.append((args, keywords)))
    monkeypatch.setattr(
        tuning, "fastest", lambda results, allowed: next(t for t in results if t.tuned.engine == engine)
    )
    find_fastest(run, console=console)
    if engine == "torch":
        assert calls == []
    else:
        (((name, folder, _, tokenizer, load_engine), keywords),) = calls
        assert (name, folder.path, keywords) == ("auto", run, {"device": "cpu"})
        assert load_engine().device.type == "cpu" and load_engine().shortlist is None and tokenizer.target_size


def test_pieces_that_no_text_has_stay_candidates(run, console):
    """Language pieces on the target side and placeholders with a preceding space remain candidates."""
    folder = RunFolder(run)
    configuration = folder.configuration()

    def unlisted(placeholders, **options):
        class Learned:
            has_placeholders = placeholders

        pipeline = TextPipeline(Learned(), 99)
        tuning_process = tuning.Tuning(folder, configuration, configuration.data, None, pipeline, None, console)
        return tuning_process._unlisted_pieces(TokenizerOptions(**options))

    languages = {"languages": {"es": "__es__", "en": "__en__"}}
    assert unlisted(False, **languages, language_pieces="both-sides") == ["__en__", "__es__"]
    assert unlisted(False, **languages, language_pieces="source-side") == []
    assert unlisted(True) == [SPACE, *PLACEHOLDERS]
