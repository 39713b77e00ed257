"""Claim 22 and three more experiments with LibreOffice's help, in real documents.

    python -m benchmarks.corpora.libreoffice_help help en-es en-de en-fr de-es
    python benchmarks/claims/help_pages.py context help [--minutes 30] [--each 8] [--seeds 1 2]
    python benchmarks/claims/help_pages.py directions help [--minutes 120] [--paragraphs 1000]
    python benchmarks/claims/help_pages.py adaptation help --tatoeba tatoeba-eng-spa --base RUN [--minutes 20]
    python benchmarks/claims/help_pages.py tags help --base RUN [--pages 60]

context     Does document context help? A model of single sentences is trained; from it, models of single sentences,
            of sentences with two before them, and of whole paragraphs are fine-tuned, each for as many minutes
            (--each), for each seed. BLEU of the paragraphs of the test documents, with paired bootstrap resampling of
            documents.
directions  One model of English with German, Spanish and French in both directions; German-Spanish, which it has not
            learned, in one step and through English.
adaptation  A run of the recipe tatoeba-eng-spa is fine-tuned on the help, with marked terms; a list of terms that is
            found in the training documents is used for the test documents.
tags        The HTML of the test documents is translated, and the tags are counted.

Runs are cached in runs/claims/help; an interrupted command resumes. --quick trains for seconds on little data; its
figures mean nothing and are written beside the runs.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from html.parser import HTMLParser
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from common import DOCS, table, write
from directions import evaluated, percent
from numpy.typing import NDArray
from sacrebleu.metrics import BLEU

from bitext.pair import Pair
from translucid.api.evaluation.scoring import translated
from translucid.api.pivot_translator import PivotTranslator
from translucid.api.translator import Translator
from translucid.cli.main import run as run_command
from translucid.data.readers.corpus import read_pairs, sources_of, targets_of
from translucid.data.sentences import split_sentences
from translucid.decoding.decoding_options import DecodingOptions
from translucid.evaluation.quality_checks import off_target_rate
from translucid.ground.atomic import write_atomically
from translucid.ground.console import Console
from translucid.terminology.glossary import read_terms
from translucid.terminology.matching import TermList
from translucid.terminology.mining import Lexicon, content

SETTINGS = (
    *("model.norm=post", "training.optimizer=muon", "training.learning_rate=0.004", "training.max_steps=null"),
    *("training.schedule=slanted", "training.validate_sentences=500"),
)
"""As in the recipes; the schedule is relative to the time."""
BOTH, PARAGRAPHS = "two sentences before, or none", "whole paragraphs"
MODELS = {"single sentences": 0, "two sentences before": 2, BOTH: 2, PARAGRAPHS: 0}
"""The units that models are trained on, and their context; in `BOTH`, each sentence also occurs by itself."""
BEAM = DecodingOptions(beam=5)
SAMPLES = 1000
LANGUAGES = ("de", "es", "fr")
"""The languages beside English."""
ZERO_SHOT = ("de", "es"), ("es", "de")
COUNT, SHARE = 5, 0.8
"""The number of pairs in which a term must occur, and the share of them with the same translation."""
WITH_TERMS, LONGEST = 300, 40
"""The number of test paragraphs in which terms are counted, and the number of their words."""
TRANSLATED = ("alt", "content", "lang", "placeholder", "title")
"""The attributes of HTML that are translated, or name the language."""
COMMAND = "python benchmarks/claims/help_pages.py"


class Work(NamedTuple):
    """The corpus, the folder of the runs, and their size."""

    help: Path
    runs: Path
    minutes: float
    each: float
    """The minutes of each fine-tuning on top of a common base."""
    quick: bool
    arguments: argparse.Namespace

    def train(
        self, name: str, *arguments: str | Path, settings: Sequence[str] = (), minutes: float | None = None
    ) -> Path:
        """Train a run, resume an interrupted training, or leave a finished one."""
        run, finished = self.runs / name, self.runs / f"{name}.json"
        if finished.exists():
            return run
        Console(stderr=True).rule(name)
        command = ["train", *map(str, arguments), "--out", str(run), "--no-tune"]
        minutes = minutes or self.minutes
        quick = () if "--init-from" in arguments else self._quick_settings()
        for setting in (*settings, f"training.max_minutes={minutes}", *quick):
            command += ["--set", setting]
        if run_command(["train", "--resume", "--out", str(run)] if run.exists() else command):
            raise SystemExit(f"the training of {name} failed")
        write_atomically(finished, json.dumps({"minutes": minutes}).encode())
        return run

    def _quick_settings(self) -> list[str]:
        if not self.quick:
            return []
        shape = ["model.width=32", "model.feed_forward=32", "model.encoder_layers=1", "model.decoder_layers=1"]
        return [*shape, "training.validate_every=20", "training.validate_sentences=20"]

    def file(self, pair: str, name: str) -> Path:
        """Return a file of the corpus; with --quick, its beginning."""
        file = self.help / pair / name
        if not self.quick:
            return file
        small = self.runs / "data" / pair / name
        if not small.exists():
            small.parent.mkdir(parents=True, exist_ok=True)
            lines = file.read_text(encoding="utf-8").split("\n")[: 41 if name == "test.tsv" else 1500]
            write_atomically(small, ("\n".join(lines) + "\n").encode())
        return small


def context(work: Work) -> None:
    """Claim 22."""
    files = {name: work.file("en-es", name) for name in ("train.tsv", "dev.tsv", "test.tsv")}
    in_sentences = {}
    for name in ("train.tsv", "dev.tsv"):
        in_sentences[name] = work.runs / f"sentences-{name}"
        write_sentences(files[name], in_sentences[name])
    apart = work.runs / "sentences-apart.tsv"
    write_sentences(files["train.tsv"], apart, apart=True)
    test = list(read_pairs(files["test.tsv"], documents=True))
    statistics: dict[str, list[NDArray[np.int64]]] = {name: [] for name in MODELS}
    base = work.train(
        "base",
        *("--model", "small", "--train", in_sentences["train.tsv"], "--valid", in_sentences["dev.tsv"]),
        settings=["data.source_language=en", "data.target_language=es", *SETTINGS, "data.max_tokens=256"],
    )
    for name, sentences_before in MODELS.items():
        units = files if name == PARAGRAPHS else in_sentences
        train = [units["train.tsv"], *([apart] if name == BOTH else [])]
        for seed in work.arguments.seeds:
            run = work.train(
                f"{name.replace(',', '').replace(' ', '-')}-{seed}",
                *("--init-from", base, "--train", *train, "--valid", units["dev.tsv"]),
                settings=[
                    *(f"data.context={sentences_before}", f"training.seed={seed}"),
                    *("training.max_steps=null", "training.max_epochs=null", "training.patience=null"),
                ],
                minutes=work.each,
            )
            statistics[name].append(of_documents(run, test, split=name != PARAGRAPHS))
    write("22-documents.md", context_page(work, test, statistics), pages_of(work))


def write_sentences(paragraphs: Path, out: Path, *, apart: bool = False) -> None:
    """Write the sentences of paragraphs in order; a paragraph with other numbers of them on its sides stays whole.

    `apart`: each sentence is a document by itself.
    """
    lines = ["source\ttarget\tdocument\n"]
    for pair in read_pairs(paragraphs, documents=True):
        sides = [
            [sentence for sentence, _ in split_sentences(text, language)]
            for text, language in zip(pair, ("en", "es"), strict=True)
        ]
        if len(sides[0]) != len(sides[1]):
            sides = [[text] for text in pair]
        for source, target in zip(*sides, strict=True):
            document = f"sentence {len(lines)}" if apart else pair.document
            lines.append(f"{source}\t{target}\t{document}\n")
    write_atomically(out, "".join(lines).encode())


def of_documents(run: Path, test: Sequence[Pair], *, split: bool) -> NDArray[np.int64]:
    """Return the n-gram counts of BLEU, summed over each test document, [documents, counts]."""
    file = run.with_name(f"{run.name}.test.json")
    if file.exists():
        texts = json.loads(file.read_bytes())
    else:
        texts = translated(Translator.load(run, "cpu"), test, BEAM, split=split, console=Console(stderr=True))
        write_atomically(file, json.dumps(texts, ensure_ascii=False).encode())
    rows = np.array(BLEU()._extract_corpus_statistics(texts, [targets_of(test)]))
    numbers = np.unique([pair.document for pair in test], return_inverse=True)[1]
    counts = np.zeros((numbers.max() + 1, rows.shape[1]), np.int64)
    np.add.at(counts, numbers, rows)
    return counts


def bleu_of(counts: NDArray[np.int64]) -> float:
    """Return the BLEU of documents [n, counts]."""
    return float(BLEU()._compute_score_from_stats(counts.sum(0).tolist()).score)


def context_page(work: Work, test: Sequence[Pair], statistics: dict[str, list[NDArray[np.int64]]]) -> str:
    """Return the page of claim 22."""
    first, *_ = statistics.values()
    documents = len(first[0])
    samples = np.random.default_rng(1).integers(0, documents, (SAMPLES, documents))
    rows = []
    for name, of_seeds in statistics.items():
        scores = [bleu_of(counts) for counts in of_seeds]
        row = [name, ", ".join(f"{score:.1f}" for score in scores), f"{np.mean(scores):.1f}"]
        if name == "single sentences":
            rows.append([*row, "", "", ""])
            continue
        # The mean over the seeds, for the same documents on both sides.
        differences = []
        for sample in samples:
            pairs = zip(of_seeds, first, strict=True)
            differences.append(np.mean([bleu_of(ours[sample]) - bleu_of(theirs[sample]) for ours, theirs in pairs]))
        low, high = np.quantile(differences, [0.025, 0.975])
        difference = np.mean(scores) - np.mean([bleu_of(counts) for counts in first])
        # As sacreBLEU's p-value.
        as_large = np.abs(differences - np.mean(differences)) >= abs(difference)
        chance = (as_large.sum() + 1) / (SAMPLES + 1)
        rows.append([*row, f"{difference:+.1f}", f"{low:+.1f} to {high:+.1f}", f"{chance:.3f}"])
    head = ["trained on", "BLEU of each seed", "mean", "difference", "95 % interval", "p"]
    metric = BLEU()
    metric.corpus_score(targets_of(test), [targets_of(test)])
    return f"""# Claim 22: document context in real documents

