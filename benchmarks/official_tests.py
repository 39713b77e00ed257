"""Scores of a run on official test sets, beside published scores of other systems, as a table in Markdown.

python -m benchmarks.official_tests RUN --data FOLDER --tests multi30k-2016 tatoeba --beam 5

BLEU is for all pairs, and for those of which neither side is in the run's training text, by its seen-sentence index.
With `--memory`, the run retrieves from a memory (`translate --knn`). FOLDER has the test sets under the names of
`TESTS`; others are left out. The sources of the files:

- tatoeba-test-v2021-08-07 and tico19-test: Helsinki-NLP/OPUS-MT-testsets, `testsets/eng-spa` and others
- flores200: the files of FLORES-200's devtest part
- multi30k: the raw texts of Multi30k's first task

The published scores are BLEU of whole, cased, detokenized test sets. They were read in November 2026 from
`scores/PAIR/TEST/bleu-scores.txt` of Helsinki-NLP/OPUS-MT-leaderboard and Helsinki-NLP/External-MT-leaderboard. None
was measured here; a dash is a score that neither list has.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import compress
from pathlib import Path
from typing import NamedTuple

from bitext.languages import usual_code
from bitext.pair import Pair
from translucid.api.evaluation.scoring import translated
from translucid.api.translator import Translator
from translucid.data.readers.corpus import read_pairs, references_of
from translucid.data.seen_sentences import SeenSentences
from translucid.evaluation.metrics import corpus_scores, without_blank
from translucid.evaluation.system_table import markdown_table
from translucid.ground.console import Console
from translucid.ground.errors import UserError

SYSTEMS = (
    "opus-2019-12-04",
    "best OPUS-MT",
    "NLLB-200 distilled 600M",
    "NLLB-200 1.3B",
    "NLLB-200 distilled 1.3B",
    "best of both lists",
)


class OfficialTest(NamedTuple):
    """A test set."""

    languages: tuple[str, str]
    corpus: str
    """Its name in the folder of test sets."""
    published: tuple[float | None, ...]
    """The published BLEU of each of `SYSTEMS`."""


CODES = {"ces": "cs", "deu": "de", "fra": "fr", "spa": "es"}
"""The codes of the target languages."""
FILES = {
    "tatoeba": "official/tatoeba-test-v2021-08-07.eng-{three}.tsv.gz",
    "flores200": "official/flores200.devtest.{{eng_Latn,{three}_Latn}}.gz",
    "tico19": "tico19-test.{{eng,{three}}}",
    "multi30k-2016-flickr": "multi30k-raw/test_2016_flickr.{{en,{two}}}.gz",
    "multi30k-2017-flickr": "multi30k-raw/test_2017_flickr.{{en,{two}}}.gz",
    "multi30k-2017-mscoco": "multi30k-raw/test_2017_mscoco.{{en,{two}}}.gz",
    "multi30k-2018-flickr": "multi30k-raw/test_2018_flickr.{{en,{two}}}.gz",
}
"""The files of the test sets, by the target language's code of two or three letters."""
PUBLISHED: dict[str, tuple[float | None, ...]] = {
    "tatoeba-eng-spa": (53.8, 57.2, 53.8, 55.8, 56.2, 57.2),
    "flores200-eng-spa": (None, 28.5, 25.9, 27.7, 27.2, 28.5),
    "tico19-eng-spa": (46.5, 53.0, 51.0, 53.9, None, 54.1),
    "tatoeba-eng-deu": (41.2, 44.7, 40.9, 44.0, 44.8, 44.8),
    "multi30k-2016-flickr-eng-deu": (34.2, 36.3, 35.8, 37.1, 39.3, 39.7),
    "multi30k-2017-flickr-eng-deu": (33.3, 35.8, 31.8, 36.2, 35.3, 39.5),
    "multi30k-2017-mscoco-eng-deu": (28.3, 30.6, None, 30.6, 32.3, 34.2),
    "multi30k-2018-flickr-eng-deu": (28.9, 31.6, 31.5, 32.7, 34.2, 36.7),
    "multi30k-2016-flickr-eng-ces": (32.4, 33.4, 24.4, 29.0, 30.4, 33.4),
    "multi30k-2018-flickr-eng-ces": (32.2, 33.4, 25.0, 28.8, 30.8, 33.4),
    "tatoeba-eng-fra": (51.7, 53.2, 48.6, 50.6, 51.2, 53.2),
    "flores200-eng-fra": (None, 52.2, 45.1, 47.4, 47.5, 52.2),
    "tico19-eng-fra": (36.4, 40.6, 38.1, 40.1, None, 40.6),
    "multi30k-2016-flickr-eng-fra": (48.9, 52.4, 47.8, 50.5, 51.2, 52.4),
    "multi30k-2017-flickr-eng-fra": (49.1, 52.8, 45.9, 49.6, 51.1, 52.8),
    "multi30k-2017-mscoco-eng-fra": (51.4, 54.7, 48.7, 50.2, 52.3, 54.7),
    "multi30k-2018-flickr-eng-fra": (41.9, 43.7, 39.2, 42.7, 44.2, 44.2),
}


