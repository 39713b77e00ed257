"""A loaded run, shared by all translators that are derived from it; alone, or in an ensemble with other runs.

A loaded run never changes. An ensemble averages the probabilities of runs with the same vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from bitext.languages import Languages
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.decoding_options import BY_WORDS
from translucid.engines.choosing import EngineName, choose_engine
from translucid.engines.combinations import refuse_together
from translucid.engines.run_files import (
    load_alignment_arrays,
    load_alignment_layer,
    load_confidence,
    load_tuned_lens,
    load_validation_scores,
)
from translucid.engines.target_pieces import pieces_file
from translucid.engines.tuned import SHORTLIST, listed_sources
from translucid.evaluation.confidence import Estimator
from translucid.evaluation.out_of_domain import OutOfDomainCheck
from translucid.evaluation.quality_checks import known_scripts
from translucid.ground.errors import UserError
from translucid.inspection.intervention import Intervention
from translucid.kernels.devices import choose_device, tune_pytorch
from translucid.kernels.machine import require_pytorch
from translucid.runs.adapters import Adapter, with_adapter
from translucid.runs.configuration import Configuration
from translucid.runs.run_folder import RunFolder
from translucid.runs.transformer_weights import Floats, TransformerWeights

if TYPE_CHECKING:
    from translucid.decoding.maps import AlignmentLayer
    from translucid.decoding.search import TorchEngine
    from translucid.engines.choosing import Engine
    from translucid.engines.numpy_transformer import NumPyTransformer
    from translucid.inspection.lens import TunedLens
    from translucid.models.protocol import SequenceModel


@dataclass(frozen=True)
class EnsembleRuns:
    """A run and others with the same vocabulary."""

    runs: Sequence[tuple[RunFolder, Configuration]]
    tokenizer: Tokenizer

    @classmethod
    def of(
        cls, run: RunFolder, configuration: Configuration, tokenizer: Tokenizer, others: Iterable[str | Path]
    ) -> EnsembleRuns:
        """Read the settings of the others.

        Raises:
            UserError: another run has another vocabulary or direction, or is no translator.
        """
        runs = [(run, configuration)]
        for folder in map(RunFolder, map(Path, others)):
            member_configuration = folder.configuration("text")
            # Probabilities are averaged token by token, so equal ids must mean equal pieces.
            if folder.tokenizer().fingerprint != tokenizer.fingerprint:
                what = f"has another vocabulary than {run.path}"
                fix = (
                    "Train it with `training.begin_from`, which keeps the vocabulary, or on the same pairs and settings"
                )
                raise UserError(what, file=folder.path, fix=f"{fix}.")
            if member_configuration.data.reverse != configuration.data.reverse:
                fix = "`Translator.ranking` ranks translations by it."
                raise UserError(f"translates the other way round than {run.path}", file=folder.path, fix=fix)
            runs.append((folder, member_configuration))
        return cls(runs, tokenizer)

    @property
    def longest(self) -> int:
        """The largest number of source tokens, end token included, that all models accept in one piece."""
        return min(configuration.longest for _, configuration in self.runs)

    def model(self) -> SequenceModel:
        """Load the model, or the ensemble of all models, in evaluation mode, on the CPU.

        Raises:
            UserError: a run is damaged.
        """
        from translucid.models.ensemble import Ensemble

        models = []
        for folder, configuration in self.runs:
            models.append(folder.load_sequence_model(configuration, self.tokenizer))
        return Ensemble(models) if len(models) > 1 else models[0]


@dataclass(frozen=True, eq=False)
class LoadedRun:
    """A run, or several whose probabilities are averaged; with an adapter or without, perhaps with interventions.

    The model, and the files that `translucid tune` has fitted to it, are read when they are first needed.
    """

    folder: RunFolder
    configuration: Configuration
    """The configuration of the run, for the languages that it was loaded with."""
    tokenizer: Tokenizer
    ensemble: EnsembleRuns
    """The run and the others with which its probabilities are averaged."""
    device: str
    engine_name: EngineName
    threads: int | None = None
    adapter: Adapter | None = None
    interventions: tuple[Intervention, ...] = ()
    """What is changed in the model, such as heads that are off."""
    base: LoadedRun | None = None
    """The same run without the adapter and without interventions, if this one differs."""
    # By languages, as translators between other languages share this object.
    _confidence: dict[Languages, tuple[Estimator | None, str]] = field(default_factory=dict, init=False)
    _out_of_domain_checks: dict[Languages, OutOfDomainCheck] = field(default_factory=dict, init=False)
    _alignment: dict[Languages, AlignmentLayer | None] = field(default_factory=dict, init=False)
    _tuned_lens: dict[Languages, TunedLens | None] = field(default_factory=dict, init=False)
    _zero_shot_engines: dict[str | None, Engine] = field(default_factory=dict, init=False)
    """The engines of zero-shot directions, without training pairs, by target language."""

    @classmethod
    def load(
        cls,
        folder: RunFolder,
        configuration: Configuration,
        device: str,
        engine: EngineName,
        others: Sequence[str | Path] = (),
        threads: int | None = None,
    ) -> LoadedRun:
        """Read the settings and the tokenizer of a run, and the settings of the others in its ensemble.

        Raises:
            UserError: another run does not fit the run, or the engine can't average.
        """
        # The fast engines can't average the probabilities of several models at each step.
        refuse_together({f'`engine="{engine}"`': True, "`others`": others})
        tokenizer = folder.tokenizer().between(*configuration.data.languages, configuration.data.tokenizer)
        ensemble = EnsembleRuns.of(folder, configuration, tokenizer, others)
        if others:
            engine = "torch"
        return cls(folder, configuration, tokenizer, ensemble, device, engine, threads)

    def with_adapter(self, adapter: str | Path | None) -> LoadedRun:
        """Return the run with another adapter, or with none; the model stays loaded.

        `adapter`: its file, the run that learned it, or its name in the run's folder `adapters`.

        Raises:
            UserError: there is no such adapter, it belongs to another model, or several runs are averaged.
        """
        refuse_together({"`adapter`": adapter, "`others`": self.averages})
        return self._changed(Adapter.find(adapter, self.folder) if adapter else None, self.interventions)

    def with_interventions(self, *interventions: Intervention) -> LoadedRun:
        """Return the run with these interventions and no others; the model stays loaded.

        Raises:
            UserError: the model lacks what they change, several runs are averaged, or a fast engine is required.
        """
        engine = f'`engine="{self.engine_name}"`'
        refuse_together({"`interventions`": interventions, "`others`": self.averages, engine: True})
        for intervention in interventions:
            intervention.check(self.configuration.model)
        return self._changed(self.adapter, interventions)

    def _changed(self, adapter: Adapter | None, interventions: tuple[Intervention, ...]) -> LoadedRun:
        base = self.base or self
        if not (adapter or interventions):
            return base
        return replace(base, adapter=adapter, interventions=interventions, base=base)

    @property
    def averages(self) -> bool:
        """Whether the probabilities of several runs are averaged."""
        return len(self.ensemble.runs) > 1

    @property
    def as_trained(self) -> bool:
        """Whether the model is that of the run folder: the files fitted to it hold for no other."""
        return not (self.averages or self.adapter or self.interventions)

    @cached_property
    def torch_engine(self) -> TorchEngine:
        """The PyTorch engine, which has the model.

        Raises:
            UserError: the model or the adapter is damaged, or PyTorch is not installed.
        """
        require_pytorch("inspecting a model, or a search that CTranslate2 does not have,")
        from translucid.decoding.search import TorchEngine

        if self.base:
            # Copies that share the weights of the base: results of other translators do not change.
            model, device = self.base.torch_engine.model, self.base.torch_engine.device
            if self.adapter:
                model = with_adapter(model, self.adapter)
            for intervention in self.interventions:
                model = intervention.applied(model)
            return TorchEngine.of(model, self.tokenizer, device)
        tune_pytorch(exact=self.configuration.training.precision == "float32")
        device = choose_device(self.device)
        return TorchEngine.of(self.ensemble.model().to(device), self.tokenizer, device)

    @cached_property
    def numpy_transformer(self) -> NumPyTransformer:
        """The model in NumPy, for word alignments without PyTorch.

        Raises:
            UserError: the model or the adapter is damaged, or the model is not a Transformer.
        """
        from translucid.engines.ctranslate2.conventions import is_supported, position_rows
        from translucid.engines.numpy_transformer import NumPyTransformer

        model = self.configuration.model
        if not is_supported(model):
            require_pytorch("a word alignment by such a model")
        return NumPyTransformer(
            TransformerWeights.of_run(
                self.folder, self.configuration, self.tokenizer, self.adapter, position_rows(model)
            )
        )

    @cached_property
    def engine(self) -> Engine:
        """The engine that searches for translations."""
        return self._engine(self.configuration.data.languages, use_shortlist=True)

    @cached_property
    def full_vocabulary_engine(self) -> Engine:
        """The engine for other languages: a shortlist holds for one pair of languages."""
        if not self.configuration.data.tokenizer.languages:
            return self.engine
        return self._engine(None, use_shortlist=False)

    def torch_engine_for(self, languages: Languages, tokenizer: Tokenizer) -> TorchEngine:
        """Return the PyTorch engine for two languages, given the tokenizer for them."""
        engine = self.torch_engine.opened(tokenizer)
        if pieces := pieces_file(self.folder, languages, self.configuration.data):
            engine = engine.restricted("target-language pieces", pieces, tokenizer)
        return engine

    def engine_for(self, languages: Languages, tokenizer: Tokenizer) -> Engine:
        """Return the engine for two languages, given the tokenizer for them."""
        if languages == self.configuration.data.languages:
            return self.engine
        if not pieces_file(self.folder, languages, self.configuration.data):
            return self.full_vocabulary_engine.opened(tokenizer)
        target = languages[1]
        if target not in self._zero_shot_engines:
            self._zero_shot_engines[target] = self._engine(languages, use_shortlist=False)
        return self._zero_shot_engines[target].opened(tokenizer)

    def _engine(self, languages: Languages | None, *, use_shortlist: bool) -> Engine:
        """Return an engine for two languages, or for all of a model."""
        pieces = languages and pieces_file(self.folder, languages, self.configuration.data)

        def torch_engine() -> TorchEngine:
            return self.torch_engine_for(languages, self.tokenizer) if languages else self.torch_engine

        if self.interventions:
            return torch_engine()
        return choose_engine(
            self.engine_name,
            self.folder,
            self.configuration,
            self.tokenizer,
            torch_engine,
            device=self.device,
            threads=self.threads,
            adapter=self.adapter,
            use_shortlist=use_shortlist,
            pieces=pieces,
        )

    @cached_property
    def known_scripts(self) -> set[str | None]:
        """The scripts of the source vocabulary, for all languages."""
        return known_scripts(self.tokenizer)

    def confidence(self, languages: Languages) -> tuple[Estimator | None, str]:
        """Return the confidence estimator for two languages; without one, None and the reason why a file is ignored.

        Raises:
            UserError: the file is damaged.
        """
        if not self.as_trained:
            return None, ""
        if languages not in self._confidence:
            self._confidence[languages] = load_confidence(self.folder, self.tokenizer, languages)
        return self._confidence[languages]

    def alignment_layer(self, languages: Languages) -> AlignmentLayer | None:
        """Return the alignment layer for two languages, if one was trained.

        Raises:
            UserError: the file is damaged, or belongs to another model.
        """
        if not self.as_trained:
            return None
        if languages not in self._alignment:
            self._alignment[languages] = load_alignment_layer(self.folder, languages, self.torch_engine.model)
        return self._alignment[languages]

    def alignment_arrays(self, languages: Languages) -> dict[str, Floats] | None:
        """Return the weights of the alignment layer for two languages in NumPy, if one was trained.

        Raises:
            UserError: the file is damaged, or belongs to another model.
        """
        return load_alignment_arrays(self.folder, languages) if self.as_trained else None

    def tuned_lens(self, languages: Languages) -> TunedLens | None:
        """Return the tuned lens for two languages, if one was trained.

        Raises:
            UserError: the file is damaged, or belongs to another model.
        """
        if not self.as_trained:
            return None
        if languages not in self._tuned_lens:
            self._tuned_lens[languages] = load_tuned_lens(self.folder, languages, self.torch_engine.model)
        return self._tuned_lens[languages]

    def out_of_domain_check(self, languages: Languages, tokenizer: Tokenizer) -> OutOfDomainCheck:
        """Return the check whether the model knows sentences of this kind, for two languages.

        Raises:
            UserError: the file of the run's validation scores, or of its shortlist, is damaged.
        """
        if languages not in self._out_of_domain_checks:
            scores = shortlist_sources = None
            if self.as_trained:
                scores = load_validation_scores(self.folder, tokenizer, languages)
            # Engines of other packages need not have shortlists.
            considered = getattr(self.engine, "considered", "")
            if languages == self.configuration.data.languages and considered in BY_WORDS:
                shortlist_sources = listed_sources(self.folder.path / SHORTLIST, tokenizer)
            self._out_of_domain_checks[languages] = OutOfDomainCheck(tokenizer, scores, shortlist_sources)
        return self._out_of_domain_checks[languages]