English to Spanish, LibreOffice's help, split by document: {len(test):,} paragraphs of {documents} test documents.
A model of the preset *small* has learned single sentences for {work.minutes:g} minutes; each model of the table is a
fine-tuning of it for {work.each:g} minutes, with the seeds {", ".join(map(str, work.arguments.seeds))}. Models of
sentences translate the sentences of a paragraph one by one.
BLEU ({metric.get_signature()}) is that of the paragraphs.
The interval and p are from paired bootstrap resampling of whole documents ({SAMPLES:,} samples), of the mean over the
seeds.

{table(head, rows)}
To reproduce: `{COMMAND} context help --minutes {work.minutes:g} --each {work.each:g}`
"""


def directions(work: Work) -> None:
    """One model of several languages."""
    train, valid = [], []
    for language in LANGUAGES:
        pair = f"en-{language}"
        name = "train.clean.tsv" if (work.help / pair / "train.clean.tsv").exists() else "train.tsv"
        train.append(f"{work.file(pair, name)}:{pair}")
        valid.append(f"{work.file(pair, 'dev.tsv')}:{pair}")
    run = work.train(
        "directions",
        *("tatoeba-many", "--train", *train, "--valid", *valid),
        settings=["data.max_tokens=256", *(["data.tokenizer.vocabulary=2000"] if work.quick else [])],
    )
    tests = [f"{some_of(work, f'en-{language}')}:en-{language}" for language in ("de", "es")]
    rows = []
    for name, scores in evaluated(run, tests)["directions"].items():
        rates = percent(scores["off_target"]), percent(scores["references_off_target"])
        rows.append([name, f"{scores['sentences']:,}", f"{scores['BLEU']['value']:.1f}", *rates])
    head = ["direction", "paragraphs", "BLEU", "off-target %", "references"]
    zero_head = ["direction", "paragraphs", "zero-shot, BLEU", "through English", "off-target %", "through English"]
    zero_rows = [zero_shot(work, run, *pair) for pair in ZERO_SHOT]
    most = work.arguments.paragraphs
    tested = f"at most {most:,} paragraphs of the test documents, at equal distances" if most else "the test documents"
    text = f"""# Six directions of LibreOffice's help

