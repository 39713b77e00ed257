r"""Claim 18: a student keeps its teacher's quality at four times its speed.

    python benchmarks/claims/students.py --case Phrasebook runs/demo runs/demo-student test.tsv \
        --case Multi30k runs/teacher-1 runs/multi30k-student 'test_2016_flickr.lc.norm.tok.{en,de}.gz' \
        --tokenized Multi30k

Teacher and student of each case run with int8 weights in CTranslate2 on one thread, with a beam of 5 and greedily. The
systems take turns; times are those of the processor, so a busy machine disturbs them little. A ratio is the median over
the rounds of the teacher's time with a beam of 5, divided by the time of the system in the same round.

`--tokenized` names a case whose text is tokenized and lower-cased already.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from common import DOCS, table, write
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

from bitext.pair import Pair
from translucid.api.translator import Translator
from translucid.data.readers.corpus import read_pairs, sources_of, targets_of
from translucid.distillation.report import exported_size
from translucid.engines.tuned import Tuned, save_tuned
from translucid.evaluation.comparing import FEWEST_TESTED
from translucid.kernels.devices import configure_process
from translucid.kernels.machine import processor

ALONE = 60
"""The number of sentences that are translated one at a time in a round."""
BEAMS = 5, 1


class Case(NamedTuple):
    """A teacher, its student, and test pairs."""

    name: str
    teacher: Path
    student: Path
    test: Sequence[Pair]
    metric: BLEU


class System:
    """A run with int8 weights, and a beam."""

    def __init__(self, role: str, translator: Translator, beam: int, parameters: int, size: int) -> None:
        self.role, self.translator, self.beam, self.parameters, self.size = role, translator, beam, parameters, size
        self.together: list[float] = []
        """Processor seconds for all sentences, by round."""
        self.alone: list[float] = []
        """The median of the processor seconds for one sentence, by round."""

    def translate(self, texts: Sequence[str]) -> list[str]:
        """Translate sentences, none of which is split."""
        options = self.translator.configuration.decoding.model_copy(update={"beam": self.beam, "nbest": 1})
        return [translation.text for translation in self.translator.translate(list(texts), options, split=False)]

    def time_round(self, texts: Sequence[str]) -> None:
        """Time one round."""
        self.translate(texts[:1])
        self.together.append(processor_seconds(self, texts))
        self.alone.append(statistics.median(processor_seconds(self, [text]) for text in texts[:ALONE]))


def processor_seconds(system: System, texts: Sequence[str]) -> float:
    """Return the processor seconds in which a system translates some sentences."""
    before = time.process_time()
    system.translate(texts)
    return time.process_time() - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--case", nargs=4, metavar=("NAME", "TEACHER", "STUDENT", "TEST"), action="append", required=True
    )
    parser.add_argument("--tokenized", action="append", default=[], metavar="NAME", help="a case with tokenized text")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path, default=DOCS, help="the folder of the page")
    arguments = parser.parse_args()
    configure_process()
    sections = []
    for name, teacher, student, test in arguments.case:
        metric = BLEU(tokenize="none", lowercase=True, force=True) if name in arguments.tokenized else BLEU()
        case = Case(name, Path(teacher), Path(student), list(read_pairs(test)), metric)
        sections.append(measured(case, arguments.rounds))
    write("18-students.md", page(sections), arguments.out)


def measured(case: Case, rounds: int) -> str:
    """Return the table of a case."""
    sources, references = sources_of(case.test), [targets_of(case.test)]
    with tempfile.TemporaryDirectory() as folder:
        systems = []
        for role, run in (("teacher", case.teacher), ("student", case.student)):
            systems += opened(role, run, Path(folder) / role)
        outputs = [system.translate(sources) for system in systems]
        for _ in range(rounds):
            for system in systems:
                system.time_round(sources)
    named_outputs = [(str(number), output) for number, output in enumerate(outputs)]
    test = PairedTest(named_outputs, {"BLEU": case.metric}, references, test_type="bs", n_samples=1000)
    _, scores = test()
    rows = []
    for system, output, result in zip(systems, outputs, scores["BLEU"], strict=True):
        differing = sum(text != first_text for text, first_text in zip(output, outputs[0], strict=True))
        p_value = f"{result.p_value:.2f}" if differing >= FEWEST_TESTED else ""
        rows.append(
            [
                f"{system.role}, {'greedy' if system.beam == 1 else f'beam {system.beam}'}",
                f"{system.parameters / 1e6:.1f} M",
                f"{system.size / 1e6:.1f}",
                f"{result.score:.1f} ± {result.ci:.1f}",
                p_value,
                f"{len(sources) / statistics.median(system.together):,.0f}",
                f"{ratio(systems[0].together, system.together):.1f}",
                f"{1000 * statistics.median(system.alone):.2f}",
                f"{ratio(systems[0].alone, system.alone):.1f}",
            ]
        )
    head = ["", "parameters", "MB", "BLEU", "p", "sentences/s", "times as fast", "ms for one", "times as fast"]
    return f"## {case.name}: {len(sources):,} test pairs\n\n{table(head, rows)}"


def opened(role: str, run: Path, copy: Path) -> list[System]:
    """Return the systems of a run: with int8 weights, with a beam of 5 and greedily."""
    shutil.copytree(run, copy, ignore=shutil.ignore_patterns("state", "distillation", "events*"))
    tuned = Tuned(engine="ctranslate2", quantization="int8")
    save_tuned(copy, tuned, None)
    translator = Translator.load(copy, "cpu", "ctranslate2", threads=1)
    parameters = sum(parameter.numel() for parameter in translator.torch_engine.model.parameters())
    size = exported_size(translator.torch_engine.model, translator.tokenizer, tuned, None)
    return [System(role, translator, beam, parameters, size) for beam in BEAMS]


def ratio(before: Sequence[float], after: Sequence[float]) -> float:
    """Return the median over the rounds of the ratio of two times."""
    return statistics.median(time / reference_time for time, reference_time in zip(before, after, strict=True))


def page(sections: Sequence[str]) -> str:
    """Return the page of claim 18."""
    return f"""# Claim 18: a student keeps its teacher's quality at four times its speed

Teachers and their students ([distillation](../distillation.md)) run with int8 weights in CTranslate2 on one thread of
an {processor()}, in turn; times are CPU times. *MB* is the size of the exported folder with its tokenizer. ± is the
95 % bootstrap interval of BLEU, and *p* compares BLEU with that of the teacher with a beam of 5 (paired bootstrap).

{chr(10).join(sections)}
To reproduce: `python benchmarks/claims/students.py`, whose first lines give the arguments.
"""


if __name__ == "__main__":
    main()
