"""Guided alignment: the loss of an attention head, its gradient, word links, and trained runs."""

import json
from functools import partial

import numpy as np
import pytest
import torch

from bitext.pair import Pair
from translucid import Translator
from translucid.attention.points import recording, recording_weights
from translucid.cli.main import run as command
from translucid.corpora.phrasebook import generate
from translucid.data.batching import LinkedPieces
from translucid.data.linked_pairs import LinkedPair
from translucid.data.stores.encoded import EncodedCorpus, WordStarts
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions
from translucid.engines.tuning import learn_links
from translucid.evaluation.alignment_error import AlignmentOptions
from translucid.ground.console import Console
from translucid.ground.errors import UserError
from translucid.kernels.rounding import rounded_products
from translucid.models.build import build_model
from translucid.runs.configuration import resolve
from translucid.runs.corpus_files import Corpora, read_corpora
from translucid.runs.guided_alignment import guided_reading
from translucid.runs.run_folder import RunFolder
from translucid.runs.tensor_file import load_tensors
from translucid.training.extras.guided_alignment import GuidedHead, GuidedLoss, WordLinks
from translucid.training.objective import batch_loss

PAIRS = [LinkedPair.of(Pair(p.source, p.target), p.alignment) for p in generate(104, max_words=8)]
LINKED = Corpora.of(PAIRS[:100], PAIRS[100:])
QUIET = Console(quiet=True)
TWO_LAYERS = ["model.encoder_layers=1", "model.decoder_layers=2", "model.heads=2", "model.feed_forward=16"]
MODELS = {
    "transformer": TWO_LAYERS,
    "bahdanau": ["model.kind=recurrent", "model.attention=bahdanau"],
    "luong": ["model.kind=recurrent", "model.attention=luong-general", "model.input_feeding=true"],
    "local": ["model.kind=recurrent", "model.attention=luong-dot", "model.window=2"],
    "attention-only": ["model.kind=attention-only", *TWO_LAYERS[:2]],
}
GUIDED = "training.guided_alignment=0.5"


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.learn(PAIRS, TokenizerOptions(vocabulary=150), seed=1)


@pytest.fixture(scope="module")
def corpus(tokenizer):
    return EncodedCorpus.encode(PAIRS, tokenizer, max_tokens=100, starts=WordStarts.of(tokenizer))


class InTraining:
    """A model and its loss, with the interface of `Weights`."""

    def __init__(self, *settings):
        self.configuration = resolve(assignments=["model.width=8", "model.dropout=0", *settings])
        self.model = build_model(self.configuration.model, 150, 150).train()
        self.loss = partial(batch_loss, self.model)

    @property
    def head(self):
        return GuidedHead(guided_reading(self.configuration))


def numpy_loss(weights, batch):
    """-sum_t sum_s G_ts log A_ts of a batch, in float64, given the attention weights A [B, T, S]."""
    total = 0.0
    sources = batch.source.size(1)
    entries = zip(batch.links.positions.tolist(), batch.links.weights.tolist(), strict=True)
    for position, link_weight in entries:
        row, source = divmod(position, sources)
        pair, target = divmod(row, batch.labels.size(1))
        total -= link_weight * np.log(max(weights[pair, target, source], 1e-9))
    return total


@pytest.mark.parametrize("kind", MODELS)
def test_the_loss_is_the_cross_entropy_of_one_head_to_the_links(kind, corpus):
    """The expected weights come from the exact attention path; the loss uses queries and keys."""
    trained = InTraining(*MODELS[kind])
    batch = corpus.batch([3, 8, 1])
    with recording_weights(trained.model) as maps:
        plain = batch_loss(trained.model, batch, 0.1)
    layer = 1 if "model.decoder_layers=2" in MODELS[kind] else 0
    weights = maps[f"decoder.{layer}.cross"][:, 0].double().detach().numpy()
    guided = GuidedLoss(trained.model, trained.loss, trained.head, 0.7)(batch, 0.1)
    assert guided.cross_entropy == pytest.approx(plain.cross_entropy.item(), rel=1e-6)
    added = (guided.smoothed - plain.smoothed).item()
    assert added == pytest.approx(0.7 * numpy_loss(weights, batch), rel=1e-4)
    assert added > 1