One model of English with German, Spanish and French in both directions, by the recipe *tatoeba-many*,
{work.minutes:g} minutes of training; BLEU on {tested}; beam 5, one seed.

{table(head, rows)}
German and Spanish without training pairs, in one step or through English:

{table(zero_head, zero_rows)}
To reproduce: `{COMMAND} directions help --minutes {work.minutes:g}{f" --paragraphs {most}" if most else ""}`
"""
    write("help-directions.md", text, pages_of(work))


def some_of(work: Work, pair: str) -> Path:
    """Return a file with at most `--paragraphs` test paragraphs at equal distances; without the option, all of them."""
    file, most = work.file(pair, "test.tsv"), work.arguments.paragraphs
    if not most:
        return file
    head, *rows = file.read_text(encoding="utf-8").splitlines(keepends=True)
    some = work.runs / f"{pair}-{most}.tsv"
    write_atomically(some, "".join([head, *rows[:: -(-len(rows) // most)]]).encode())
    return some


def zero_shot(work: Work, run: Path, source: str, target: str) -> list[str]:
    """Return the row of a direction without training pairs."""
    pairs = list(read_pairs(some_of(work, "de-es")))
    if source != "de":
        pairs = [Pair(pair.target, pair.source) for pair in pairs]
    direct = Translator.load(run, "cpu", source=source, target=target)
    scores, rates = [], []
    for translator in (direct, PivotTranslator.through(direct, "en")):
        texts = [translation.text for translation in translator.translate(sources_of(pairs), BEAM, split=False)]
        scores.append(f"{BLEU().corpus_score(texts, [targets_of(pairs)]).score:.1f}")
        rates.append(percent(off_target_rate(texts, target, ["en", *LANGUAGES])))
    return [f"{source}-{target}", f"{len(pairs):,}", *scores, *rates]


def adaptation(work: Work) -> None:
    """Fine-tuning on the help, with its terms."""
    base, tatoeba = work.arguments.base, work.arguments.tatoeba
    train = work.file("en-es", "train.clean.tsv")
    terms = work.runs / "terms.tsv"
    found = found_terms(list(read_pairs(train)))
    write_atomically(terms, "".join(f"{source}\t{target}\n" for source, target in found.items()).encode())
    run = work.runs / "adapted"
    if not (work.runs / "adapted.json").exists():
        files = ["--train", str(train), "--valid", str(work.file("en-es", "dev.tsv"))]
        files += ["--valid-general", str(tatoeba / "dev.tsv"), "--mix", f"{tatoeba / 'train.tsv'}=0.5"]
        limits = ["data.terms=0.3", f"training.max_minutes={work.minutes}", "training.max_steps=null"]
        limits += ["training.max_epochs=null", "training.patience=null"]
        if work.quick:
            limits += ["training.validate_every=20", "training.validate_sentences=20"]
        command = ["train", "--init-from", str(base), *files, "--out", str(run), "--no-tune"]
        for setting in limits:
            command += ["--set", setting]
        if run_command(["train", "--resume", "--out", str(run)] if run.exists() else command):
            raise SystemExit("the fine-tuning failed")
        write_atomically(work.runs / "adapted.json", b"{}")
    tests = [work.file("en-es", "test.tsv"), tatoeba / "test.tsv"]
    with_terms = work.runs / "terms-test.tsv"
    pairs = pairs_with_terms(read_pairs(tests[0]), terms, 10 if work.quick else WITH_TERMS)
    write_atomically(with_terms, "".join(f"{pair.source}\t{pair.target}\n" for pair in pairs).encode())
    if work.quick:
        tests = [with_terms, with_terms]
    rows = []
    for name, folder in (("the base", base), ("fine-tuned", run)):
        scores = [evaluated(folder, [str(test)])["BLEU"]["value"] for test in tests]
        usage = evaluated(folder, [str(with_terms)], "--terms", str(terms))["terms"]
        row = [name, *(f"{score:.1f}" for score in scores)]
        for mode in ("unconstrained", "constrained"):
            used = usage[mode]["used"] + usage[mode]["inflected"]
            row += [percent(used / max(usage[mode]["asked"], 1)), f"{usage[mode]['bleu']:.1f}"]
        rows.append(row)
    head = ["run", "help, BLEU", "Tatoeba", "terms used, %", "BLEU", "with the list", "BLEU"]
    text = f"""# A Tatoeba model learns LibreOffice's help

