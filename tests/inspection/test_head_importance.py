"""The importance of heads against finite differences and zeroed columns, BLEU without heads, and `translucid heads`."""

import io
import json

import pytest
import torch
from torch.testing import assert_close

from tests.cli.conftest import call  # noqa: F401 - a fixture
from tests.inspection.conftest import PAIRS
from tests.inspection.test_ablation import without_columns
from translucid import Translator, UserError
from translucid.api.evaluation.heads import criterion_of, head_report, off_counts, score_curve
from translucid.api.evaluation.scoring import score
from translucid.attention.points import handling
from translucid.evaluation.metrics import corpus_scores
from translucid.ground.console import Console
from translucid.inspection.ablation import gate_point, head_names
from translucid.inspection.head_importance import (
    CurvePoint,
    HeadImportance,
    HeadReport,
    ablation_importance,
    gate_gradients,
    gradient_importance,
    least_important_first,
)
from translucid.inspection.inspected import AttentionShares
from translucid.models.model_options import RecurrentOptions, TransformerOptions
from translucid.models.recurrent import RecurrentModel
from translucid.models.transformer import Transformer

V, STEP = 20, 1e-6
IDS = [([5, 6, 7, 8, 3], [11, 12, 3]), ([9, 10, 3], [14, 15, 16, 17, 3])]
SOURCE, TARGET = (
    torch.tensor([[5, 6, 7, 8, 3], [9, 10, 3, 0, 0]]),
    torch.tensor([[11, 12, 3, 0, 0], [14, 15, 16, 17, 3]]),
)
QUIET = Console(quiet=True)


def transformer(norm):
    options = TransformerOptions(width=8, heads=2, feed_forward=12, encoder_layers=1, decoder_layers=2, norm=norm)
    return Transformer(V, V, options)


MODELS = {
    "pre-norm": lambda: transformer("pre"),
    "post-norm": lambda: transformer("post"),
    "bahdanau": lambda: RecurrentModel(V, V, RecurrentOptions(width=8, attention="bahdanau")),
    "input feeding": lambda: RecurrentModel(V, V, RecurrentOptions(width=8, attention="luong-dot", input_feeding=True)),
}


@pytest.fixture(params=MODELS)
def model(request):
    torch.manual_seed(2)
    model = MODELS[request.param]().eval().double()
    for parameter in model.parameters():
        parameter.data.normal_(std=0.5)
    return model


def losses(model, gates, prefix_length=0):
    """Return -log p of both targets, with the heads of each named attention multiplied by factors [H]."""
    handlers = {
        gate_point(model, name): lambda x, first, factors=factors: x * factors[:, None, None]
        for name, factors in gates.items()
    }
    inputs = torch.cat([torch.full((2, 1), model.bos), TARGET[:, :-1]], 1)
    with torch.no_grad(), handling(model, handlers):
        log_probs = model(SOURCE, inputs).log_softmax(-1)
    target_log_probs = [log_probs[n, range(5), TARGET[n]] for n in range(2)]
    return [-target_log_probs[0][prefix_length:3].sum().item(), -target_log_probs[1][prefix_length:].sum().item()]


@pytest.mark.parametrize("prefix_length", [0, 1])
def test_gradients_of_gates_are_finite_differences_for_each_sentence(model, prefix_length):
    gradients = gate_gradients(model, SOURCE, TARGET, model.options.maps, prefix_length)
    for name, heads in model.options.maps.items():
        for head in range(heads):
            sums = []
            for step in (-STEP, STEP):
                factors = torch.ones(heads, dtype=torch.float64)
                factors[head] += step
                sums.append(losses(model, {name: factors}, prefix_length))
            for sentence in range(2):
                numerical = (sums[1][sentence] - sums[0][sentence]) / (2 * STEP)
                assert gradients[name][sentence, head].item() == pytest.approx(numerical, rel=1e-5, abs=1e-7)


def test_importance_by_gradient_is_the_mean_of_absolute_values(model):
    gradients = gate_gradients(model, SOURCE, TARGET, model.options.maps)
    expected = torch.cat([gradient.abs().mean(0) for gradient in gradients.values()])
    counts = []
    importance = gradient_importance(model, model.options.maps, IDS, "cpu", on_done=counts.append)
    assert list(importance) == head_names(model.options.maps) and sum(counts) == 2
    assert_close(torch.tensor([*importance.values()]), expected, check_dtype=False, rtol=1e-5, atol=1e-7)


