"""Prefix training: where pairs are cut, what batches then have, and trained runs."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import translucid
from bitext.pair import Pair
from translucid.corpora.phrasebook import generate
from translucid.data.document_context import ContextOptions
from translucid.data.linked_pairs import LinkedPair
from translucid.data.stores.context import VariedContext
from translucid.data.stores.encoded import EncodedCorpus, StoredSoftTargets, WordStarts
from translucid.data.stores.prefixes import VariedPrefixes
from translucid.data.tokenizing.pieces import SEPARATOR, TERM
from translucid.data.tokenizing.subword_dropout import VariedCorpus
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.runs.configuration import resolve
from translucid.runs.corpus_files import Corpora
from translucid.runs.tensor_file import load_tensors

PREFIXES = "training.prefixes=0.5"
PAIRS = [LinkedPair.of(Pair(p.source, p.target).of_document(0), p.alignment) for p in generate(104, max_words=9)]
PAIRS += [LinkedPair.of(Pair("Thanks", "Muchas gracias"), [(0, 0)])]
"""The last pair has a single source word."""
EPOCH = [1, 3]


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.learn(PAIRS, TokenizerOptions(vocabulary=150), seed=1, reserved=[SEPARATOR, *TERM])


def encode(tokenizer, pairs):
    starts = WordStarts.of(tokenizer)
    return EncodedCorpus.encode(pairs, tokenizer, max_tokens=100, starts=starts, documents=True)


def cut(pair, place):
    """Return a pair with the first `place` source words, and what is aligned to them; the pair itself without any."""
    kept = 0
    for target in range(len(pair.target.split())):
        linked = [s for s, t in pair.links if t == target]
        if any(s >= place for s in linked):
            break
        if linked:
            kept = target + 1
    if not kept:
        return pair
    source, target = pair.source.split()[:place], pair.target.split()[:kept]
    return LinkedPair.of(Pair(" ".join(source), " ".join(target)), {(s, t) for s, t in pair.links if t < kept})


def words(tokenizer, ids):
    """Return the number of words of a source."""
    return sum(tokenizer.source_word_starts()[i] for i in ids if i not in (SPECIAL.pad, SPECIAL.end))


def dense(batch):
    """Return the weights [B, T, S] of the word links of a batch."""
    weights = torch.zeros(*batch.labels.shape, batch.source.shape[1])
    weights.view(-1)[batch.links.positions] = batch.links.weights
    return weights


def test_a_prefix_has_the_target_that_is_aligned_to_it(tokenizer):
    """The expected batch is that of the pairs whose texts were cut, without the end tokens of their targets."""
    whole, rows = encode(tokenizer, PAIRS), np.arange(len(PAIRS))
    corpus = VariedPrefixes(whole, 0.6, [], with_links=True).draw(EPOCH)
    batch = corpus.batch(rows)
    places = [words(tokenizer, source) for source in batch.source.tolist()]
    whole_places = [len(pair.source.split()) for pair in PAIRS]
    expected = [p if n == m else cut(p, n) for p, n, m in zip(PAIRS, places, whole_places, strict=True)]
    is_cut = np.array([a is not b for a, b in zip(expected, PAIRS, strict=True)])
    assert 45 < is_cut.sum() < 75 and not is_cut[-1] and min(places[:-1]) == 1
    alone = encode(tokenizer, expected).batch(rows)
    assert torch.equal(batch.source, alone.source)
    is_end = alone.labels == SPECIAL.end
    is_end[~torch.from_numpy(is_cut)] = False
    labels = alone.labels.masked_fill(is_end, SPECIAL.pad)
    assert torch.equal(batch.labels, labels[:, : batch.labels.shape[1]])
    assert (batch.labels == SPECIAL.end).any(1).tolist() == (~is_cut).tolist()
    # The decoder reads each label after it was to be predicted, except for the last one.
    for read, label, ends in zip(batch.targets_in.tolist(), batch.labels.tolist(), is_cut, strict=True):
        target = [token for token in label if token != SPECIAL.pad]
        assert [token for token in read if token != SPECIAL.pad] == [SPECIAL.start, *target[:-1]], ends
    assert torch.equal(dense(batch), dense(alone)[:, : batch.labels.shape[1]])
    source_lengths, target_lengths = corpus.lengths_of(rows)
    assert source_lengths.tolist() == (batch.source != SPECIAL.pad).sum(1).tolist()
    assert target_lengths.tolist() == (batch.labels != SPECIAL.pad).sum(1).tolist()
    assert corpus.target_tokens(rows) == target_lengths.sum()


def test_each_epoch_cuts_other_pairs_and_its_seed_decides(tokenizer):
    rows = np.arange(len(PAIRS))
    varied = VariedPrefixes(encode(tokenizer, PAIRS), 0.5, [], with_links=False)
    lengths = [varied.draw(seed).lengths_of(rows)[0] for seed in ([1, 0], [1, 1], [2, 0], [1, 0])]
    assert lengths[0].tolist() == lengths[3].tolist()
    assert len({tuple(epoch) for epoch in lengths}) == 3
    batches = [varied.draw([1, 0]).batch(part).source for part in (rows[20:30], rows[25:30])]
    assert torch.equal(batches[0][5:, : batches[1].shape[1]], batches[1])


def test_subword_dropout_and_context_are_cut_too(tokenizer):
    rows = np.arange(20, 60)
    context = ContextOptions.of(1, tokenizer, 100)
    varied = VariedContext(
        VariedCorpus(PAIRS, tokenizer, 0.3, 1, WordStarts.of(tokenizer), documents=True), [105], context
    )
    whole = varied.draw(EPOCH).batch(rows)
    batch = VariedPrefixes(varied, 0.9, [], with_links=True).draw(EPOCH).batch(rows)
    assert len(batch.source) == 40 and (batch.labels == SPECIAL.end).any(1).sum() < 20
    has_context = 0
    for row, source, label, all_source, all_label in zip(
        rows, batch.source.tolist(), batch.labels.tolist(), whole.source.tolist(), whole.labels.tolist(), strict=True
    ):
        source, label = ([token for token in ids if token != SPECIAL.pad] for ids in (source, label))
        assert source[:-1] == all_source[: len(source) - 1] and source[-1] == SPECIAL.end
        assert label == all_label[: len(label)]
        before, _, sentence = tokenizer.decode_source(source[:-1]).rpartition(SEPARATOR)
        has_context += bool(before)
        pair = cut(PAIRS[row], len(sentence.split()))
        if label[-1] == SPECIAL.end:
            continue
        assert (sentence.strip(), tokenizer.decode(label)) == (pair.source, pair.target)
    assert 10 < has_context < 30


def test_soft_targets_follow_and_terms_stay_whole(tokenizer):
    whole, rows = encode(tokenizer, PAIRS[:30]), np.arange(30)
    numbers = np.arange(len(whole.target_ids))[:, None]
    soft = StoredSoftTargets(numbers, np.ones_like(numbers, np.float16))
    batch = VariedPrefixes(replace(whole, soft_targets=soft), 0.9, [], with_links=False).draw(EPOCH).batch(rows)
    positions = batch.labels != SPECIAL.pad
    assert whole.target_ids[batch.soft_targets.tokens[:, 0]].tolist() == batch.labels[positions].tolist()
    annotated = [LinkedPair.of(pair._replace(source=f"{pair.source} {TERM[0]}"), pair.links) for pair in PAIRS[:30]]
    marks = [tokenizer.source_id(piece) for piece in TERM]
    uncut = encode(tokenizer, annotated)
    cut_batch = VariedPrefixes(uncut, 0.9, marks, with_links=False).draw(EPOCH).batch(rows)
    assert torch.equal(cut_batch.source, uncut.batch(rows).source)
    assert torch.equal(cut_batch.labels, uncut.batch(rows).labels)


def test_a_resumed_training_gives_the_same_weights_and_others_than_without(train, tmp_path):
    """With placeholders, subword dropout, guided alignment and statistical links."""
    pairs = [Pair(*pair) for pair in PAIRS]
    data = Corpora.of(pairs[:100], pairs[100:])
    base = ["data.subword_dropout=0.1", "data.placeholders=0.3", "training.validate_every=3"]
    settings = [*base, PREFIXES, "training.guided_alignment=0.1"]
    train(tmp_path / "whole", *settings, "training.max_steps=6", data=data)
    train(tmp_path / "parts", *settings, "training.max_steps=3", data=data)
    train(tmp_path / "parts", *settings, "training.max_steps=6", data=data, resume=True)
    train(tmp_path / "uncut", *base, "training.guided_alignment=0.1", "training.max_steps=6", data=data)
    uninterrupted, resumed, uncut = (
        load_tensors(tmp_path / name / "model.safetensors")[0] for name in ("whole", "parts", "uncut")
    )
    assert all(torch.equal(tensor, resumed[name]) for name, tensor in uninterrupted.items())
    assert not all(torch.equal(tensor, uncut[name]) for name, tensor in uninterrupted.items())
    with pytest.raises(UserError, match=r"training.prefixes can't change in a resumed run, from 0.5 to 0.4"):
        train(tmp_path / "parts", *settings, "training.prefixes=0.4", data=data, resume=True)


def test_both_directions_of_a_multilingual_model_are_cut(tmp_path):
    (tmp_path / "pairs.tsv").write_text("".join(f"{pair.source}\t{pair.target}\n" for pair in PAIRS))
    settings = {
        "training.prefixes": 0.5, "data.both_directions": True, "data.tokenizer.vocabulary": 150,
        "model.width": 8, "training.max_steps": 2, "training.validate_sentences": 2,
    }  # fmt: skip
    files = [f"{tmp_path}/pairs.tsv:en-es"]
    run = translucid.train(files, tmp_path / "run", valid=files, model="tiny", settings=settings)
    offsets, words = (
        np.fromfile(run / f"state/corpus/links.{name}", kind) for name, kind in (("offsets", "i8"), ("words", "u2"))
    )
    assert len(words) == offsets[-1] > 500


@pytest.mark.parametrize(
    ("preset", "settings", "message"),
    [
        ("lm-lstm", [], "training.prefixes is for translators"),
        ("caption-soft", [], "training.prefixes is for translators"),
        ("tiny", ["data.train=[a]", "data.train_alignments=[a]", "data.skip_bad=true"], "skip_bad"),
    ],
)
def test_other_models_and_settings_are_refused(preset, settings, message):
    with pytest.raises(UserError, match=message):
        resolve(preset=preset, assignments=[PREFIXES, *settings])


def test_pairs_without_links_are_refused(train, tmp_path):
    unlinked = [LinkedPair.of(pair, []) for pair in PAIRS]
    with pytest.raises(UserError, match=r"no training pair has word links.*Set training\.prefixes=0"):
        train(tmp_path / "run", PREFIXES, data=Corpora.of(unlinked[:100], unlinked[100:]))
