"""The systems that a report compares: the teachers as they run, and the student with each engine and candidates."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel, ValidationError

from bitext.reading import read_at_most
from translucid.api.translator import Translator
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.decoding_options import CandidateVocabulary
from translucid.distillation.measuring import Role, System
from translucid.engines.trials import engine_for
from translucid.engines.tuned import Tuned
from translucid.engines.tuning import PAIRS, Tuning
from translucid.ground.atomic import write_atomically
from translucid.models.protocol import SequenceModel
from translucid.runs.run_folder import RunFolder

BEAMS = 5, 1
"""The beams that each system is measured with."""
LARGEST = 1 << 27
"""The largest size of the file with shortlists, in bytes."""


class Shortlists(BaseModel):
    """The lists of candidates of a model, as `translucid tune` makes them."""

    key: str
    """A fingerprint of the model and of the corpora."""
    lists: dict[CandidateVocabulary, str]

    @classmethod
    def of(cls, tuning: Tuning, file: Path, key: str) -> Shortlists:
        """Read the lists from a file, or learn them from the training pairs of the run and save them there."""
        with suppress(OSError, ValidationError):
            saved = cls.read(file)
            if saved.key == key:
                return saved
        pairs = 0
        if tuning.configuration.model.has_cross_attention and tuning.data.train:
            pairs = PAIRS
        shortlists = cls(key=key, lists=tuning.lists(pairs))
        write_atomically(file, shortlists.model_dump_json().encode())
        return shortlists

    @classmethod
    def read(cls, file: Path) -> Shortlists:
        """Read the lists from a file."""
        return cls.model_validate_json(read_at_most(file, LARGEST))

    def write(self, folder: Path) -> dict[CandidateVocabulary, Path]:
        """Write each list into a file of a folder, as engines read it."""
        files: dict[CandidateVocabulary, Path] = {}
        for name, content in self.lists.items():
            files[name] = folder / f"{name}.tsv"
            files[name].write_text(content, encoding="utf-8")
        return files


def teacher_systems(teachers: Sequence[Path], source: str | None, target: str | None) -> list[System]:
    """Return a teacher as `translate` runs it, or an ensemble of several, with each beam.

    Raises:
        UserError: a run is damaged, or they can't be averaged.
    """
    first, *others = teachers
    translator = Translator.load(first, "cpu", source=source, target=target, others=others)
    engine, weights, candidates = str(translator.engine).split(", ")
    tuned = Tuned.model_validate({"engine": engine, "quantization": weights, "considered": candidates})
    return _systems("teacher", translator, tuned, teachers, tuned.shortlist(first))


def student_systems(tuning: Tuning, lists: Mapping[CandidateVocabulary, Path]) -> list[System]:
    """Return a student with each kind of weights and candidates, and each beam."""
    run = tuning.folder.path
    translator = Translator.open(tuning.folder, tuning.configuration, "cpu", "torch")
    systems = []
    for tuned in _systems_to_report(tuning.configurations(lists)):
        shortlist = lists.get(tuned.considered)
        engine = engine_for(translator.torch_engine, translator.tokenizer, tuned, shortlist)
        systems += _systems("student", replace(translator, engine=engine), tuned, [run], shortlist)
    return systems


def _systems_to_report(configurations: Sequence[Tuned]) -> list[Tuned]:
    """Leave out our search if CTranslate2 runs the model, and lists of candidates with float32 weights."""
    if configurations[0].engine == "torch":
        return list(configurations)
    reported = []
    for tuned in configurations:
        has_shortlist = tuned.considered != "all pieces"
        if tuned.engine == "ctranslate2" and not (has_shortlist and tuned.quantization == "float32"):
            reported.append(tuned)
    return reported


def _systems(
    role: Role, translator: Translator, tuned: Tuned, runs: Sequence[Path], shortlist: Path | None
) -> list[System]:
    """Return the same system with each beam."""
    if tuned.engine == "ctranslate2":
        size = exported_size(translator.torch_engine.model, translator.tokenizer, tuned, shortlist)
    else:
        size = run_size(runs, shortlist)
    return [System(role, tuned, translator, beam, size) for beam in BEAMS]


def exported_size(model: SequenceModel, tokenizer: Tokenizer, tuned: Tuned, shortlist: Path | None) -> int:
    """Return the bytes of the folder to which a model is exported for CTranslate2, with its tokenizer and shortlist."""
    from translucid.engines.ctranslate2.convert import save_ctranslate2

    with tempfile.TemporaryDirectory(prefix="translucid-") as name:
        folder = Path(name)
        save_ctranslate2(model, tokenizer, folder, tuned.quantization, shortlist)
        tokenizer.save(folder)
        return sum(file.stat().st_size for file in folder.iterdir())


def run_size(runs: Sequence[Path], shortlist: Path | None) -> int:
    """Return the bytes of what our search needs of runs: weights, configurations, the tokenizer that they share."""
    files = [shortlist] if shortlist else []
    for run in runs:
        folder = RunFolder(run)
        files += [folder.model_file, folder.config_file]
    tokenizers = [runs[0] / name for name in ("tokenizer.model", "source.model", "target.model")]
    return sum(file.stat().st_size for file in [*files, *tokenizers] if file.exists())