def test_the_gradient_is_that_of_finite_differences(corpus):
    trained = InTraining(*TWO_LAYERS)
    trained.model.double()
    batch = corpus.batch([3, 8, 1])
    batch = batch._replace(links=LinkedPieces(batch.links.positions, batch.links.weights.double()))
    guided = GuidedLoss(trained.model, trained.loss, trained.head, 3.0)
    weight = trained.model.decoder[1].cross_attention.query.weight
    guided(batch).smoothed.backward()
    for index in ((0, 0), (2, 5), (3, 7)):
        differences = []
        for step in (1e-5, -1e-5):
            with torch.no_grad():
                weight[index] += step
                differences.append(guided(batch).smoothed.item())
                weight[index] -= step
        estimate = (differences[0] - differences[1]) / 2e-5
        assert weight.grad[index].item() == pytest.approx(estimate, rel=1e-5, abs=1e-8)


def test_a_batch_has_the_loss_of_its_pairs(corpus):
    trained = InTraining(*TWO_LAYERS)
    guided, plain = GuidedLoss(trained.model, trained.loss, trained.head, 1.0), trained.loss
    rows = [3, 8, 1, 40]
    separate = [guided(corpus.batch([row])).smoothed - plain(corpus.batch([row])).smoothed for row in rows]
    batched = guided(corpus.batch(rows)).smoothed - plain(corpus.batch(rows)).smoothed
    torch.testing.assert_close(batched, sum(separate), rtol=1e-4, atol=1e-4)


def test_attention_stays_on_the_fused_path(corpus):
    trained = InTraining(*TWO_LAYERS)
    with recording(trained.model, trained.head.points(trained.model)) as record, rounded_products():
        trained.loss(corpus.batch([1]))
    assert [*record] == ["decoder.1.cross.queries", "decoder.1.cross.keys"]


def test_a_training_teaches_the_head_and_the_run_reads_it(train, tmp_path):
    folder = tmp_path / "told"
    train(folder, GUIDED, "model.decoder_layers=2", "training.max_steps=21", data=LINKED)
    losses = [row["alignment_loss"] for row in RunFolder(folder).metrics() if row["kind"] == "validation"]
    assert len(losses) == 3 and losses[0] > losses[1] > losses[2]
    translator = Translator.load(folder, "cpu", "torch")
    assert translator.configuration.alignment == AlignmentOptions(layer=1, head=0)
    assert translator.configuration.training.guided_layer == 1
    pairs = [pair.ids for pair in translator.pipeline.pairs(PAIRS[:3])]
    learn = partial(learn_links, translator.model, pairs, translator.device)
    taught, mean = learn(guided=AlignmentOptions(layer=1, head=0)), learn(guided=None)
    assert not np.array_equal(taught.weights, mean.weights)


def test_a_resumed_training_gives_the_same_weights(train, tmp_path):
    settings = [GUIDED, "data.subword_dropout=0.1", "training.validate_every=3", "data.placeholders=0.3"]
    train(tmp_path / "whole", *settings, "training.max_steps=6", data=LINKED)
    train(tmp_path / "parts", *settings, "training.max_steps=3", data=LINKED)
    train(tmp_path / "parts", *settings, "training.max_steps=6", data=LINKED, resume=True)
    uninterrupted, resumed = (
        load_tensors(tmp_path / name / "state/checkpoint.safetensors") for name in ("whole", "parts")
    )
    assert uninterrupted[0].keys() == resumed[0].keys()
    assert all(torch.equal(tensor, resumed[0][name]) for name, tensor in uninterrupted[0].items())


def pharaoh(links):
    """Return links in the Pharaoh format, such as `0-0 1-2`."""
    return " ".join(f"{source}-{target}" for source, target in sorted(links))


