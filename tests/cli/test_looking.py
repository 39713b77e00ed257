"""`look --save`, `align`, `explain`, `draw`, `evaluate --alignments`."""

import importlib.util
import json
import re
import shutil
from typing import get_args
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml

from translucid import Translator
from translucid.api import inspector
from translucid.api.inspector import Inspector
from translucid.corpora.phrasebook import generate
from translucid.data.readers.corpus import read_pairs
from translucid.decoding.hypothesis import percent
from translucid.evaluation.alignment_error import AlignmentOptions, to_pharaoh
from translucid.inspection import explain as explanation
from translucid.inspection.plots import new_figure, save_figure
from translucid.inspection.rendering.message_catalogs import file_messages
from translucid.inspection.rendering.slides import LABELS
from translucid.layers.variants import Method
from translucid.runs.run_folder import RunFolder


@pytest.fixture(scope="module")
def gold(tmp_path_factory):
    """Phrasebook sentences with gold links, as `translucid data phrasebook x.jsonl` writes them."""
    file = tmp_path_factory.mktemp("gold") / "gold.jsonl"
    rows = [{**p._asdict(), "alignment": to_pharaoh(p.alignment)} for p in generate(12, split="test", max_words=8)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


@pytest.mark.parametrize("method", ["content", "norms", "contributions"])
def test_look_by_another_method(call, small_run, tmp_path, method):
    base = ["look", small_run, "I like soccer", "--target", "Me gusta", "--method", method]
    result = call(*base, "--save", tmp_path / "page.html")
    assert result.code == 0, result.err
    assert result.out.splitlines()[2:] != call(*base[:-2]).out.splitlines()[2:]
    assert ("from the source" in result.out) == (method == "contributions")
    page = (tmp_path / "page.html").read_text()
    first = json.loads(re.search(r'"maps": (\[.*?\]\])', page)[1] + "}]")[0]  # the map that the page shows first
    assert (first["kind"], first["layer"]) == (method, None)
    assert call(*base, "--save", tmp_path / "a.png").code == 0
    assert call(*base, "--save", tmp_path / "a.json").code == 0
    if method == "content":
        assert "Me" in result.out and "</s>  " not in result.out.splitlines()[2]  # the end token has no column
        return
    assert "source_contributions" in json.loads((tmp_path / "a.json").read_text())
    (tmp_path / "pairs.tsv").write_text("I like soccer\tMe gusta\n")
    many = ["--tsv", tmp_path / "pairs.tsv", "--save", tmp_path / "a.npz"]
    assert call("look", small_run, *many, "--method", method).code == 0
    with np.load(tmp_path / "a.npz") as archive:
        assert archive["0/contributions.source"].shape == archive["0/decoder.0.cross"].shape[1:]


@pytest.mark.parametrize("options", [["--head", "0"], ["--flow"]])
def test_models_without_contributions_are_refused(call, small_run, options):
    result = call("look", small_run, "I like soccer", "--method", "contributions", *options)
    assert (result.code, result.out) == (2, "")
    assert options[0] in result.err and result.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        *((["look", "--save", "x.html"], text) for text in ("12", "https://example.org/a", "user@example.org 3.14")),
        *((["look", "--save", f"x.{ending}"], "12") for ending in ("png", "json", "npz")),
        (["look", "--save", "x.html", "--why", "erasure"], "12"),
        (["draw", "attention", "--out", "x.png"], "12"),
        (["draw", "attention", "--layer", "0", "--out", "x.png"], "12"),
        (["explain"], "https://example.org/a"),
        (["explain", "--json"], "12"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_a_copied_text_has_no_attention_to_save(call, small_run, tmp_path, monkeypatch, arguments, text):
    monkeypatch.chdir(tmp_path)
    command = 2 if arguments[0] == "draw" else 1
    result = call(*arguments[:command], small_run, text, *arguments[command:])
    assert (result.code, result.out) == (2, "")
    assert "nothing to see" in result.err and result.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_copied_text_is_shown_unchanged(call, small_run):
    result = call("look", small_run, "12")
    assert result.code == 0, result.err
    assert result.out.startswith("12\n") and "stays as it is" in result.out


@pytest.fixture
def greedy(small_run, tmp_path):
    """A run that decodes greedily by default."""
    run = shutil.copytree(small_run, tmp_path / "greedy")
    settings = yaml.safe_load((run / "config.yaml").read_text())
    settings["decoding"]["beam"] = 1
    (run / "config.yaml").write_text(yaml.safe_dump(settings))
    return run


def test_a_run_with_a_beam_of_one_is_looked_into(call, greedy, tmp_path):
    for arguments in (["look", greedy, "I like soccer", "--save", tmp_path / "x.html"], ["look", greedy, "I sing"]):
        result = call(*arguments)
        assert result.code == 0, result.err
    assert '"beam": 1' in (tmp_path / "x.html").read_text()
    result = call("draw", "beam", greedy, "I like soccer", "--beam", 1, "--out", tmp_path / "x.svg")
    assert result.code == 0, result.err
    translator = Translator.load(greedy, engine="torch")
    trace = translator.inspector.trace("I like soccer", 1)
    assert trace.best is not None
    tokens = [trace.nodes[i].token for i in trace.path(trace.best)]
    assert translator.tokenizer.decode(tokens[:-1]) == translator.translate("I like soccer").text


def test_look_saves_explanations_along(call, small_run, tmp_path):
    file = tmp_path / "why.html"
    result = call("look", small_run, "I like soccer", "--save", file, "--why", "erasure", "--why", "attention")
    assert result.code == 0, result.err
    assert '"explanations": {"erasure": {"method": "erasure"' in file.read_text()
    for wrong in (["--why", "erasure"], ["--save", tmp_path / "a.png", "--why", "erasure"]):
        assert call("look", small_run, "I like soccer", *wrong).code == 2
    result = call("look", small_run, "I like soccer", "--save", tmp_path / "b.html", "--why", "magic")
    assert result.code == 2 and "magic" in result.err


def test_look_at_one_head_and_at_a_given_target(call, small_run):
    result = call("look", small_run, "I like soccer", "--layer", 0, "--head", 1, "--target", "Me gusta el fútbol")
    assert result.code == 0, result.err
    assert "fútbol" in result.out
    assert call("look", small_run, "I like soccer", "--flow").code == 0


def test_align_given_pairs(call, small_run, gold, tmp_path):
    result = call("align", small_run, "--pairs", gold)
    assert result.code == 0, result.err
    lines = result.out.splitlines()
    assert len(lines) == 12
    for line, row in zip(lines, gold.read_text().splitlines(), strict=True):
        record = json.loads(row)
        for link in line.split():
            source, target = map(int, link.split("-"))
            assert source < len(record["source"].split())
            assert target < len(record["target"].split())
    symmetrized = call("align", small_run, "--reverse", small_run, "--pairs", gold, "--output", tmp_path / "a.txt")
    assert symmetrized.code == 0, symmetrized.err
    assert len((tmp_path / "a.txt").read_text().splitlines()) == 12
    outputs = {call("align", small_run, "--pairs", gold, "--method", method).out for method in get_args(Method)}
    assert len(outputs) == len(get_args(Method))


def test_evaluate_finds_and_keeps_the_best_way_to_align(call, small_run, gold, tmp_path):
    run = shutil.copytree(small_run, tmp_path / "run")
    result = call("evaluate", run, "--test", gold, "--gold", gold, "--json")
    assert result.code == 0, result.err
    before = (run / "config.yaml").read_bytes()
    tuned = call("tune", "reading", run, gold)
    assert tuned.code == 0 and tuned.out.count("← used") == 1 and (run / "config.yaml").read_bytes() != before
    methods = json.loads(result.out)["alignment"]
    assert [method["aer"] for method in methods] == sorted(method["aer"] for method in methods)
    saved = yaml.safe_load((run / "config.yaml").read_text())["alignment"]
    assert saved == {name: methods[0][name] for name in ("learned", "layer", "head", "method", "shift", "both")}
    printed = call("evaluate", run, "--test", gold, "--gold", gold)
    assert "← used" in printed.out


def test_evaluate_and_tune_save_the_configuration_of_the_run(call, small_run, gold, tmp_path, monkeypatch):
    """Options of one command, such as languages, are not saved into the run's configuration."""
    run = shutil.copytree(small_run, tmp_path / "run")
    before = RunFolder(run).configuration()
    languages = ["--source-language", "en", "--target-language", "es"]
    result = call("tune", "reading", run, gold, *languages)
    assert result.code == 0, result.err
    saved = RunFolder(run).configuration()
    assert saved.alignment != before.alignment
    unchanged = {"alignment": before.alignment, "live": before.live}
    assert saved.model_copy(update=unchanged) == before
    monkeypatch.setattr("translucid.api.fitting.alignment_fitting.FEWEST", 2)
    monkeypatch.setattr("translucid.inspection.alignment.UPDATES", 5)
    # Keep the layer however few pairs it learns from.
    monkeypatch.setattr("translucid.api.fitting.alignment_fitting.LearnedAlignment.kept", True)
    result = call("tune", "links", run, gold, *languages)
    assert result.code == 0, result.err
    assert RunFolder(run).configuration().model_copy(update=unchanged) == before


def test_gold_that_does_not_fit_is_one_clear_line(call, small_run, gold, tmp_path):
    (tmp_path / "short.txt").write_text("0-0\n")
    result = call("evaluate", small_run, "--test", gold, "--gold", tmp_path / "short.txt")
    assert result.code == 2
    assert "1 lines for 12 sentence pairs" in result.err
    former = call("evaluate", small_run, "--test", gold, "--keep-best")
    assert former.code == 2 and "The option --keep-best is now translucid tune reading RUN LINKS." in former.err
    lines = ["0-0"] * 12
    (tmp_path / "far.txt").write_text("\n".join([*lines[:7], "0-0 999-999", *lines[8:]]))
    result = call("evaluate", small_run, "--test", gold, "--gold", tmp_path / "far.txt")
    assert result.code == 2
    assert "far.txt:8: links 999-999, but the pair has" in result.err.replace("\n", "")


def test_content_words_are_read_without_pytorch_too(small_run, monkeypatch):
    inside = Translator.load(small_run).inspector
    pairs = inside.encoded([("I like soccer, too.", "Me gusta el fútbol."), ("?!", "¿?")])
    reading = AlignmentOptions(learned=False, method="content")
    expected = inside.word_weights(pairs, reading)
    monkeypatch.setattr(inspector, "has_pytorch", lambda: False)
    for weights, of_pytorch in zip(inside.word_weights(pairs, reading), expected, strict=True):
        np.testing.assert_allclose(weights.weights, of_pytorch.weights, atol=1e-5)
    np.testing.assert_allclose(expected[0].weights.sum(1), 1, atol=1e-5)  # nothing is left for the end token


def test_align_counts_pairs_on_from_part_to_part(call, small_run, monkeypatch, tmp_path):
    calls = []
    inspect = Inspector.inspect

    def record_call(self, pairs, *, first=1, **changes):
        calls.append((first, len(pairs)))
        return inspect(self, pairs, first=first, **changes)

    monkeypatch.setattr(Inspector, "inspect", record_call)
    (tmp_path / "pairs.tsv").write_text("a\tb\n" * 600)
    assert call("align", small_run, "--reverse", small_run, "--pairs", tmp_path / "pairs.tsv").code == 0
    assert calls == [(1, 256), (1, 256), (257, 256), (257, 256), (513, 88), (513, 88)]


@pytest.mark.parametrize("method", ["erasure", "attention", "lime", "gradients"])
def test_explain_measures_its_faithfulness(call, small_run, method):
    result = call("explain", small_run, "I like soccer", "--method", method, "--samples", 30)
    assert result.code == 0, result.err
    assert "left out" in result.out
    record = json.loads(call("explain", small_run, "I like soccer", "--method", method, "--json").out)
    assert len(record["importance"]) == len(record["target"])
    assert set(record["faithfulness"]) == {method, "random"}


def test_explain_needs_nothing_more_by_default_and_says_what_works_where_it_does(call, small_run, monkeypatch):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        explanation, "find_spec", lambda name: None if name in ("captum", "sklearn") else find_spec(name)
    )
    assert call("explain", small_run, "I like soccer").code == 0
    result = call("explain", small_run, "I like soccer", "--method", "lime")
    assert result.code == 2
    assert "pip install 'captum" in result.err and "'scikit-learn" in result.err and "translucid[" not in result.err
    assert call("explain", small_run, "I like soccer", "--method", "limes").code == 2


def test_explain_contrasts_a_word_with_another(call, small_run):
    arguments = ["explain", small_run, "I like soccer", "--target", "me gusta el fútbol"]
    result = call(*arguments, "--instead-of", "la", "--word", "2")
    assert result.code == 0, result.err
    assert "el instead of la (word 2): log-odds" in result.out and "log-odds lost" in result.out
    record = json.loads(call(*arguments, "--instead-of", "la", "--json").out)
    assert (len(record["importance"]), len(record["target"]), record["contrast"]["instead_of"]) == (1, 1, "la")
    for wrong, message in (
        (["--word", "1"], "--word is for --instead-of"),
        (["--instead-of", "el", "--word", "2"], "is the word itself"),
        (["--instead-of", "la", "--method", "attention"], "can't tell two words apart"),
    ):
        failure = call(*arguments, *wrong)
        assert (failure.code, failure.err.count("\n")) == (2, 1) and message in failure.err
    failure = call("explain", small_run, "I like soccer. She works.", "--instead-of", "la")
    assert failure.code == 2 and "for one sentence, not 2" in failure.err


def test_every_sentence_is_explained(call, small_run):
    result = call("explain", small_run, "I like soccer. She works.", "--json")
    assert [json.loads(line)["source"] for line in result.out.splitlines()] == [
        ["I", "like", "soccer."],
        ["She", "works."],
    ]


def test_the_attention_over_a_corpus_is_a_file_for_numpy(call, small_run, corpus, tmp_path):
    file = tmp_path / "maps.npz"
    result = call("look", small_run, "--tsv", corpus / "test.tsv", "--save", file)
    assert result.code == 0, result.err
    assert "20 pairs" in result.err
    loaded = np.load(file, allow_pickle=False)
    pairs = list(read_pairs(corpus / "test.tsv"))
    translator = Translator.load(small_run, "cpu")
    for i in (0, 19):
        (inspection,) = translator.inspector.inspect([pairs[i]])
        assert loaded[f"{i}/target"].tolist() == inspection.target
        np.testing.assert_allclose(loaded[f"{i}/decoder.0.cross"], inspection.maps["decoder.0.cross"], atol=1e-3)
    for wrong in (["--save", tmp_path / "a.html"], [], ["--save", tmp_path / "a.npz", "--target", "x"]):
        assert call("look", small_run, "--tsv", corpus / "test.tsv", *wrong).code == 2
    assert call("look", small_run, "I like soccer", "--save", tmp_path / "one.npz").code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["look", "RUN", "I sing", "--save", "x.gif"],
        ["look", "RUN", "I sing", "--save", "nowhere/x.png"],
        ["look", "RUN", "I sing", "--layer", "9"],
        ["look", "RUN", "I sing", "--head", "9"],
        ["look", "RUN", " "],
        ["look", "RUN", "I sing", "--target", ""],
        ["explain", "RUN", "I sing", "--target", " "],
        ["explain", "RUN", "I sing", "--method", "nonsense"],
        ["draw", "attention", "RUN", "I sing", "--out", "x.bmp"],
        ["draw", "attention", "RUN", "I sing", "--out", "nowhere/x.png"],
        ["draw", "attention", "RUN", "I sing", "--layer", "5", "--out", "x.png"],
        ["draw", "mask", "RUN", "I sing", " ", "--out", "x.png"],
        ["draw", "beam", "RUN", "", "--out", "x.png"],
        ["evaluate", "RUN", "--test", "nowhere.tsv", "--hypotheses", "nowhere/x.txt"],
        ["align", "RUN", "--pairs", "nowhere.tsv", "--output", "nowhere/x.txt"],
    ],
)
def test_invalid_options_are_refused_before_any_work(call, small_run, tmp_path, monkeypatch, arguments):
    def work(*args, **kwargs):
        raise AssertionError("it began to work")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Translator, "stream", work)
    monkeypatch.setattr(Inspector, "trace", work)
    names = {"RUN": small_run}
    result = call(*(names.get(argument, argument) for argument in arguments))
    assert result.code == 2, result.err
    assert result.out == ""
    assert result.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_missing_maps_of_a_recurrent_model_are_not_drawn(call, corpus, tmp_path):
    run = tmp_path / "rnn"
    files = ["--train", corpus / "train.tsv", "--valid", corpus / "test.tsv"]
    shape = ["model.width=8", "data.tokenizer.vocabulary=200", "training.max_steps=2", "training.validate_every=2"]
    assert call("train", "--model", "rnn-luong-dot", *files, "--out", run, "--no-tune", "--set", *shape).code == 0
    for wrong in (["attention", "--kind", "encoder"], ["mask"], ["mask", "--kind", "causal"]):
        result = call("draw", wrong[0], run, "I sing", *wrong[1:], "--out", tmp_path / "x.png")
        assert result.code == 2
        assert "no " in result.err and not (tmp_path / "x.png").exists()
    result = call("draw", "mask", run, "I sing", "You sing too", "--kind", "padding", "--out", tmp_path / "x.png")
    assert result.code == 0, result.err


