"""Find the fastest way to translate with a run on this machine, for `translucid tune speed` and after training.

Engines, weights and candidate vocabularies are tried, to find the fastest without loss; exported models are compared
likewise. Candidates are the pieces of the target text, and lexical shortlists learned from attention.
"""

from __future__ import annotations

import operator
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from bitext.pair import Pair
from bitext.protected_spans import PLACEHOLDERS
from translucid.data.readers.corpus import sources_of, targets_of
from translucid.data.text_pipeline import TextPipeline
from translucid.data.tokenizing.pieces import SPACE
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions
from translucid.decoding.decoding_options import BY_WORDS, CandidateVocabulary, DecodingOptions, SearchRequest
from translucid.decoding.hypothesis import Hypothesis
from translucid.decoding.maps import cross_attention
from translucid.decoding.pair_scores import paired_batches
from translucid.decoding.search import Precision, TorchEngine
from translucid.decoding.shortlist import SEPARATORS, listed
from translucid.engines import ALLOWED
from translucid.engines.agreement import TOLERANCE, disagreement
from translucid.engines.choosing import TITLES, Engine, choose_engine, untuned
from translucid.engines.ctranslate2.conventions import Quantization, is_supported
from translucid.engines.ctranslate2.searching import CTranslate2Engine
from translucid.engines.onnx.conventions import is_installed as onnx_is_installed
from translucid.engines.onnx.conventions import is_supported as onnx_supports
from translucid.engines.onnx.searching import OnnxEngine
from translucid.engines.tuned import FILE, GpuSearch, Tuned, load_tuned, save_tuned
from translucid.evaluation.alignment_error import AlignmentOptions
from translucid.evaluation.metrics import Criterion
from translucid.ground.console import Console, progress_bar
from translucid.ground.errors import UserError
from translucid.ground.iteration import batched
from translucid.ground.special import SPECIAL
from translucid.kernels.devices import choose_device
from translucid.models.protocol import SequenceModel
from translucid.runs.configuration import Configuration
from translucid.runs.corpus_files import Corpora, read_corpora
from translucid.runs.data_options import DataOptions
from translucid.runs.guided_alignment import guided_readings
from translucid.runs.run_folder import RunFolder


class Trial(NamedTuple):
    """The result of translating in one way."""

    tuned: Tuned
    sentences_per_second: float
    score: float
    metric: str = "BLEU"
    """The metric of the score, BLEU or chrF."""
    is_meaningful: bool = True
    """Whether the score of the first trial is high enough for a comparison with the others."""
    same: bool = False
    """Whether the translations are those of the first trial."""
    greedy: float = 0.0
    """Sentences per second of a greedy search; 0 where no lists by source words were tried."""
    alone: float = 0.0
    """Sentences per second if each is searched alone; 0 where no lists by source words were tried."""

    @property
    def speeds(self) -> tuple[float, float, float]:
        """The speed of each use."""
        return self.sentences_per_second, self.greedy, self.alone

    def __str__(self) -> str:
        return f"{self.tuned} ({self.sentences_per_second:,.0f} sentences/s, {self.metric} {self.score:.2f})"