def files(folder):
    """Write the pairs as pairs.tsv with pairs.links, and as linked.jsonl."""
    rows = [{**pair._asdict(), "alignment": pharaoh(pair.links)} for pair in PAIRS]
    (folder / "linked.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "pairs.tsv").write_text("".join(f"{row['source']}\t{row['target']}\n" for row in rows))
    (folder / "pairs.links").write_text("".join(row["alignment"] + "\n" for row in rows))
    return folder


@pytest.mark.parametrize("reverse", [False, True])
def test_links_come_from_files(reverse, tmp_path):
    folder = files(tmp_path)
    settings = [f"data.valid=[{folder}/pairs.tsv]", f"data.reverse={reverse}", GUIDED]
    pharaoh = [f"data.train=[{folder}/pairs.tsv]", f"data.train_alignments=[{folder}/pairs.links]"]
    digests = set()
    for source in ([f"data.train=[{folder}/linked.jsonl]"], pharaoh):
        corpora = read_corpora(resolve(assignments=[*source, *settings]).data, 1, with_links=True)
        (corpus,) = corpora.train
        for pair, expected in zip(corpus, PAIRS, strict=True):
            expected = expected.swapped if reverse else expected
            assert pair == expected and pair.links == expected.links
        digests.add(corpora.digest)
    (folder / "pairs.links").write_text((folder / "pairs.links").read_text().replace("0-0", ""))
    digests.add(read_corpora(resolve(assignments=[*pharaoh, *settings]).data, 1, with_links=True).digest)
    assert len(digests) == 3


def test_pairs_without_links_are_linked_by_statistics_once(monkeypatch):
    configuration = resolve(assignments=[GUIDED])
    plain = [Pair(p.source, p.target) for p in generate(1100, max_words=8)]
    corpora = Corpora([PAIRS[:50], plain[:1000]], plain[1000:], "digest")
    linked_corpora = WordLinks(configuration).corpora(corpora, QUIET)
    assert linked_corpora.digest != corpora.digest and linked_corpora.train[0] is corpora.train[0]
    (_, linked), valid = linked_corpora.train, linked_corpora.valid
    assert [*linked] == plain[:1000] and [*valid] == plain[1000:]
    right = wrong = 0
    for pair, phrase in zip([*linked, *valid], generate(1100, max_words=8), strict=True):
        right += len(pair.links & {*phrase.alignment})
        wrong += len(pair.links - {*phrase.alignment})
    assert right > 4500 and wrong < 0.1 * right
    monkeypatch.delattr("translucid.training.extras.guided_alignment.statistical_links")
    again = WordLinks(configuration).corpora(corpora, QUIET)
    assert [pair.links for pair in again.train[1]] == [p.links for p in linked]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["model.kind=recurrent", "model.attention=none"], "model.attention is none"),
        (["model.decoder_layers=2", "training.guided_layer=2"], "the layers are 0 to 1"),
        (["training.compile=true"], "training.compile and training.guided_alignment"),
        (["training.sharded=true"], "training.sharded and training.guided_alignment"),
        (["data.train=[a.tsv,b.tsv]", "data.train_alignments=[a.links]"], "names 1 files for 2"),
        (["data.train=[a.tsv]", "data.train_alignments=[a]", "data.skip_bad=true"], "skip_bad"),
    ],
)
def test_incompatible_settings_are_refused(settings, message):
    with pytest.raises(UserError, match=message):
        resolve(assignments=[GUIDED, *settings])


@pytest.mark.parametrize("preset", ["caption-soft", "lm-lstm", "classifier"])
def test_only_translators_accept_it(preset):
    with pytest.raises(UserError, match="guided_alignment is for translators"):
        resolve(preset=preset, assignments=[GUIDED])


def test_lines_of_linked_files_must_not_be_skipped(tmp_path):
    settings = [f"data.{kind}=[{files(tmp_path)}/linked.jsonl]" for kind in ("train", "valid")]
    with pytest.raises(UserError, match=r"data\.skip_bad does not go together"):
        read_corpora(resolve(assignments=[*settings, GUIDED, "data.skip_bad=true"]).data, 1, with_links=True)


def test_a_run_needs_links_that_fit_its_words(train, tmp_path):
    unlinked = [LinkedPair.of(pair, []) for pair in PAIRS]
    with pytest.raises(UserError, match="no training pair has word links"):
        train(tmp_path / "run", GUIDED, data=Corpora.of(unlinked[:100], unlinked[100:]))


def test_links_without_guided_alignment_are_an_error():
    with pytest.raises(UserError, match=r"is for training\.guided_alignment"):
        resolve(assignments=["data.train=[a.tsv]", "data.train_alignments=[a.links]"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: [*lines[:2], "0-0 1:1", *lines[3:]], "pairs.links:3: is not a line of word links"),
        (lambda lines: [*lines[:4], "0-99", *lines[5:]], "pairs.links:5: links 0-99, but the pair has"),
        (lambda lines: lines[:-1], "pairs.links: holds 103 lines for 104 sentence pairs"),
        (lambda lines: [*lines, "0-0"], "pairs.links: holds 105 lines for 104 sentence pairs"),
    ],
)
def test_bad_link_files_are_reported(change, message, tmp_path, capsys):
    folder = files(tmp_path)
    lines = (folder / "pairs.links").read_text().splitlines()
    (folder / "pairs.links").write_text("\n".join(change(lines)) + "\n")
    options = ["--train", folder / "pairs.tsv", "--valid", folder / "linked.jsonl", "--out", folder / "run"]
    options += ["--train-alignments", folder / "pairs.links", "--set", GUIDED]
    assert command([str(argument) for argument in ["train", *options]]) == 2
    stderr = capsys.readouterr().err
    assert message in " ".join(stderr.split()) and "Traceback" not in stderr
    assert not (folder / "run").exists()