def test_draw(call, small_run, tmp_path):
    for arguments in (
        ["attention", small_run, "I like soccer"],
        ["mask", small_run, "I like soccer", "You sing", "--kind", "padding"],
        ["positions", "--length", 5],
        ["curves", small_run],
    ):
        file = tmp_path / f"{arguments[0]}{len(arguments)}.png"
        result = call("draw", *arguments, "--out", file)
        assert result.code == 0, result.err
        assert result.out == f"saved: {file}\n"
        assert file.read_bytes().startswith(b"\x89PNG")
    assert call("draw", "positions", "--out", file).code == 2
    assert call("draw", "mask", small_run, "", "--out", tmp_path / "n.png").code == 2


def test_a_figure_carries_its_run_and_command(call, small_run, tmp_path):
    text = "I don't (like) 50% of it"
    commit = re.sub("^([0-9a-f]{10})[0-9a-f]+", r"\1", RunFolder(small_run).last_version())
    origin = f"{small_run.name}, Translucid {commit}"
    for ending in ("png", "svg", "pdf"):
        file = tmp_path / f"my_map.{ending}"
        call("look", small_run, text, "--save", file, "--overwrite")
        result = call("draw", "caption", file, "--format", "text")
        command = f"translucid look {small_run.name} 'I don'\\''t (like) 50% of it' --save my_map.{ending}"
        assert result.out == f"{origin}\n{command}\n", result.err
    latex = call("draw", "caption", file).out
    assert r"\includegraphics[width=\linewidth]{my_map.pdf}" in latex and r"\label{fig:my_map}" in latex
    assert r"(like) 50\% of it\textquotesingle{} -{}-{}save my\_map.pdf}}" in latex
    markdown = call("draw", "caption", file, "--format", "markdown").out
    assert markdown == f"![my_map](my_map.pdf)\n\n{origin}. `{command}`\n"
    bare = tmp_path / "bare.svg"
    save_figure(new_figure(1, 1), bare)
    for wrong in (bare, tmp_path / "none.png", tmp_path / "x.txt"):
        result = call("draw", "caption", wrong)
        assert (result.code, result.out) == (2, "") and result.err.count("\n") == 1