def trials(
    model: SequenceModel,
    tokenizer: Tokenizer,
    pairs: Sequence[Pair],
    options: DecodingOptions,
    configurations: Sequence[Tuned],
    shortlists: Mapping[CandidateVocabulary, Path],
    language: str | None = None,
    device: torch.device | None = None,
) -> Iterator[Trial]:
    """Translate the sources of `pairs` in each of these ways; the translations of the first one decide on the metric.

    Args:
        model: a translator.
        tokenizer: the model's tokenizer.
        pairs: the sources to translate, with references.
        options: the options of the search.
        configurations: the ways to translate.
        shortlists: the files of the shortlists, by the candidates that they name.
        language: the code of the target language, if it is known.
        device: the device of the model; by default the CPU.
    """
    torch_engine = TorchEngine.of(model, tokenizer, device or CPU)
    pipeline = TextPipeline(tokenizer, model.max_length or sys.maxsize)
    pieces = list(map(pipeline.encode, sources_of(pairs)))
    sources = [piece.ids for piece in pieces]
    criterion = Criterion([targets_of(pairs)], language)
    first_texts: list[str] = []
    is_meaningful = True
    # In a batch, CTranslate2 searches sentences with their own lists one by one: lists may gain in one use only.
    by_words = any(tuned.considered in BY_WORDS for tuned in configurations)
    for tuned in configurations:
        engine = engine_for(torch_engine, tokenizer, tuned, shortlists.get(tuned.considered))
        # The first batch allocates memory and starts threads: it is not timed. Steps are captured for each batch.
        try:
            engine.decode(SearchRequest(sources if tuned.gpu else sources[:8], options))
        except UserError:
            if first_texts and tuned.gpu:  # float16 may overflow
                continue
            raise
        seconds, (nbest_lists,) = _timed(engine, [sources], options)
        greedy = alone = 0.0
        if by_words:
            greedy = len(sources) / _timed(engine, [sources], DecodingOptions(beam=1))[0]
            single = [[source] for source in sources[:ALONE]]
            alone = len(single) / _timed(engine, single, options)[0]
        texts = [pipeline.text(piece, nbest[0].tokens) for piece, nbest in zip(pieces, nbest_lists, strict=True)]
        if first_texts:
            score = criterion.score(texts)
        else:
            score, first_texts = criterion.choose_metric(texts), texts
            is_meaningful = criterion.is_meaningful(score)
        same, speed = texts == first_texts, len(pairs) / seconds
        yield Trial(tuned, speed, score, criterion.name, is_meaningful, same, greedy, alone)


def _timed(
    engine: Engine, batches: Sequence[list[list[int]]], options: DecodingOptions
) -> tuple[float, list[list[list[Hypothesis]]]]:
    """Search for the sentences of each batch; return the seconds, and the hypotheses."""
    started = time.perf_counter()
    results = [engine.decode(SearchRequest(batch, options)) for batch in batches]
    return time.perf_counter() - started, results


def engine_for(torch_engine: TorchEngine, tokenizer: Tokenizer, tuned: Tuned, shortlist: Path | None) -> Engine:
    """Return an engine that translates in one of the ways, given the PyTorch engine with the whole vocabulary."""
    restricted = torch_engine.restricted(tuned.considered, shortlist, tokenizer)
    if tuned.gpu and torch_engine.device_type == "cuda":
        return restricted.fast(tuned.gpu.precision, captured=tuned.gpu.captured)
    if tuned.engine == "torch":
        return restricted
    if tuned.engine == "onnx":
        return OnnxEngine.of(restricted, tokenizer, quantization=tuned.quantization, considered=tuned.considered)
    return CTranslate2Engine.of(
        restricted, tokenizer, quantization=tuned.quantization, considered=tuned.considered, shortlist=shortlist
    )


def all_configurations(
    model: SequenceModel, lists: Iterable[CandidateVocabulary], *, opened: bool = False
) -> list[Tuned]:
    """Return every way to translate with a model and these shortlists, the one without any loss first.

    `opened`: whether outputs begin with a given token, for which CTranslate2 supports no lists by source words.
    """
    considered: list[CandidateVocabulary] = ["all pieces", *lists]
    configurations = []
    if is_supported(model.options):
        for candidates in considered:
            if opened and candidates in BY_WORDS:
                continue
            for weights in get_args(Quantization):
                configurations.append(Tuned(quantization=weights, considered=candidates))
    elif onnx_supports(model.options) and onnx_is_installed():
        for candidates in considered:
            if candidates not in BY_WORDS:
                for weights in get_args(Quantization):
                    configurations.append(Tuned(engine="onnx", quantization=weights, considered=candidates))
    for candidates in considered:
        configurations.append(Tuned(engine="torch", considered=candidates))
    return configurations


def gpu_configurations(model: SequenceModel) -> list[Tuned]:
    """Return every way to search with a model in PyTorch on a CUDA GPU, the one without any loss first."""
    configurations = []
    for captured in (False, True) if model.has_trees else (False,):
        for precision in get_args(Precision):
            gpu = GpuSearch(precision=precision, captured=captured)
            configurations.append(Tuned(engine="torch", gpu=gpu))
    return configurations


