"""The directions in which corpora are read: a multilingual model learns several, each with its own pairs.

A piece in front of the source names the target language (Johnson et al. 2017, arXiv 1611.04558).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from bitext.languages import Languages, find_code, is_flores_code, usual_code
from bitext.pair import Pair
from bitext.readers.lines import OnBad
from translucid.data.readers.corpus import CorpusName, Direction, problem_of_languages, read_pairs
from translucid.data.readers.test_sets import is_test_set

ANY_SOURCE = "*"
"""The key of the targets of an imported model, which does not say from which languages it has learned to write them."""


class LearnedDirections:
    """The directions that the weights of a multilingual model have learned, in all of its trainings.

    A run stores them as `data.learned`: the target languages of each source language. Those of `ANY_SOURCE` were
    learned from each other if sources have language pieces too, and from any language otherwise.
    """

    def __init__(self, targets: Mapping[str, Iterable[str]], *, marks_sources: bool) -> None:
        """Take the target languages by source language; `marks_sources`: whether sources have language pieces."""
        self.targets = {source: frozenset(codes) for source, codes in targets.items()}
        self.marks_sources = marks_sources

    def __contains__(self, direction: Languages) -> bool:
        source, target = direction
        if target in self.targets.get(source or "", ()):
            return True
        imported = self.targets.get(ANY_SOURCE, frozenset())
        return target in imported and (source in imported or not self.marks_sources)

    @property
    def sources(self) -> set[str] | None:
        """All source languages; None if they are unknown, as those of some imported models."""
        imported = self.targets.get(ANY_SOURCE)
        if imported and not self.marks_sources:
            return None
        return {*self.targets, *(imported or ())} - {ANY_SOURCE}

    @property
    def target_languages(self) -> set[str]:
        """All target languages. A student with the vocabulary of its teacher has pieces for others, too."""
        return set().union(*self.targets.values())

    def pivot(self, direction: Languages) -> str | None:
        """Return a language through which learned directions lead from one language to another.

        English comes first. None without such a language, and for a learned direction.

        >>> LearnedDirections({"es": ["en"], "en": ["fr"]}, marks_sources=False).pivot(("es", "fr"))
        'en'
        """
        source, target = direction
        if not self.targets or direction in self:
            return None
        languages = {*self.targets, *self.target_languages} - {ANY_SOURCE}
        pivots = sorted(pivot for pivot in languages if (source, pivot) in self and (pivot, target) in self)
        english = (pivot for pivot in pivots if usual_code(pivot) == "en")
        return next(english, next(iter(pivots), None))


def with_directions(
    learned: Mapping[str, Iterable[str]], directions: Iterable[Direction], *, marks_sources: bool
) -> dict[str, list[str]]:
    """Return the targets of each source of `LearnedDirections` together with further directions."""
    known = LearnedDirections(learned, marks_sources=marks_sources)
    targets = {source: [*codes] for source, codes in learned.items()}
    for source, target in directions:
        if (source, target) not in known and target not in targets.setdefault(source, []):
            targets[source].append(target)
    return targets


class DirectedCorpus(NamedTuple):
    """A corpus that is read in one direction."""

    name: str
    direction: Languages
    """The languages from which and to which its pairs are translated."""
    swapped: bool
    """Whether the sides of the pairs are exchanged."""
    documents: bool = False
    """Whether the pairs have the numbers of their documents."""

    def pairs(self, on_bad: OnBad = None) -> Iterator[Pair]:
        """Yield the pairs.

        Raises:
            UserError: the corpus can't be read, as for `read_pairs`.
        """
        if not self.swapped:
            return read_pairs(self.name, languages=self.direction, on_bad=on_bad, documents=self.documents)
        languages = self.direction[::-1]
        pairs = read_pairs(self.name, languages=languages, on_bad=on_bad, documents=self.documents)
        return (pair.swapped for pair in pairs)


def languages_of(name: str, model_codes: Iterable[str] = ()) -> Direction | None:
    """Return the languages in the name of a corpus, as the model's codes or the usual ones; None without any."""
    languages = CorpusName.parse(name).languages
    if languages is None:
        return None
    source, target = languages
    return model_code(source, model_codes), model_code(target, model_codes)


def model_code(code: str, model_codes: Iterable[str] = ()) -> str:
    """Return the code of a language: that of the model, if it has the language, or else the usual one.

    A new language of a model with the codes of NLLB keeps a code of this kind.
    """
    model_codes = list(model_codes)
    if is_flores_code(code) and any(map(is_flores_code, model_codes)):
        usual = code
    else:
        usual = usual_code(code) or code
    return find_code(code, model_codes) or usual


def readings(
    name: str, languages: Direction, *, chosen: Languages, reverse: bool, both_directions: bool
) -> list[DirectedCorpus]:
    """Return the corpora that the name of a corpus stands for.

    Args:
        name: the name.
        languages: the languages of its sides.
        chosen: the requested languages, None for all. With both, the file may have them in either order.
        reverse: whether corpora are read in reverse.
        both_directions: whether they are read in both directions.
    """
    as_written = DirectedCorpus(name, languages, swapped=False)
    swapped = DirectedCorpus(name, languages[::-1], swapped=True)
    if both_directions or None not in chosen:
        corpora = [as_written, swapped]
    else:
        corpora = [swapped if reverse and not is_test_set(name) else as_written]
    return [corpus for corpus in corpora if includes(chosen, corpus.direction)]


def includes(chosen: Languages, direction: Languages) -> bool:
    """Whether a direction has the languages that are chosen; None stands for any language."""
    source, target = chosen
    return source in (None, direction[0]) and target in (None, direction[1])


def language_pieces(
    directions: Iterable[Direction], model_pieces: Mapping[str, str], *, of_sources: bool = False
) -> dict[str, str]:
    """Return the piece that stands for each language: those of a model, and those of new target languages.

    New ones are written as the others of the model are, or such as `>>es<<`, which Marian's tokenizers recognize.

    Args:
        directions: the directions of the training text.
        model_pieces: the pieces of the model by language, if there are any.
        of_sources: whether source languages have pieces, too.

    Raises:
        ValueError: the pieces of the model are codes such as `spa_Latn`, and a new language has a shorter one.
    """
    pattern, placeholder = ">>-<<", "-"
    for code, piece in model_pieces.items():
        if code in piece:
            pattern, placeholder = piece, code
            break
    pieces = dict(model_pieces)
    codes = set()
    for source, target in directions:
        codes |= {source, target} if of_sources else {target}
    for code in sorted(codes - model_pieces.keys()):
        # The vocabulary may have a shorter code, such as `fr`, as a part of words.
        if pattern == placeholder and not is_flores_code(code):
            what = f"{code} is new to the model, whose codes are such as {placeholder}"
            raise ValueError(f"{what}: write its script, too")
        pieces[code] = pattern.replace(placeholder, code)
    return pieces


def missing_languages(names: Iterable[str]) -> Iterator[str]:
    """Yield what is wrong with names of corpora that have no languages."""
    for name in names:
        if CorpusName.parse(name).languages is not None:
            continue
        if problem := problem_of_languages(name):
            yield f"{name} {'. '.join(problem).rstrip('.')}"
        else:
            yield f"{name} has no languages, and there are several directions: write {name}:en-fr, for instance"