def test_slides(call, small_run, tmp_path):
    folder = tmp_path / "slides"
    in_spanish = call("draw", "slides", small_run, "I like soccer", "--out", folder, "--language", "xx")
    assert in_spanish.code == 2 and "de, en, es, fr" in in_spanish.err
    result = call("draw", "slides", small_run, "I like soccer", "--out", folder, "--language", "es")
    assert result.code == 0, result.err
    names = ["1-attention", "2-query-key", "3-mask", "4-positions", "5-heads", "6-beam", "7-training"]
    assert sorted(file.name for file in folder.iterdir()) == [*(f"{name}.svg" for name in names), "index.html"]
    page = (folder / "index.html").read_text()
    assert page.count("<section>") == page.count('class="answer"') == len(names)
    assert not re.search(r"(src|href)\s*=\s*[\"']?(?!data:|#|[\"']data:|[\"']#)|@import", page)  # no network
    for name in names:
        slide = ElementTree.parse(folder / f"{name}.svg").getroot()
        assert slide.attrib["viewBox"] == "0 0 1280 720"
        assert "translucid draw slides" in slide[0].text
    words = Translator.load(small_run, engine="torch").translate("I like soccer").inspected[0].cross_words()
    best = words.weights[:-1, :-1].max()
    target, source = (words.weights[:-1, :-1] == best).nonzero()[0].tolist()
    assert f"presta «{words.target[target]}» más atención?" in page
    assert f"«{words.source[source]}», con el {percent(float(best))} de la atención" in page
    english = [*LABELS, *(message.source for message in file_messages())]
    shown = re.findall(">([^<>]+)</(?:text|p|tspan)>", page)
    assert '<html lang="es">' in page and ">consulta<" in page and not {*shown} & {*english}
    assert call("draw", "slides", small_run, "I like soccer", "--out", folder).code == 2