def fastest(results: Sequence[Trial], allowed: float) -> Trial:
    """Return the fastest trial whose score is at most `allowed` below that of the first.

    If the score is too low to tell, return the fastest trial whose translations equal those of the first. Lists by
    source words may be slower in no use than the fastest without them.
    """
    reference = results[0]
    if reference.is_meaningful:
        acceptable = [trial for trial in results if trial.score >= reference.score - allowed]
    else:
        acceptable = [trial for trial in results if trial is reference or trial.same]
    acceptable.sort(key=lambda trial: -trial.sentences_per_second)
    without_lists = next(trial for trial in acceptable if trial.tuned.considered not in BY_WORDS)
    for trial in acceptable:
        if all(map(operator.ge, trial.speeds, without_lists.speeds)):
            return trial
    return without_lists


def greedy_texts(model: SequenceModel, tokenizer: Tokenizer, pairs: Sequence[Pair], tuned: Tuned) -> list[str]:
    """Return greedy translations of the sources of `pairs` in one of these ways, without a shortlist.

    No rule prevents loops, since other programs run an exported model without one.
    """
    torch_engine = TorchEngine.of(model, tokenizer, torch.device("cpu"))
    sources = [[*ids, model.eos] for ids in tokenizer.encode_source(sources_of(pairs))]
    request = SearchRequest(sources, DecodingOptions(beam=1, max_loops=0))
    nbest_lists = engine_for(torch_engine, tokenizer, tuned, None).decode(request)
    return [tokenizer.decode(hypotheses[0].tokens) for hypotheses in nbest_lists]


class Comparison(NamedTuple):
    """The scores of an exported model and of the run that it was made from."""

    metric: str
    """The metric of the scores, BLEU or chrF."""
    original: float
    exported: float
    quantization: Quantization
    is_meaningful: bool
    """Whether the run translates well enough for a comparison, or the translations are equal."""

    @classmethod
    def of(
        cls,
        original: Sequence[str],
        exported: Sequence[str],
        pairs: Sequence[Pair],
        quantization: Quantization,
        language: str | None,
    ) -> Comparison:
        """Compare translations of the run and of the exported model."""
        criterion = Criterion([targets_of(pairs)], language)
        score = criterion.choose_metric(original)
        is_meaningful = criterion.is_meaningful(score) or list(original) == list(exported)
        return cls(criterion.name, score, criterion.score(exported), quantization, is_meaningful)

    def refuse_loss(self, run: Path) -> None:
        """Check that the exported model is about as good as the run.

        Raises:
            UserError: the exported model has lost more than is allowed, or the scores are too low for a comparison.
        """
        if not self.is_meaningful:
            what = f"can't be compared on `check`: {self.metric} {self.original:.2f} of its own translations is too low"
            raise UserError(what, file=run, fix="Give pairs that it translates well, or leave out `check`.")
        if self.original - self.exported >= ALLOWED:
            what, fix = f"{self.quantization} costs {self.original - self.exported:.2f} {self.metric}", "Leave"
            if self.quantization == "int8":
                fix = 'Export with `quantization="float32"`, or leave'
            raise UserError(what, file=run, fix=f"{fix} out `check` if that does not matter.")


CPU = torch.device("cpu")
PAIRS = 50_000
"""The largest number of training pairs that shortlists are learned from."""
SENTENCES = 1000
"""The largest number of sentences in a trial."""
ALONE = 50
"""The largest number of sentences in a trial that are searched one by one."""
LISTS: dict[CandidateVocabulary, tuple[int, int]] = {"small shortlist": (20, 400), "large shortlist": (80, 1200)}
"""For each shortlist, the number of pieces that a source piece adds, and of frequent ones that are always listed."""


def write_lists(lists: Mapping[CandidateVocabulary, str], folder: Path) -> dict[CandidateVocabulary, Path]:
    """Write each list of candidates into a file of a folder, as engines read it."""
    files: dict[CandidateVocabulary, Path] = {}
    for name, content in lists.items():
        files[name] = folder / f"{name}.tsv"
        files[name].write_text(content, encoding="utf-8")
    return files


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
    device: str = "cpu",
) -> tuple[list[Trial], Trial]:
    """Try every way to translate with a run, save the fastest of those that lose next to nothing, and return all.

    Args:
        run: the run folder.
        console: shows the progress.
        train: files of training pairs; the run's own by default. Without any, all pieces are candidates.
        valid: files of validation pairs, whose sources are translated; the run's own by default.
        allow: the loss of BLEU that is allowed, or of chrF where BLEU is too low to tell.
        shortlists: whether to learn and try shortlists.
        pairs: the largest number of training pairs that shortlists are learned from.
        sentences: the largest number of sentences in a trial.
        source: the code of the source language, for a multilingual model; as the run says by default.
        target: the code of the target language.
        device: cpu, or a CUDA GPU, on which the precision and captured steps of PyTorch's search are tried.

    Raises:
        UserError: the run is damaged, has no attention to learn shortlists from, or can be used in one way only; or
            files do not exist.
    """
    tuning = Tuning.of(
        run,
        console=console,
        train=train,
        valid=valid,
        shortlists=shortlists,
        source=source,
        target=target,
        device=device,
    )
    if not shortlists:
        pairs = 0
    lists = {} if tuning.on_gpu else tuning.lists(pairs)
    results = tuning.try_all(tuning.corpora.valid[:sentences], lists)
    best = fastest(results, allow)
    tuning.save(best, results[0].score, lists.get(best.tuned.considered))
    return results, best


