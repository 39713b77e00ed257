"""The front door: `Translator.load(run).translate(text)`. PyTorch is loaded when something needs it, not before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from html import escape
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, overload

from translucid.data.sentences import split_sentences
from translucid.data.tokenizer import EOS, Tokenizer
from translucid.decoding.hypothesis import Hypothesis
from translucid.decoding.options import DecodingOptions
from translucid.devices import choose_device, tune_cpu
from translucid.errors import UserError
from translucid.interop.engines import EngineName, choose_engine
from translucid.training.configuration import Configuration
from translucid.training.run_folder import RunFolder

if TYPE_CHECKING:
    import torch

    from translucid.decoding.engine import Engine, TorchEngine
    from translucid.decoding.trace import BeamTrace
    from translucid.inspection.inspected import Inspected
    from translucid.inspection.words import WordMap
    from translucid.models.protocol import Maps, SequenceModel

WINDOW = 4096
"""Lines read ahead, sorted by length and translated together; what bounds the memory of a long job."""


@dataclass(frozen=True)
class Piece:
    """A part of a line that the model translates in one go: the whole line, a sentence, or part of a long one."""

    ids: list[int]
    """Source tokens, end token included."""
    after: str
    """What stood between it and the next piece."""


@dataclass(frozen=True)
class Translation:
    """What came of one source text."""

    source: str
    text: str
    """The best translation."""
    score: float
    """Its log-probability after the length penalty; the sum, if the text was translated in pieces."""
    alternatives: list[str]
    """The n-best list, best first, when more than one was asked for; only for texts translated in one piece."""
    warnings: list[str] = field(default_factory=list)
    """What the reader should know, such as that the text was too long for one piece."""
    parts: list[tuple[Piece, Hypothesis]] = field(default_factory=list, repr=False, compare=False)
    """The pieces that the text was translated in, and what was found for each."""
    _translator: Translator | None = field(default=None, repr=False, compare=False)

    @property
    def attention(self) -> Maps:
        """Attention weights by name, [1, H, T, S] each.

        Raises:
            ValueError: the text was translated in several pieces; see `attention_by_piece`.
        """
        if len(self.attention_by_piece) > 1:
            raise ValueError(f"translated in {len(self.parts)} pieces: see attention_by_piece")
        return self.attention_by_piece[0] if self.parts else {}

    @cached_property
    def attention_by_piece(self) -> list[Maps]:
        """Attention weights of each piece of the text, [1, H, T, S] each."""
        return [{name: weights[None] for name, weights in one.maps.items()} for one in self.inspected]

    @cached_property
    def inspected(self) -> list[Inspected]:
        """All that is to be seen of each piece of the text, made on demand by one forced pass."""
        from translucid.inspection.watching import watch

        if not self.parts:
            return []
        assert self._translator is not None
        t = self._translator
        pairs = [(piece.ids, [*found.tokens, EOS]) for piece, found in self.parts]
        return watch(t.model, t.tokenizer, pairs, t.device)

    @cached_property
    def words(self) -> list[WordMap]:
        """Cross-attention averaged over heads and layers and merged from pieces of words to words, for each piece."""
        return [one.words() for one in self.inspected]

    @cached_property
    def alignment(self) -> list[tuple[int, int]]:
        """Word alignment from the attention: pairs (source word, target word), counted from 0."""
        from translucid.inspection.alignment import read_alignment
        from translucid.inspection.words import word_spans

        links: list[tuple[int, int]] = []
        source_words = target_words = 0
        for one in self.inspected:
            assert self._translator is not None
            found = read_alignment(one, self._translator.configuration.alignment)
            links += [(source_words + s, target_words + t) for s, t in found]
            source_words += len(word_spans(one.source)) - 1  # the end token is the last
            target_words += len(word_spans(one.target)) - 1
        return links

    def _repr_html_(self) -> str:
        """Show itself in a notebook: the texts, and where the model looked."""
        from translucid.inspection.html import notebook_table

        texts = f"<p>{escape(self.source)}<br><b>{escape(self.text)}</b></p>"
        return texts + "".join(notebook_table(one.words()) for one in self.inspected if one.layers)


class Translator:
    """A trained model, its tokenizer and its settings."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        configuration: Configuration,
        own: Callable[[], TorchEngine],
        engine: Engine | None = None,
    ) -> None:
        """`Translator.load` is the usual way in.

        Args:
            tokenizer: the model's.
            configuration: of the run.
            own: gives our own search, and with it the model, when it is wanted.
            engine: what searches for translations; our own if not given.
        """
        self.tokenizer, self.configuration = tokenizer, configuration
        longest = configuration.data.max_tokens
        self.longest = min(longest, configuration.model.longest or longest)
        """Source tokens, end token included, that are translated in one piece: what the model has seen in training."""
        self._own = own
        self.engine = engine or own()

    @cached_property
    def own(self) -> TorchEngine:
        """Our own search; it has the model."""
        return self._own()

    @property
    def model(self) -> SequenceModel:
        """In evaluation mode."""
        return self.own.model

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return self.own.device

    @classmethod
    def load(
        cls, run: str | Path, device: str = "auto", engine: EngineName = "auto", *, threads: int | None = None
    ) -> Translator:
        """Load a run folder.

        Args:
            run: what `translucid train` wrote.
            device: auto, cpu, cuda, cuda:1 or mps.
            engine: what searches for translations: `torch`, `ctranslate2`, or the faster one of those that can.
            threads: how many CTranslate2 works with; one for each core if not given. If given, what comes out is the
                same for any number.

        Raises:
            UserError: it is not one, or it is damaged, or the engine can't run its model there.
        """
        folder = RunFolder(Path(run))
        configuration, tokenizer = folder.configuration(), folder.tokenizer()

        @cache
        def own() -> TorchEngine:
            from translucid.decoding.engine import TorchEngine

            tune_cpu()
            chosen = choose_device(device)
            return TorchEngine.of(folder.load_model(configuration, tokenizer).to(chosen), tokenizer, chosen)

        searching = choose_engine(engine, folder, configuration, tokenizer, own, device=device, threads=threads)
        return cls(tokenizer, configuration, own, searching)

    @overload
    def translate(self, text: str, options: DecodingOptions | None = None) -> Translation: ...
    @overload
    def translate(self, text: list[str], options: DecodingOptions | None = None) -> list[Translation]: ...
    def translate(
        self, text: str | list[str], options: DecodingOptions | None = None
    ) -> Translation | list[Translation]:
        """Translate one text or a list of texts; an empty one gives an empty one."""
        texts = [text] if isinstance(text, str) else text
        translations = list(self.stream(texts, options))
        return translations[0] if isinstance(text, str) else translations

    def stream(
        self,
        texts: Iterable[str],
        options: DecodingOptions | None = None,
        *,
        sentences: bool = False,
        on_done: Callable[[int], None] | None = None,
    ) -> Iterator[Translation]:
        """Translate any number of texts, in order, with memory that does not grow with their number.

        Args:
            texts: lines; each gives one translation.
            options: how to search; the run's own settings if not given.
            sentences: split each text into sentences, translate them one by one and join them again.
            on_done: called with the number of pieces done after each batch.
        """
        options = options or self.configuration.decoding
        iterator = iter(texts)
        while window := list(islice(iterator, WINDOW)):
            encoded = self.tokenizer.encode_source(window)
            pieces = [self._pieces(text, ids, sentences) for text, ids in zip(window, encoded, strict=True)]
            found = self._decoded([piece.ids for of_text in pieces for piece in of_text], options, on_done)
            at = 0
            for text, of_text in zip(window, pieces, strict=True):
                yield self._joined(text, of_text, found[at : at + len(of_text)])
                at += len(of_text)

    def _decoded(
        self, sentences: list[list[int]], options: DecodingOptions, on_done: Callable[[int], None] | None
    ) -> list[list[Hypothesis]]:
        """Search for each different sentence once, unless each is to be drawn for itself."""
        if options.sample:
            return self.engine.decode(sentences, options, on_done)
        different = list(dict.fromkeys(map(tuple, sentences)))
        if on_done and len(different) < len(sentences):
            on_done(len(sentences) - len(different))
        found = self.engine.decode([list(ids) for ids in different], options, on_done)
        by_ids = dict(zip(different, found, strict=True))
        return [by_ids[tuple(ids)] for ids in sentences]

    def _pieces(self, text: str, ids: list[int], sentences: bool) -> list[Piece]:
        """Return what is translated in one go, from a text and its ids without end token."""
        if not text.strip():
            return []
        if not sentences and len(ids) < self.longest:
            return [Piece([*ids, EOS], "")]
        pieces = []
        for part, after in split_sentences(text, self.configuration.data.source_language):
            chunks = self._chunks(self.tokenizer.encode_source([part])[0])
            pieces += [Piece([*chunk, EOS], " ") for chunk in chunks[:-1]]
            pieces.append(Piece([*chunks[-1], EOS], after))
        return pieces

    def _chunks(self, ids: list[int]) -> list[list[int]]:
        """Cut ids that are too long for the model into equal parts, between two words where possible."""
        limit = self.longest - 1
        chunks = []
        first = 0
        while (left := len(ids) - first) > limit:
            parts = -(-left // limit)
            cut = -(-left // parts)
            pieces = self.tokenizer.source_pieces(ids[first : first + cut + 1])
            starts = [i for i in range(cut // 2, cut + 1) if i and pieces[i].startswith("▁")]
            cut = starts[-1] if starts else cut
            chunks.append(ids[first : first + cut])
            first += cut
        return [*chunks, ids[first:]]

    def _joined(self, text: str, pieces: Sequence[Piece], found: Sequence[list[Hypothesis]]) -> Translation:
        outputs = [[self._text(hypothesis) for hypothesis in nbest] for nbest in found]
        after = [piece.after for piece in pieces]
        joined = "".join(nbest[0] + gap for nbest, gap in zip(outputs, after, strict=True)).strip()
        warnings = []
        tokens = sum(len(piece.ids) for piece in pieces)
        if len(pieces) > 1 and tokens > self.longest:
            warnings.append(f"{tokens} tokens are more than the model takes ({self.longest}): translated in pieces")
        return Translation(
            text,
            joined,
            sum(nbest[0].score for nbest in found),
            outputs[0] if len(outputs) == 1 else [joined] if outputs else [""],
            warnings,
            [(piece, nbest[0]) for piece, nbest in zip(pieces, found, strict=True)],
            self,
        )

    def _text(self, hypothesis: Hypothesis) -> str:
        # A line is a line, whatever a model makes of it.
        return self.tokenizer.decode(hypothesis.tokens).replace("\n", " ")

    def can_look(self) -> bool:
        """Whether the model has attention between source and target, without which there is no alignment."""
        import torch

        from translucid.inspection.maps import forced_pass

        end = torch.tensor([[EOS]], device=self.device)
        return any(name.endswith(".cross") for name in forced_pass(self.model, end, end).maps)

    def pair_ids(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[list[int], list[int]]]:
        """Return source and target ids of pairs, both with the end token."""
        sources = self.tokenizer.encode_source([source for source, _ in pairs])
        targets = self.tokenizer.encode_target([target for _, target in pairs])
        return [([*source, EOS], [*target, EOS]) for source, target in zip(sources, targets, strict=True)]

    def inspect(self, pairs: Sequence[tuple[str, str]]) -> list[Inspected]:
        """Watch the model write given targets for given sources, word for word (forced decoding).

        Raises:
            UserError: a text is longer than the model takes in one piece.
        """
        from translucid.inspection.watching import watch

        ids = self.pair_ids(pairs)
        for number, (source, target) in enumerate(ids, 1):
            longest = max(len(source), len(target))
            if self.model.max_length and longest > self.model.max_length:
                raise UserError(
                    f"pair {number} has {longest} tokens, the model takes {self.model.max_length}",
                    fix="Split it into sentences.",
                )
        return watch(self.model, self.tokenizer, ids, self.device)

    def trace(self, text: str, beam: int) -> tuple[BeamTrace, int]:
        """Translate a text in one piece and return the tree of its beam search, and the node that the best ended in.

        Raises:
            UserError: there is nothing to translate, or it is longer than the model takes in one piece.
        """
        import torch

        from translucid.decoding.search import search
        from translucid.decoding.trace import BeamTrace

        pieces = self._pieces(text, self.tokenizer.encode_source([text])[0], sentences=False)
        if len(pieces) != 1:
            raise UserError("a beam search is drawn of one sentence", fix="Give a text that fits in one piece.")
        options = self.configuration.decoding.model_copy(update={"beam": beam, "nbest": 1, "sample": False})
        trace = BeamTrace()
        source = torch.tensor([pieces[0].ids], device=self.device)
        (found,) = search(self.model, source, options, self.own.word_starts, trace=trace)
        tokens = [*found[0].tokens, EOS]
        ended = [i for i, node in enumerate(trace.nodes) if node.fate == "ended"]
        best = next(i for i in ended if [trace.nodes[j].token for j in trace.path(i)] == tokens)
        return trace, best
