"""A run that is opened to translate with: its model, when it is wanted, and an engine for each adapter it wears."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from translucid.api.ensemble_runs import EnsembleRuns
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.decoding_options import BY_WORDS
from translucid.engines.alignment_file import load_alignment_layer
from translucid.engines.choosing import EngineName, choose_engine
from translucid.engines.combinations import refuse_together
from translucid.engines.confidence_file import Languages, load_confidence
from translucid.engines.tuned import SHORTLIST, listed_sources
from translucid.engines.validation_file import load_validation_scores
from translucid.evaluation.confidence.estimator import Estimator
from translucid.evaluation.familiarity import Familiarity
from translucid.kernels.devices import choose_device
from translucid.kernels.process import tune_ours
from translucid.runs.adapters import AdapterSlot
from translucid.runs.configuration import Configuration
from translucid.runs.run_folder import RunFolder

if TYPE_CHECKING:
    from translucid.decoding.alignment_layer import AlignmentLayer
    from translucid.engines.engine import Engine, TorchEngine


class LoadedRun:
    """The run, or several whose probabilities are averaged."""

    def __init__(
        self,
        folder: RunFolder,
        configuration: Configuration,
        tokenizer: Tokenizer,
        device: str,
        engine: EngineName,
        others: Sequence[str | Path],
        threads: int | None,
    ) -> None:
        """See `Translator.load`.

        Raises:
            UserError: one of the others does not go with the run, or the engine can't average.
        """
        refuse_together({"--engine ctranslate2": engine == "ctranslate2", "--ensemble": others})
        self.folder, self.configuration, self.tokenizer = folder, configuration, tokenizer
        self.device, self.threads = device, threads
        self.name: EngineName = "torch" if others else engine
        self.together = EnsembleRuns.of(folder, configuration, tokenizer, others)
        self.averages = bool(others)
        self.worn = AdapterSlot(folder)
        self._engines: dict[tuple[str | None, bool], Engine] = {}
        self._confidence: dict[Languages, tuple[Estimator | None, str]] = {}
        self._familiarity: dict[Languages, Familiarity] = {}
        self._alignment: dict[Languages, AlignmentLayer | None] = {}

    def engine(self, adapter: str | Path | None) -> Engine:
        """Return what searches for translations when this adapter is worn; see `Translator.use`.

        Raises:
            UserError: there is no such adapter, it belongs to another model, or several runs are averaged.
        """
        refuse_together({"--adapter": adapter, "--ensemble": self.averages})
        self.worn.activate(adapter)
        return self._chosen(listed=True)

    def wide(self) -> Engine:
        """Return what searches, with what is worn now, where the target language is another one."""
        return self._chosen(listed=not self.configuration.data.tokenizer.languages)

    def confidence(self, languages: Languages) -> tuple[Estimator | None, str]:
        """Return what tells how sure translations between two languages are; or why what was fitted does not hold.

        Raises:
            UserError: its file is damaged.
        """
        if self.averages or self.worn.fingerprint:
            return None, ""  # it was fitted to the run as it is
        if languages not in self._confidence:
            self._confidence[languages] = load_confidence(self.folder, self.tokenizer, languages)
        return self._confidence[languages]

    def alignment_layer(self, languages: Languages) -> AlignmentLayer | None:
        """Return what tells which words belong together, of the run as it is, if that was taught.

        Raises:
            UserError: its file is damaged, or belongs to another model.
        """
        if self.averages or self.worn.fingerprint:
            return None
        if languages not in self._alignment:
            self._alignment[languages] = load_alignment_layer(self.folder, languages, self._loaded.model)
        return self._alignment[languages]

    def familiarity(self, languages: Languages, tokenizer: Tokenizer) -> Familiarity:
        """Return what tells whether the model knows the kind of a sentence, between two languages.

        Raises:
            UserError: the file of the run's validation scores, or of its shortlist, is damaged.
        """
        if languages not in self._familiarity:
            as_it_is = not (self.averages or self.worn.fingerprint)
            scores = load_validation_scores(self.folder, tokenizer, languages) if as_it_is else None
            listed = None
            engine = self._chosen(listed=True)
            if languages == self.configuration.data.languages and getattr(engine, "considered", "") in BY_WORDS:
                listed = listed_sources(self.folder.path / SHORTLIST, tokenizer)
            self._familiarity[languages] = Familiarity(tokenizer, scores, listed)
        return self._familiarity[languages]

    def _chosen(self, *, listed: bool) -> Engine:
        mark = self.worn.fingerprint
        if (mark, listed) not in self._engines:
            given = self.name, self.folder, self.configuration, self.tokenizer, self.own
            self._engines[mark, listed] = choose_engine(
                *given, device=self.device, threads=self.threads, adapter=mark, listed=listed
            )
        return self._engines[mark, listed]

    def own(self) -> TorchEngine:
        """Return our own search, with the model that wears what is worn."""
        return self._loaded

    @cached_property
    def _loaded(self) -> TorchEngine:
        from translucid.engines.engine import TorchEngine

        tune_ours(exact=self.configuration.training.precision == "float32")
        device = choose_device(self.device)
        model = self.together.model().to(device)
        self.worn.attach(model)
        return TorchEngine.of(model, self.tokenizer, device)
