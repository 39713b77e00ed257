"""Which translations a tiny model prefers, compared with plain forced decoding."""

import json

import pytest
import torch

from bitext.pair import Pair
from translucid.api.evaluation.contrast import preferences
from translucid.api.translator import Translator
from translucid.cli.main import run as run_command
from translucid.data.text_pipeline import EncodedPair
from translucid.data.tokenizing.pieces import SEPARATOR
from translucid.evaluation.contrast import read_contrasts
from translucid.ground.special import SPECIAL
from translucid.runs.corpus_files import Corpora

SETTINGS = [
    *("data.context=2", "data.tokenizer.vocabulary=50", "data.subword_dropout=0", "model.width=32"),
    *("model.feed_forward=64", "model.dropout=0", "training.warmup=20", "training.batch_tokens=300"),
    *("training.accumulate=1", "training.max_steps=120", "training.validate_every=120", "training.averaging=0"),
    *("training.learning_rate=0.005", "training.label_smoothing=0"),
]
COLORS = {"red": "rojo", "blue": "azul"}


def records(count):
    """Return documents of three sentences; the last one is about the color of the first or second sentence."""
    rows = []
    for number in range(count):
        color, other_color = ("red", "blue")[:: 1 if number % 2 else -1]
        before = [("hello", "hola")]
        before.insert(number // 2 % 2, (f"a {color} one", f"uno {COLORS[color]}"))
        for source, target in before:
            rows.append({"source": source, "target": target, "document": number})
        last = {"source": "it is so", "target": f"es {COLORS[color]}", "document": number}
        position = before.index((f"a {color} one", f"uno {COLORS[color]}"))
        rows.append(
            last | {"contrast": f"es {COLORS[other_color]}", "antecedent": [[position, 1]], "phenomenon": "color"}
        )
    return rows


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("contrasts") / "contrasts.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records(12)))
    return path


@pytest.fixture(scope="module")
def trained_run(train, tmp_path_factory):
    pairs = [Pair(row["source"], row["target"]).of_document(row["document"]) for row in records(24)]
    folder = tmp_path_factory.mktemp("contrast") / "run"
    train(folder, *SETTINGS, data=Corpora.of(pairs, pairs[:12]))
    return folder


def log_probability(translator, source, target):
    """Return log p(target | source) of one pair of ids by one forward pass."""
    inputs = torch.tensor([[SPECIAL.start, *target[:-1]]])
    with torch.no_grad():
        memory = translator.model.encode(torch.tensor([source]))
        log_probs = translator.model.output(translator.model.features(memory, inputs))[0].double().log_softmax(-1)
    return sum(float(log_probs[position, token]) for position, token in enumerate(target))


def join_sources(translator, sources):
    """Return the ids of all sources as the model reads them, and the first and last position of each word."""
    separator = translator.tokenizer.source_id(SEPARATOR)
    ids, words = [], {}
    for sentence, source in enumerate(sources):
        for word, text in enumerate(source.split()):  # words are encoded one by one
            (word_ids,) = translator.tokenizer.encode_source([text])
            words[sentence, word] = len(ids), len(ids) + len(word_ids)
            ids += word_ids
        ids.append(separator)
    return [*ids[:-1], SPECIAL.end], words


def test_preferences_are_those_of_forced_decoding(trained_run, file):
    pairs, contrasts = read_contrasts(file)
    translator = Translator.load(trained_run, "cpu", "torch")
    results = preferences(translator, pairs, contrasts)
    for preference in results:
        number, contrast = preference.contrast.number, preference.contrast
        ids, words = join_sources(translator, [pair.source for pair in pairs[number - 2 : number + 1]])
        alone, _ = join_sources(translator, [pairs[number].source])
        targets = translator.tokenizer.encode_target([pairs[number].target, contrast.contrast])
        right, wrong = ([*target, SPECIAL.end] for target in targets)
        for source, preferred in ((ids, preference.in_context), (alone, preference.alone)):
            assert preferred == (
                log_probability(translator, source, right) > log_probability(translator, source, wrong)
            )
        (inspected,) = translator.inspector.forced_decoding([EncodedPair(ids, right)], contributions=True)
        (position,) = (i for i, (a, b) in enumerate(zip(right, wrong, strict=True)) if a != b)
        shares = inspected.contributions.source[position]
        word_shares = {word: float(shares[slice(*span)].sum()) for word, span in words.items() if word[0] < 2}
        top = sorted(word_shares, key=word_shares.get)[-2:]
        assert preference.antecedent_found == (contrast.antecedent[0] in top)
    assert all(preference.in_context for preference in results)
    assert sum(preference.alone for preference in results) == len(results) // 2, "twins: chance without context"


def test_the_command_prints_shares_by_phenomenon_and_distance(trained_run, file, capsys):
    assert run_command(["score", str(trained_run), str(file), "--contrast", "--format", "jsonl"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    names = ["all", "color", "1 sentence before", "2 sentences before"]
    assert [row["name"] for row in rows] == names
    assert (rows[0]["sentences"], rows[0]["alone"], rows[0]["in_context"]) == (12, 0.5, 1.0)
    assert 0 <= rows[0]["antecedent_found"] <= 1
    assert run_command(["score", str(trained_run), str(file), "--contrast"]) == 0
    assert "2 sentences before" in capsys.readouterr().out


def test_a_run_without_context_has_chance_only(small_run, file, capsys):
    assert run_command(["score", str(small_run), str(file), "--contrast", "--format", "jsonl"]) == 0
    row = json.loads(capsys.readouterr().out.splitlines()[0])
    assert (row["alone"], row["in_context"], row["antecedent_found"]) == (0.5, None, None)


def test_tokens_and_several_files_are_refused(small_run, file, capsys):
    for options in ([str(file)], ["--tokens"]):
        assert run_command(["score", str(small_run), str(file), "--contrast", *options]) == 2
        assert "one file and no --tokens" in capsys.readouterr().err
