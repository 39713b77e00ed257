"""The fastest way to translate with a run on this machine, which `translucid tune` and the end of a training find."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import cache
from itertools import islice
from pathlib import Path

import torch

from translucid.data.text_pipeline import TextPipeline
from translucid.data.tokenizing.pieces import SPACE
from translucid.data.tokenizing.reserved import PLACEHOLDERS
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.decoding_options import CandidateVocabulary
from translucid.engines import ALLOWED
from translucid.engines.agreement import TOLERANCE, disagreement
from translucid.engines.choosing import choose_engine
from translucid.engines.ctranslate2.searching import CTranslate2Engine
from translucid.engines.engine import TorchEngine
from translucid.engines.piece_links import learn_links, seen_pieces
from translucid.engines.trials import Trial, all_ways, fastest, trials
from translucid.engines.tuned import Tuned, save_tuned
from translucid.ground.console import Console, counting
from translucid.ground.errors import UserError
from translucid.models.protocol import SequenceModel
from translucid.runs.corpus_files import read_corpora
from translucid.runs.run_folder import RunFolder

CPU = torch.device("cpu")
PAIRS = 50_000
"""Training pairs that shortlists are learned from, at most."""
SENTENCES = 1000
"""Sentences that are translated each time, at most."""
LISTS: dict[CandidateVocabulary, tuple[int, int]] = {"small shortlist": (20, 400), "large shortlist": (80, 1200)}
"""Of each shortlist: the pieces that a source piece brings in, and the frequent ones that are always in."""


def find_fastest(
    run: Path,
    *,
    console: Console,
    train: list[str] | None = None,
    valid: list[str] | None = None,
    allow: float = ALLOWED,
    shortlists: bool = False,
    pairs: int = PAIRS,
    sentences: int = SENTENCES,
    source: str | None = None,
    target: str | None = None,
) -> tuple[list[Trial], Trial]:
    """Try every way to translate with a run, remember the fastest of those that lose next to nothing, and return all.

    Args:
        run: its folder.
        console: where progress is shown.
        train: files of training pairs; the run's own if not given. Without any, all pieces are considered.
        valid: files of pairs to try on; those that the run was validated with if not given.
        allow: BLEU that may be lost; chrF where BLEU can't tell.
        shortlists: whether to learn shortlists, and try them.
        pairs: training pairs that they are learned from, at most.
        sentences: sentences that are translated each time, at most.
        source: code of the source language, for a model that has many; as the run says if not given.
        target: code of the target language.

    Raises:
        UserError: the run is damaged, has no attention to learn shortlists from, or can be used in one way only; or
            files are not there.
    """
    folder = RunFolder(run)
    configuration = folder.configuration().between(source, target)
    configuration.refuse_other_reader("text", run)
    data = configuration.data
    tokenizer = folder.tokenizer().between(*data.languages, data.tokenizer)
    model = folder.load_sequence_model(configuration, tokenizer)
    longest = configuration.longest
    if shortlists and not configuration.model.looks:
        what = "there are no shortlists: they are learned from attention, and it has none"
        raise UserError(what, file=run, fix="Leave out --shortlists.")
    own = configuration.data
    data = own.model_copy(update={"train": train or own.train, "valid": valid or own.valid, "weights": None})
    if shortlists and not data.train:
        raise UserError("the run does not say which files it was trained on", fix="Give them with --train FILES.")
    corpora = read_corpora(data, configuration.training.seed, folder.held_out(), needs_training_text=False)
    each_told = own.tokenizer.told == "each on its own side"
    always = sorted(own.tokenizer.languages.values()) if each_told else []  # which no target text has
    always += [SPACE, *PLACEHOLDERS] if tokenizer.has_placeholders else []
    lists: dict[CandidateVocabulary, str] = {}
    if data.train and (tokenizer.joint or own.tokenizer.shared_ids):
        with counting(console, "reading the training text", None) as advance:
            targets = (pair.target for pair in corpora.kept(data.filter))
            lists["seen pieces"] = seen_pieces(tokenizer, targets, advance, always)
    if shortlists:
        encoded = TextPipeline(tokenizer, longest).pairs(list(islice(corpora.kept(data.filter), pairs)))
        ids = [pair.ids for pair in encoded if pair.longest <= longest]
        with counting(console, "learning the shortlists", len(ids)) as advance:
            links = learn_links(model, ids, CPU, advance)
        lists |= {name: links.shortlist(tokenizer, *sizes, always) for name, sizes in LISTS.items()}
    test = corpora.valid[:sentences]
    encoded = TextPipeline(tokenizer, longest).pairs(test)
    test = [pair for pair, one in zip(test, encoded, strict=True) if len(one.source) <= longest]
    if not test:
        raise UserError("there are no sentences to try that the model takes in one piece", fix="See --valid.")
    tried = []
    with tempfile.TemporaryDirectory(prefix="translucid-") as place:
        written = {name: Path(place) / f"{name}.tsv" for name in lists}
        for name, file in written.items():
            file.write_text(lists[name], encoding="utf-8")
        ways = all_ways(model, written, opened=bool(tokenizer.target_opening))
        difference = _difference(model, tokenizer, ways)
        if difference is not None:
            console.print(f"{disagreement(difference)}; our own search is used", soft_wrap=True)
            ways = [way.model_copy(update={"difference": difference}) for way in ways if way.engine == "torch"]
        elif len(ways) == 1:
            what = "one engine runs this model, and the vocabulary is of the target language alone: nothing to try"
            raise UserError(what, file=run, fix="See translucid tune --shortlists.")
        with counting(console, "trying ways to translate", len(ways)) as advance:
            for trial in trials(model, tokenizer, test, configuration.decoding, ways, written, data.languages[1]):
                tried.append(trial)
                advance(1)

    @cache
    def whole() -> TorchEngine:
        return TorchEngine.of(model, tokenizer, CPU)

    best = fastest(tried, allow)
    if not best.tells:
        console.print(
            f"{best.metric} {tried[0].score:.2f} is too low to tell what a faster way loses: only ways that write "
            "the same are chosen from",
            soft_wrap=True,
        )
    between = configuration.data.languages if own.tokenizer.languages else None
    save_tuned(run, best.tuned.model_copy(update={"languages": between}), lists.get(best.tuned.considered))
    if best.tuned.engine == "ctranslate2":
        # Converts the model, so that the first translation need not wait for it.
        choose_engine("auto", folder, configuration, tokenizer, whole, device="cpu")
    return tried, best


def _difference(model: SequenceModel, tokenizer: Tokenizer, ways: Sequence[Tuned]) -> float | None:
    """Return how far what CTranslate2 computes is from what the model computes, if it could be used and is too far."""
    if not any(way.engine == "ctranslate2" for way in ways):
        return None
    found = CTranslate2Engine.difference_from(TorchEngine.of(model, tokenizer, CPU), tokenizer)
    return None if found <= TOLERANCE else found