def test_importance_by_ablation_is_what_the_loss_grows_by(model):
    importance = ablation_importance(model, model.options.maps, IDS, "cpu")
    whole = sum(losses(model, {})) / 2
    for name, increase in importance.items():
        attention, _, head = name.rpartition(".head.")
        factors = torch.ones(model.options.maps[attention], dtype=torch.float64)
        factors[int(head)] = 0
        assert increase == pytest.approx(sum(losses(model, {attention: factors})) / 2 - whole, rel=1e-4, abs=1e-5)


def test_means_can_replace_the_outputs():
    torch.manual_seed(3)
    model = transformer("pre").eval()
    means = {"encoder.0.self.head.1": torch.full((4,), 0.7)}
    mean = ablation_importance(model, {"encoder.0.self": 2}, IDS, "cpu", means=means)
    zero = ablation_importance(model, {"encoder.0.self": 2}, IDS, "cpu")
    assert mean["encoder.0.self.head.0"] == zero["encoder.0.self.head.0"]
    assert mean["encoder.0.self.head.1"] != pytest.approx(zero["encoder.0.self.head.1"], abs=1e-4)


def test_the_least_important_heads_are_first():
    heads = [HeadImportance("a", 0.1, 3.0), HeadImportance("b", 0.3, -1.0), HeadImportance("c", 0.2, 2.0)]
    assert least_important_first(heads) == {"gradient": ["a", "c", "b"], "ablation": ["b", "c", "a"]}


def test_a_curve_goes_from_no_head_off_to_all():
    assert off_counts(1) == [0, 1]
    assert off_counts(6) == [0, 1, 2, 3, 4, 5, 6]
    assert off_counts(24) == [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24]
    assert off_counts(144)[:3] == [0, 14, 28] and off_counts(144)[-1] == 144
    assert len(off_counts(144)) == 12


def test_bleu_with_heads_off_is_that_of_a_model_without_their_columns(untrained):
    """The references are the model's own translations, so BLEU starts at 100 and falls."""
    translator = Translator.load(untrained("transformer"), "cpu", "torch")
    pairs = [pair._replace(target=translator.translate(pair.source).text) for pair in PAIRS]
    order = head_names(translator.inspector.heads)
    criterion = criterion_of(translator, pairs)
    points = score_curve(translator, pairs, order, criterion=criterion, console=QUIET)
    assert points[0] == CurvePoint(0, pytest.approx(100)) and [point.off for point in points] == [0, 1, 2, 3, 4, 5, 6]
    for point in points[1:]:
        reference = Translator.load(untrained("transformer"), "cpu", "torch")
        without_columns(reference.model, order[: point.off])
        expected = score(reference, pairs, split=False, perplexity=False, console=QUIET).evaluation
        assert point.score == pytest.approx(expected.scores[0].value)
    assert min(point.score for point in points) < 99


def test_heads_are_measured_by_chrf_where_bleu_is_0(untrained):
    """As of a glossary, whose targets are single words; all curves have the same metric."""
    translator = Translator.load(untrained("transformer"), "cpu", "torch")
    pairs = [pair._replace(target="".join(translator.translate(pair.source).text.split())) for pair in PAIRS]
    report = head_report(translator, pairs, console=QUIET)
    assert report.metric == "chrF" == report.to_json()["metric"]
    for points in report.curves.values():
        texts = [translation.text for translation in translator.translate([pair.source for pair in pairs])]
        expected = corpus_scores(texts, [[pair.target for pair in pairs]])[1].value
        assert points[0].score == pytest.approx(expected)