@dataclass(frozen=True)
class Tuning:
    """A run for which the fastest way to translate is searched."""

    folder: RunFolder
    configuration: Configuration
    """The configuration of the run, for the languages of the search."""
    data: DataOptions
    """The options of the data, with the files of training and validation pairs."""
    model: SequenceModel
    pipeline: TextPipeline
    corpora: Corpora
    console: Console
    device: torch.device = CPU

    @classmethod
    def of(
        cls,
        run: Path,
        *,
        console: Console,
        train: list[str] | None = None,
        valid: list[str] | None = None,
        shortlists: bool = False,
        source: str | None = None,
        target: str | None = None,
        device: str = "cpu",
    ) -> Tuning:
        """Load a run and its corpora; arguments as for `find_fastest`.

        Raises:
            UserError: the run is damaged, shortlists can't be learned from it, or files do not exist.
        """
        chosen_device = choose_device(device)
        if chosen_device.type == "mps":
            raise UserError("tuning is for a CPU or a CUDA GPU, not for mps", fix='Use `device="cpu"`.')
        if shortlists and chosen_device != CPU:
            raise UserError("shortlists are for a CPU", fix='Use `device="cpu"`, or tune only the speed.')
        folder = RunFolder(run)
        configuration = folder.configuration("text").between(source, target)
        options = configuration.data
        if shortlists and not configuration.model.has_cross_attention:
            what = "there are no shortlists: they are learned from attention, and it has none"
            raise UserError(what, file=run, fix="Use `shortlists=False`.")
        files = {"train": train or options.train, "valid": valid or options.valid, "weights": None}
        data = options.model_copy(update=files)
        if shortlists and not data.train:
            raise UserError("the run does not say which files it was trained on", fix="Give them with `train=FILES`.")
        tokenizer = folder.tokenizer().between(*options.languages, options.tokenizer)
        model = folder.load_sequence_model(configuration, tokenizer).to(chosen_device)
        corpora = read_corpora(data, configuration.training.seed, folder.held_out(), needs_training_text=False)
        pipeline = TextPipeline(tokenizer, configuration.longest)
        return cls(folder, configuration, data, model, pipeline, corpora, console, chosen_device)

    @property
    def on_gpu(self) -> bool:
        """Whether searches on a GPU are tried."""
        return self.device != CPU

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's tokenizer."""
        return self.pipeline.tokenizer

    def lists(self, pairs: int) -> dict[CandidateVocabulary, str]:
        """Return the lists of candidates to try, with shortlists learned from up to `pairs` training pairs."""
        data = self.data
        lists: dict[CandidateVocabulary, str] = {}
        always = self._unlisted_pieces(data.tokenizer)
        if data.train and (self.tokenizer.joint or data.tokenizer.shared_ids):
            with progress_bar(self.console, "reading the training text", None) as advance:
                targets = (pair.target for pair in self.corpora.filtered(data.filter))
                lists["seen pieces"] = seen_pieces(self.tokenizer, targets, advance, always)
        if pairs:
            encoded = self.pipeline.pairs(list(islice(self.corpora.filtered(data.filter), pairs)))
            ids = [pair.ids for pair in encoded if pair.longest <= self.pipeline.longest]
            with progress_bar(self.console, "learning the shortlists", len(ids)) as advance:
                guided = next(iter(guided_readings(self.configuration)), None)
                links = learn_links(self.model, ids, CPU, advance, guided=guided)
            for name, sizes in LISTS.items():
                lists[name] = links.shortlist(self.tokenizer, *sizes, always)
        return lists

    def _unlisted_pieces(self, options: TokenizerOptions) -> list[str]:
        """Return the target pieces that no text has, but that outputs may need."""
        pieces = []
        if options.marks_sources:
            pieces += sorted(options.languages.values())
        if self.tokenizer.has_placeholders:
            pieces += [SPACE, *PLACEHOLDERS]
        return pieces

    def try_all(self, pairs: Sequence[Pair], lists: Mapping[CandidateVocabulary, str]) -> list[Trial]:
        """Translate the sources of pairs in every way that computes what the model computes.

        Raises:
            UserError: there is only one way, or the model accepts no source in one piece.
        """
        encoded = self.pipeline.pairs(pairs)
        test = [pair for pair, ids in zip(pairs, encoded, strict=True) if len(ids.source) <= self.pipeline.longest]
        if not test:
            raise UserError("there are no sentences to try that the model takes in one piece", fix="See `valid`.")
        results = []
        with tempfile.TemporaryDirectory(prefix="translucid-") as folder_name:
            files = write_lists(lists, Path(folder_name))
            configurations = self.configurations(files)
            if len(configurations) == 1:
                what = "one engine runs this model, and the vocabulary is of the target language alone: nothing to try"
                raise UserError(what, file=self.folder.path, fix="See `shortlists=True`.")
            options, language = self.configuration.decoding, self.configuration.data.languages[1]
            with progress_bar(self.console, "trying configurations", len(configurations)) as advance:
                ways = self.model, self.tokenizer, test, options, configurations, files, language
                for trial in trials(*ways, device=self.device):
                    results.append(trial)
                    advance(1)
        return results

    def configurations(self, lists: Iterable[CandidateVocabulary]) -> list[Tuned]:
        """Return the ways to translate that compute what the model computes, with these lists of candidates."""
        if self.on_gpu:
            return gpu_configurations(self.model)
        configurations = all_configurations(self.model, lists, opened=bool(self.tokenizer.target_opening))
        engine_name = configurations[0].engine
        if engine_name != "torch":
            torch_engine = TorchEngine.of(self.model, self.tokenizer, CPU)
            kind = CTranslate2Engine if engine_name == "ctranslate2" else OnnxEngine
            difference = kind.difference_from(torch_engine, self.tokenizer)
            if not difference <= TOLERANCE:  # not `>`: NaN is too large too
                self.console.print(
                    f"{disagreement(difference, TITLES[engine_name])}; our own search is used", soft_wrap=True
                )
                return [
                    tuned.model_copy(update={"difference": difference})
                    for tuned in configurations
                    if tuned.engine == "torch"
                ]
        return configurations

    def save(self, best: Trial, score: float, shortlist: str | None) -> None:
        """Save the fastest way with its shortlist; `score`: that of the first trial."""
        if not best.is_meaningful:
            self.console.print(
                f"{best.metric} {score:.2f} is too low to measure a loss: only configurations with the same "
                "translations are considered",
                soft_wrap=True,
            )
        before = load_tuned(self.folder.path)
        if self.on_gpu:  # what is known of the CPU remains
            tuned = before or untuned(self.configuration.model)
            tuned.model_copy(update={"gpu": best.tuned.gpu}).write(self.folder.path / FILE)
            return
        update = {"languages": self.configuration.data.chosen_languages, "gpu": before and before.gpu}
        tuned = best.tuned.model_copy(update=update)
        save_tuned(self.folder.path, tuned, shortlist)
        if best.tuned.engine != "torch":
            # Converts the model, so that the first translation need not wait for it.
            torch_engine = TorchEngine.of(self.model, self.tokenizer, CPU)
            choose_engine("auto", self.folder, self.configuration, self.tokenizer, lambda: torch_engine, device="cpu")


