"""Translation with document context: line by line, in batches, with every engine, and its inspection."""

import json

import pytest
import torch

from bitext.documents.tagged_text import TaggedText
from tests.probes.passages import documents
from translucid import Translator
from translucid.api.segment_translator import SegmentTranslator
from translucid.cli.main import run
from translucid.data.document_context import Source, lines_before
from translucid.data.text_pipeline import EncodedPair
from translucid.ground.errors import UserError
from translucid.jobs import job as jobs
from translucid.terminology.matching import terms_in

LINES = ["a red one", "it is so", "it is so", "", "a green one", "it is so", "a blue one", "it is so", "a red one"]
EXPECTED = ["uno rojo", "es rojo", "", "", "uno verde", "es verde", "uno azul", "es azul", "uno rojo"]


@pytest.fixture(scope="session")
def translator(context_run):
    return Translator.load(context_run, "cpu", "torch")


def call(capsys, *arguments):
    code = run([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize("engine", ["torch", "ctranslate2", "onnx"])
def test_the_previous_sentence_decides_with_every_engine(context_run, engine):
    if engine == "onnx":
        pytest.importorskip("onnxruntime")
    translator = Translator.load(context_run, "cpu", engine)
    for color, target in (("red", "rojo"), ("green", "verde"), ("blue", "azul")):
        assert translator.translate("it is so", context=f"a {color} one").text == f"es {target}"
        assert translator.translate("it is so", context=["a red one", f"a {color} one"]).text == f"es {target}"
    with_lines = [translation.text for translation in translator.stream(LINES, before=lines_before(LINES, 1))]
    assert [text for text, expected in zip(with_lines, EXPECTED, strict=True) if expected] == list(
        filter(None, EXPECTED)
    )


def test_lines_together_equal_lines_one_by_one(translator):
    before = lines_before(LINES, 1)
    batched = list(translator.stream(LINES, before=before))
    for line, context, translation in zip(LINES, before, batched, strict=True):
        alone = translator.translate(line, context=context)
        assert (alone.text, alone.score) == (translation.text, pytest.approx(translation.score, abs=1e-5))


def test_the_sentences_of_a_text_see_those_before_them(translator):
    text = "a green one. it is so. it is so."
    ((first, second, third),) = translator.pipeline.pieces([text], split=True)
    assert (
        first.before == () and second.before == (tuple(first.ids[:-1]),) and third.before == (tuple(second.ids[:-1]),)
    )
    separator = translator.pipeline.context.separator
    (input_ids,) = translator.pipeline.inputs([second])
    assert input_ids == [*first.ids[:-1], separator, *second.ids]


def test_equal_sentences_with_other_contexts_are_translated_separately(translator):
    sources = [Source("it is so", (f"a {color} one",)) for color in ("red", "blue", "red")]
    texts = [translation.text for translation in translator.stream(sources)]
    assert texts == ["es rojo", "es azul", "es rojo"]


def test_inspection_covers_the_sentence_without_its_context(translator):
    translation = translator.translate("it is so", context="a red one")
    (inspected,) = translation.inspected
    assert inspected.source_words[:-1] == ["it", "is", "so"]
    (piece,) = translation.pieces
    context = translator.pipeline.context_ids(piece)
    pair = EncodedPair([*context, *piece.ids], translation.nbest[0].hypotheses[0].with_end)
    (full_pass,) = translator.inspector.forced_decoding([pair])
    assert full_pass.log_probs == pytest.approx(inspected.log_probs)
    for name, weights in inspected.maps.items():
        expected = full_pass.maps[name]
        if not name.startswith("decoder") or name.endswith("cross"):
            expected = expected[..., len(context) :]
        if name.startswith("encoder"):
            expected = expected[:, len(context) :]
        assert torch.equal(weights, expected), name
    assert translation.alignment
    for source, target in translation.alignment:
        assert source < 3 and target < 2


def test_contributions_and_terms_refer_to_the_sentence_itself(translator):
    translation = translator.translate("it is so", context="a red one")
    (inspected,) = translation.inspect(contributions=True)
    assert inspected.contributions.source.shape == (len(inspected.target), len(inspected.source))
    with_terms = translator.with_terms([("red", "encarnado")])
    assert terms_in(with_terms.terms, "it is so") == []
    assert with_terms.translate("it is so", context="a red one").text == "es rojo"


def test_segments_see_those_before_them(translator):
    sources = map(Source, map(TaggedText, LINES), map(tuple, lines_before(LINES, 1)))
    targets = SegmentTranslator(translator).stream(sources)
    texts = [target.marked.text for target in targets]
    assert [text for text, expected in zip(texts, EXPECTED, strict=True) if expected] == list(filter(None, EXPECTED))


@pytest.mark.parametrize("workers", [[], ["--workers", "2"]])
def test_lines_of_a_file_are_a_document_across_windows(
    context_run, tmp_path, capsys, monkeypatch, workers, forked_workers
):
    (tmp_path / "in.txt").write_text("\n".join([*LINES, ""] * 3) + "\n")
    command = ["translate", context_run, "--input", tmp_path / "in.txt", "--device", "cpu"]
    monkeypatch.setattr(jobs.TranslationJob, "window", 2)
    code, out, err = call(capsys, *command, *workers)
    assert code == 0, err
    for line, expected in zip(out.splitlines(), [*EXPECTED, ""] * 3, strict=True):
        assert line == expected or not expected
    code, out, _ = call(capsys, *command, *workers, "--context", "none")
    assert len(set(out.splitlines()[1::10])) == 1
    code, out, _ = call(capsys, "translate", context_run, "--context", "a green one", "it is so")
    assert out == "es verde\n"


def test_an_interrupted_job_goes_on_with_its_context(context_run, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(jobs.TranslationJob, "window", 1)
    (tmp_path / "in.txt").write_text("\n".join(LINES[4:]) + "\n")
    command = [
        "translate",
        context_run,
        "--input",
        tmp_path / "in.txt",
        "--output",
        tmp_path / "out.txt",
        "--device",
        "cpu",
    ]
    work = jobs.TranslationJob.work

    def interrupted_work(self, models, window):
        if window.before.lines == 3:
            raise KeyboardInterrupt
        return work(self, models, window)

    monkeypatch.setattr(jobs.TranslationJob, "work", interrupted_work)
    assert call(capsys, *command)[0] == 130
    monkeypatch.setattr(jobs.TranslationJob, "work", work)
    code, _, err = call(capsys, *command)
    assert code == 0 and "continued after line 3" in err
    assert (tmp_path / "out.txt").read_text().splitlines() == EXPECTED[4:]


def test_segments_of_a_document(context_run, tmp_path, capsys):
    rows = {f"k{i}": line for i, line in enumerate(LINES[4:])}
    (tmp_path / "strings.json").write_text(json.dumps(rows))
    code, _, err = call(capsys, "translate", context_run, tmp_path / "strings.json", "--output", tmp_path / "out.json")
    assert code == 0, err
    assert list(json.loads((tmp_path / "out.json").read_text()).values()) == EXPECTED[4:]


def test_a_test_set_is_scored_with_its_context(context_run, tmp_path, capsys):
    rows = [{"source": p.source, "target": p.target, "document": p.document} for p in documents(6)]
    (tmp_path / "test.jsonl").write_text("\n".join(map(json.dumps, rows)))
    command = ["evaluate", context_run, tmp_path / "test.jsonl", "--json", "--device", "cpu"]
    scores = json.loads(call(capsys, *command)[1])
    alone = json.loads(call(capsys, *command, "--lines", "separate")[1])
    assert scores["chrF"]["value"] > 99 > alone["chrF"]["value"]
    assert scores["perplexity"] < 1.1 < alone["perplexity"]


@pytest.mark.parametrize("option", [["--context", "a"], ["--context", "none"]])
def test_a_run_without_context_refuses_it(small_run, capsys, option):
    code, _, err = call(capsys, "translate", small_run, "a", *option)
    assert code == 2 and f"{option[0]} is for runs with document context" in err
    with pytest.raises(UserError, match="was trained without document context"):
        Translator.load(small_run, "cpu").translate("a", context="b")
    with pytest.raises(UserError, match="was trained without document context"):
        list(Translator.load(small_run, "cpu").stream([Source("a", ("b",))]))
