"""`translucid patch`."""

import json

import pytest

from translucid.runs.configuration import resolve

SENTENCES = "I like soccer", "I like music"
CHOICE = "--words", "gusta/hay", "--target", "me gusta el fútbol"


def test_the_command_prints_what_python_returns(call, small_run):
    from translucid import Translator

    printed = call("patch", small_run, *SENTENCES, *CHOICE)
    assert printed.code == 0, printed.err
    assert "encoder states" in printed.out and "soccer→music" in printed.out
    record = json.loads(call("patch", small_run, *SENTENCES, *CHOICE, "--json").out)
    translator = Translator.load(small_run, engine="torch")
    patching = translator.inspector.patch(*SENTENCES, ("gusta", "hay"), target="me gusta el fútbol")
    assert record == patching.to_json()
    assert f"{patching.log_odds[0]:+.2f} nats" in printed.out
    chosen = json.loads(call("patch", small_run, *SENTENCES, *CHOICE, "--json", "--pairs", "2-2").out)
    assert chosen["parts"][0]["words"] == ["music", "</s>"]
    shares = [row[2] for row in record["parts"][0]["carried"]]
    assert [row[0] for row in chosen["parts"][0]["carried"]] == pytest.approx(shares, abs=2e-4)


@pytest.mark.parametrize("ending", ["json", "html", "svg"])
def test_the_result_is_saved(call, small_run, tmp_path, ending):
    file = tmp_path / f"patched.{ending}"
    assert call("patch", small_run, *SENTENCES, *CHOICE, "--save", file).code == 0
    if ending == "json":
        assert json.loads(file.read_text())["words"] == ["gusta", "hay"]
    else:
        assert len(file.read_text()) > 1000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*CHOICE, "--pairs", "0:0"], "'0:0' is no pair of words"),
        (["--words", "el"], "--words 'el' are not two different words"),
        (["--words", "el/el"], "--words 'el/el' are not two different words"),
        ([*CHOICE, "--save", "x.npz"], "is of no kind that can be written"),
        (["--words", "voy/va", "--target", "me gusta"], "the translation lacks the word 'voy'"),
    ],
)
def test_invalid_options_are_reported_in_one_line(call, small_run, arguments, message):
    result = call("patch", small_run, *SENTENCES, *arguments)
    assert (result.code, result.out) == (2, "") and result.err.count("\n") == 1
    assert message in result.err


def test_without_words_the_first_difference_of_the_translations_counts(call, small_run):
    from translucid import Translator

    translator = Translator.load(small_run, engine="torch")
    texts = [translator.translate(text, split=False).text for text in SENTENCES]
    result = call("patch", small_run, *SENTENCES, "--json")
    if texts[0] == texts[1]:
        assert result.code == 2 and "both sentences have the same translation" in result.err
    else:
        assert texts[0].startswith(json.loads(result.out)["prefix"])


def test_a_captioner_is_refused(call, tmp_path):
    run = tmp_path / "captioner"
    run.mkdir()
    settings = resolve(preset="caption-soft", assignments=["versions.translucid=x"]).to_yaml()
    (run / "config.yaml").write_text(settings)
    result = call("patch", run, "one.png", "two.png")
    assert (result.code, result.out) == (2, "") and result.err.count("\n") == 1
    assert f"{run}: is no translator, and patching compares translations of two sentences" in result.err