FAINT = 0.1
"""The least attention that links two pieces."""
TOGETHER = 512
"""The number of pairs between two progress reports."""
BATCH = 4096
"""The number of tokens in a batch, padding included."""
TEXTS = 20_000
"""The number of texts that are encoded at a time."""

Pieces = tuple[list[int], list[int]]
"""Source and target ids of a pair, both with the end token."""


class PieceLinks(NamedTuple):
    """The source and target pieces that attention has linked."""

    keys: NDArray[np.int64]
    """The key of each pair of linked pieces: the source id times the number of target pieces, plus the target id."""
    weights: NDArray[np.float64]
    """The attention of each pair, summed over the text."""
    frequency: NDArray[np.float64]
    """The frequency of each target piece."""

    def shortlist(self, tokenizer: Tokenizer, per_source: int, always: int, languages: Sequence[str] = ()) -> str:
        """Return a shortlist for CTranslate2: lines `source piece TAB target pieces`, the first for all sources.

        Args:
            tokenizer: the tokenizer of the ids.
            per_source: the number of target pieces that a source piece adds.
            always: the number of the most frequent target pieces, which are candidates for every source.
            languages: pieces that stand for a language, which are candidates for every source too.
        """
        entries = tokenizer.target_size
        source_pieces = tokenizer.source_pieces(range(tokenizer.source_size))
        target_pieces = tokenizer.target_pieces(range(entries))
        target_ids = {piece: number for number, piece in enumerate(target_pieces)}

        most_frequent = np.argsort(-self.frequency, kind="stable")[:always].tolist()
        for_all = list(dict.fromkeys([*map(target_ids.__getitem__, languages), *most_frequent]))
        # By source piece, and for each the strongest links first.
        order = np.lexsort((-self.weights, self.keys // entries))
        order = order[~np.isin(self.keys[order] % entries, np.array(for_all, np.int64))]
        by_source: dict[int, list[int]] = {}
        for key in self.keys[order].tolist():
            by_source.setdefault(key // entries, []).append(key % entries)
        lines = ["\t" + listed(for_all, target_pieces)]
        for source in range(len(SPECIAL), len(source_pieces)):
            piece = source_pieces[source]
            targets = by_source.get(source, [])[:per_source]
            identical = target_ids.get(piece)
            if identical is not None and identical not in targets:  # names and numbers are copied
                targets.append(identical)
            if targets and not SEPARATORS & set(piece):
                lines.append(f"{piece}\t{listed(targets, target_pieces)}")
        return "\n".join(lines) + "\n"


def seen_pieces(
    tokenizer: Tokenizer,
    texts: Iterable[str],
    on_texts: Callable[[int], None] | None = None,
    languages: Sequence[str] = (),
) -> str:
    """Return a shortlist that is the same for all sources: the pieces of these target texts.

    A joint vocabulary has thousands of pieces that never occur in the target language. `languages` are pieces that
    stand for a language, which are always listed.
    """
    pieces = tokenizer.target_vocabulary
    always = frozenset(languages)
    seen = {i for i, piece in enumerate(pieces) if piece in always}
    for batch in batched(texts, TEXTS):
        seen.update(*tokenizer.encode_target(batch))
        if on_texts:
            on_texts(len(batch))
    return f"\t{listed(sorted(seen), pieces)}\n"


def learn_links(
    model: SequenceModel,
    pairs: Iterable[Pieces],
    device: torch.device,
    on_batch: Callable[[int], None] | None = None,
    *,
    guided: AlignmentOptions | None = None,
) -> PieceLinks:
    """Link the pieces of training pairs by the cross-attention of the model.

    `guided`: the reading of the head that guided alignment has taught; without it, layers and heads are averaged.
    """
    layer, head = (guided.layer, guided.head) if guided else (None, None)
    entries = model.output.out_features
    keys, weights = np.empty(0, np.int64), np.empty(0)
    frequency = np.zeros(entries)
    for batch in batched(pairs, TOGETHER):
        new_keys, new_weights = [keys], [weights]
        for _, source, target in paired_batches(batch, model.pad, device, BATCH):
            attention = cross_attention(model, source, target, layer, head)  # [B, T, S]
            linked = (attention >= FAINT) & (target != model.pad)[:, :, None]
            row, t, s = linked.nonzero(as_tuple=True)
            new_keys.append((source[row, s] * entries + target[row, t]).cpu().numpy())
            new_weights.append(attention[linked].cpu().numpy())
        for _, ids in batch:
            np.add.at(frequency, ids, 1)
        # Summed after each part, so that memory holds each linked pair once, not each of its occurrences.
        keys, inverse = np.unique(np.concatenate(new_keys), return_inverse=True)
        weights = np.bincount(inverse, np.concatenate(new_weights), len(keys)).astype(np.float64)
        if on_batch:
            on_batch(len(batch))
    return PieceLinks(keys, weights, frequency)