def test_a_report_is_for_people_and_programs():
    heads = [HeadImportance("encoder.0.self.head.0", 0.25, -0.125), HeadImportance("encoder.0.self.head.1", 0.5, 1.5)]
    points = [CurvePoint(0, 30.0), CurvePoint(1, 20.0), CurvePoint(2, 0.0)]
    shares = {name: AttentionShares(0.25, 0.5, 0.0, 0.125, 1.5) for name in (*(h.name for h in heads), "encoder.self")}
    console = Console(file=io.StringIO(), width=80)
    console.print(*HeadReport(7, heads, {"gradient": points}, shares=shares).render())
    rows = [line.split() for line in console.file.getvalue().splitlines()]
    figures = ["25%", "50%", "0%", "12%", "1.50"]
    assert [heads[0].name, *figures] in rows and ["encoder.self,", "uniform", *figures] in rows
    report = HeadReport(7, heads, {"gradient": points, "ablation": points})
    assert json.loads(json.dumps(report.to_json())) == {
        "pairs": 7,
        "metric": "BLEU",
        "shares": {},
        "heads": [
            {"name": "encoder.0.self.head.0", "gradient": 0.25, "ablation": -0.125},
            {"name": "encoder.0.self.head.1", "gradient": 0.5, "ablation": 1.5},
        ],
        "curves": {
            "gradient": [{"off": 0, "score": 30.0}, {"off": 1, "score": 20.0}, {"off": 2, "score": 0.0}],
            "ablation": [{"off": 0, "score": 30.0}, {"off": 1, "score": 20.0}, {"off": 2, "score": 0.0}],
        },
    }


@pytest.fixture
def valid(tmp_path):
    (tmp_path / "valid.tsv").write_text("".join(f"{pair.source}\t{pair.target}\n" for pair in PAIRS))
    return tmp_path / "valid.tsv"


@pytest.mark.parametrize("shape", ["transformer", "bahdanau"])
def test_the_command_measures_all_heads(call, untrained, valid, tmp_path, shape):  # noqa: F811 - a fixture
    completed = call("heads", untrained(shape), "--valid", valid, "--beam", 2, "--save", tmp_path / "heads.svg")
    assert completed.code == 0, completed.err
    names = head_names(Translator.load(untrained(shape), "cpu", "torch").inspector.heads)
    lines = completed.out.splitlines()
    assert sorted(line.split()[0] for line in lines[1 : len(names) + 1]) == sorted(names)
    assert lines[0].split() == ["head", "gradient", "ablation"]
    assert (tmp_path / "heads.svg").read_bytes().startswith(b"<?xml")
    assert call("heads", untrained(shape), "--valid", valid, "--save", tmp_path / "heads.svg").code == 2


def test_the_command_prints_json_for_the_first_pairs(call, untrained, valid):  # noqa: F811 - a fixture
    completed = call("heads", untrained("transformer"), "--valid", valid, "--sentences", 1, "--mean", "--json")
    record = json.loads(completed.out)
    assert record["pairs"] == 1 and len(record["heads"]) == 6
    assert len(record["shares"]) == 6 + 3 and all(0 <= row["ends"] <= 1 for row in record["shares"].values())
    assert [point["off"] for point in record["curves"]["gradient"]] == [0, 1, 2, 3, 4, 5, 6]


def test_models_without_heads_are_refused_in_one_line(call, untrained, valid, language_run):  # noqa: F811 - a fixture
    for run, options, message in (
        (untrained("no attention"), [], "no attention, so it has no heads"),
        (untrained("bahdanau"), ["--mean"], "have no mean output"),
        (language_run("lm-lstm"), [], "is no translator"),
        (untrained("transformer"), ["--save", "heads.html"], "no kind that can be written"),
    ):
        completed = call("heads", run, "--valid", valid, *options)
        assert completed.code == 2 and message in completed.err and len(completed.err.splitlines()) == 1
    with pytest.raises(UserError, match="no pairs"):
        head_report(Translator.load(untrained("transformer"), "cpu", "torch"), [], console=QUIET)


def test_look_and_translate_switch_heads_off(call, untrained):  # noqa: F811 - a fixture
    run = untrained("transformer")
    off = ["--ablate", "decoder.0.cross.head.1", "--ablate", "encoder.0.self.head.0"]
    ablated = Translator.load(run, "cpu", "torch").ablated(*off[1::2])
    expected = ablated.translate("I like soccer.")
    record = json.loads(call("translate", run, *off, "--format", "jsonl", "I like soccer.").out)
    assert (record["translation"], record["score"]) == (expected.text, pytest.approx(expected.score, abs=1e-4))
    assert expected.score != pytest.approx(Translator.load(run).translate("I like soccer.").score, abs=1e-2)
    assert call("look", run, *off, "I like soccer.").out.splitlines()[0] == expected.text
    assert call("look", run, *off, "I like soccer.", "--lens", "logit").code == 0
    tuned = call("look", run, *off, "I like soccer.", "--lens", "tuned")
    assert tuned.code == 2 and "--ablate does not go with --lens tuned" in tuned.err
    output = call("translate", run, *off, "--workers", 1, "I like soccer.").out
    assert output.strip() == expected.text