def official_test(name: str) -> OfficialTest:
    """Return a test set by its name, such as `tatoeba-eng-spa`."""
    test, _, three = name.partition("-eng-")
    two = CODES[three]
    return OfficialTest(("en", two), FILES[test].format(two=two, three=three), PUBLISHED[name])


TESTS = {name: official_test(name) for name in PUBLISHED}


def unseen(pairs: Sequence[Pair], index: SeenSentences) -> list[bool]:
    """Return for each pair whether neither of its sides is in the training text."""
    return [sides.none for sides in index.look_up(pairs).sides]


def row(
    translator: Translator, name: str, pairs: Sequence[Pair], index: SeenSentences, *, beam: int, split: bool
) -> tuple[list[str], list[str]]:
    """Translate a test set; return its row of the table, and sacreBLEU's signatures."""
    options = translator.configuration.decoding_with({"beam": beam})
    outputs = translated(translator, pairs, options, split=split, console=Console(stderr=True))
    is_unseen = unseen(pairs, index)
    cells, signatures = [], []
    for kept in ([True] * len(pairs), is_unseen):
        kept_pairs, kept_outputs = list(compress(pairs, kept)), list(compress(outputs, kept))
        if not kept_pairs:
            cells.append("–")
            continue
        references = without_blank(references_of(kept_pairs))
        scores = corpus_scores(kept_outputs, references, language=TESTS[name].languages[1])
        by_name = {score.name: score for score in scores}
        cells.append(" / ".join(f"{by_name[metric].value:.1f}" for metric in ("BLEU", "chrF++")))
        signatures = [f"{metric}|{by_name[metric].signature}" for metric in ("BLEU", "chrF++")]
    published = ["–" if score is None else f"{score:.1f}" for score in TESTS[name].published]
    return [name, f"{len(pairs):,}", cells[0], f"{sum(is_unseen):,}", cells[1], *published], signatures


def main() -> None:
    """Print the table of the tests in the languages of a run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--data", type=Path, required=True, help="the folder of test sets")
    parser.add_argument("--tests", nargs="+", default=[], help=f"beginnings of names: {', '.join(TESTS)}")
    parser.add_argument("--languages", help="of the run, such as en-es, if it does not know them")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--memory", type=Path, help="retrieve from this memory")
    parser.add_argument("--lines", choices=["sentences", "whole"], default="sentences")
    arguments = parser.parse_args()
    translator = Translator.load(arguments.run, "cpu")
    options = translator.configuration.data
    languages = tuple(arguments.languages.split("-")) if arguments.languages else options.languages
    codes = tuple(usual_code(code) if code else None for code in languages)
    names = [name for name, test in TESTS.items() if test.languages == codes]
    if arguments.tests:
        names = [name for name in names if name.startswith(tuple(arguments.tests))]
    if not names:
        raise SystemExit(f"no test set is in the languages {'-'.join(map(str, codes))}")
    index = SeenSentences.of_runs([arguments.run])
    if index is None:
        raise SystemExit(f"{arguments.run} has no seen-sentence index: train it again")
    parameters = sum(weight.numel() for weight in translator.model.parameters())
    memory = ""
    if arguments.memory:
        translator, memory = translator.with_knn(arguments.memory), f", memory {arguments.memory}"
    described = f"{parameters / 1e6:.1f} million parameters, beam {arguments.beam}, {arguments.lines}{memory}"
    print(f"{arguments.run}: {described}\n")
    rows, signatures = [], dict[str, None]()
    for name in names:
        try:
            pairs = list(read_pairs(arguments.data / TESTS[name].corpus))
        except UserError as error:
            Console(stderr=True).print(f"left out: {error}", soft_wrap=True)
            continue
        cells, test_signatures = row(
            translator, name, pairs, index, beam=arguments.beam, split=arguments.lines == "sentences"
        )
        rows.append(cells)
        signatures |= dict.fromkeys(test_signatures)
    header = ["test", "pairs", "BLEU / chrF++", "unseen pairs", "BLEU / chrF++ of these"]
    print(markdown_table([*header, *SYSTEMS], rows))
    print("\n".join(signatures))


if __name__ == "__main__":
    main()