English to Spanish: a run of the recipe *tatoeba-eng-spa*, fine-tuned for {work.minutes:g} minutes on the help with as
much of Tatoeba mixed in, and 30 % of the pairs with marked terms (`data.terms`). {len(found):,} terms are words that
occur in at least {COUNT} training paragraphs and have the same translation in at least {100 * SHARE:g} % of them. They
are counted in the first {len(pairs)} test paragraphs of at most {LONGEST} words whose references use all of them.

{table(head, rows)}
To reproduce: `{COMMAND} adaptation help --tatoeba tatoeba-eng-spa --base RUN --minutes {work.minutes:g}`
"""
    write("help-adaptation.md", text, pages_of(work))


def pairs_with_terms(pairs: Iterable[Pair], file: Path, count: int) -> list[Pair]:
    """Return the first short pairs that have terms, and whose references use all of them."""
    terms = TermList(read_terms(file))
    usable = []
    for pair in pairs:
        if len(pair.source.split()) <= LONGEST:
            uses = terms.uses(terms.matches(pair.source), pair.target)
            if uses and all(use.outcome != "missing" for use in uses):
                usable.append(pair)
    return usable[:count]


def found_terms(pairs: Sequence[Pair]) -> dict[str, str]:
    """Return words of a corpus that nearly always have the same translation."""
    lexicon = Lexicon.learn(pairs)
    counts: dict[str, Counter[str]] = {}
    for pair in pairs:
        source, target = content(pair.source), content(pair.target)
        for i, j in lexicon.terms(source, target):
            counts.setdefault(source[i].text.casefold(), Counter())[target[j].text.casefold()] += 1
    found = {}
    for word, targets in sorted(counts.items()):
        ((best, number),) = targets.most_common(1)
        if number >= COUNT and number >= SHARE * targets.total():
            found[word] = best
    return found


class Tags(HTMLParser):
    """The tags of a page in order, with their attributes, but without values that are translated."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.feed(file.read_text(encoding="utf-8"))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        kept = [(name, "" if name in TRANSLATED else value) for name, value in attrs]
        self.tags.append(f"<{tag} {kept}>")

    def handle_endtag(self, tag: str) -> None:
        self.tags.append(f"</{tag}>")


def tags(work: Work) -> None:
    """Tags of translated pages."""
    folder = work.help / "en-es" / "pages" / "en"
    files = list(islice(sorted(folder.rglob("*.html")), work.arguments.pages))
    totals: Counter[str] = Counter()
    for file in files:
        out = work.runs / "pages" / file.relative_to(folder)
        out.parent.mkdir(parents=True, exist_ok=True)
        out.unlink(missing_ok=True)
        if run_command(["translate", str(work.arguments.base), str(file), "--output", str(out)]):
            raise SystemExit(f"the translation of {file} failed")
        before, after = Tags(file).tags, Tags(out).tags
        totals["pages"] += 1
        totals["tags"] += len(before)
        totals["lost"] += (Counter(before) - Counter(after)).total()
        totals["added"] += (Counter(after) - Counter(before)).total()
        totals["pages with all tags"] += Counter(before) == Counter(after)
        totals["pages with the tags in the same order"] += before == after
    print(table(["", "number"], [[name, f"{number:,}"] for name, number in totals.items()]))


def pages_of(work: Work) -> Path:
    """Return the folder of the page."""
    return work.runs if work.quick else DOCS


EXPERIMENTS = {"context": context, "directions": directions, "adaptation": adaptation, "tags": tags}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("experiment", choices=EXPERIMENTS)
    parser.add_argument(
        "help_folder", type=Path, metavar="help", help="the folder of benchmarks.corpora.libreoffice_help"
    )
    parser.add_argument("--minutes", type=float, help="of each training")
    parser.add_argument("--each", type=float, default=8, help="minutes of each fine-tuning of `context`")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--base", type=Path, help="a run from English to Spanish")
    parser.add_argument("--tatoeba", type=Path, help="the folder with train.tsv, dev.tsv and test.tsv")
    parser.add_argument("--pages", type=int, default=60)
    parser.add_argument(
        "--paragraphs", type=int, help="of each test of `directions`, at equal distances; all by default"
    )
    parser.add_argument("--runs", type=Path, default=Path("runs/claims/help"))
    parser.add_argument("--quick", action="store_true", help="seconds, little data; figures not written to docs")
    arguments = parser.parse_args()
    minutes = arguments.minutes or {"context": 30, "directions": 120, "adaptation": 20, "tags": 0}[arguments.experiment]
    each, runs = arguments.each, arguments.runs
    if arguments.quick:
        minutes, each, runs = 0.1, 0.1, runs / "quick"
    runs.mkdir(parents=True, exist_ok=True)
    EXPERIMENTS[arguments.experiment](Work(arguments.help_folder, runs, minutes, each, arguments.quick, arguments))


if __name__ == "__main__":
    main()
