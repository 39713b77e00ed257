"""The tokenizer of a new run: learned, or that of another run, with further pieces if the new run needs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from translucid.data.filtering import Filter, Skipped, keep
from translucid.data.tokenizing.added_language import with_language
from translucid.data.tokenizing.extending import with_reserved, with_tag, with_words
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.errors import UserError
from translucid.runs.corpus_files import Corpora
from translucid.runs.initialization import Pretrained
from translucid.runs.run_folder import RunFolder

if TYPE_CHECKING:
    from translucid.runs.configuration import Configuration


def initial_tokenizer(
    configuration: Configuration, learn: Callable[[], Tokenizer], corpora: Corpora, tell: Callable[[str], None]
) -> Tokenizer:
    """Return the tokenizer of a new run: that of the runs from which it is initialised, or a new one.

    Args:
        configuration: the configuration of the run.
        learn: a function that learns a new tokenizer.
        corpora: the corpora of the run. A vocabulary is extended by words of these, without those that are mixed in.
        tell: called with a line for the user.

    Raises:
        UserError: the tokenizer lacks the tag of synthetic pairs, or reserved pieces, and can't be extended.
    """
    options, pretrained = configuration.training, Pretrained.of(configuration.training)
    if not options.begin_from and not options.teachers and not any(pretrained):
        return learn()
    if options.teachers:
        tokenizer = _tokenizer_of_teacher(RunFolder(Path(options.teachers[0])), configuration)
    elif options.begin_from:
        tokenizer = RunFolder(Path(options.begin_from)).tokenizer()
    else:
        pretrained_tokenizer = pretrained.tokenizer(None) or pretrained.tokenizer(learn())
        assert pretrained_tokenizer is not None
        tokenizer = pretrained_tokenizer
    data = configuration.data
    extensible = options.begin_from and not options.adapter_rank
    if data.synthetic and tokenizer.tag is None:
        if not extensible:
            run = options.begin_from or options.init_encoder or options.elmo or options.teachers[0]
            fix = "Begin without it, or give the synthetic pairs with --train, untagged."
            raise UserError("has no tag for synthetic pairs in its vocabulary, and can't get one", file=run, fix=fix)
        tokenizer = with_tag(tokenizer, shared_ids=data.tokenizer.shared_ids)
    if not tokenizer.reserves(data.reserved):
        if not extensible:
            options_with_pieces = "placeholders", "terms", "fuzzy_matches", "context"
            names = " and ".join(f"data.{name}" for name in options_with_pieces if getattr(data, name))
            what = f"the vocabulary lacks the pieces of {names}, and can't get any"
            raise UserError(what, fix=f"Begin from a whole run and train all of it, or leave {names} out.")
        tokenizer = with_reserved(tokenizer, data.reserved)
    if languages := _new_languages(configuration):
        data = configuration.data
        pieces = [piece for piece in data.tokenizer.languages.values() if not tokenizer.reserves([piece])]
        texts, other_texts = (_Texts(corpora, data.filter, languages, of_new=of_new) for of_new in (True, False))
        return with_language(tokenizer, texts, other_texts, data.tokenizer.added, pieces, tell)
    if not data.tokenizer.added:
        return tokenizer
    domain_corpora = chain.from_iterable(corpora.train[: len(corpora.train) - len(data.mixed_shares)])
    pairs = keep(domain_corpora, data.filter, Skipped())
    return with_words(tokenizer, pairs, data.tokenizer.added, shared_ids=data.tokenizer.shared_ids)


def _new_languages(configuration: Configuration) -> set[str]:
    """Return the languages of the training files that the run to be fine-tuned lacks.

    Raises:
        UserError: that run is not multilingual, or its vocabulary can't be extended.
    """
    data, training = configuration.data, configuration.training
    if not training.begin_from or not data.tokenizer.languages:
        return set()
    base = RunFolder(Path(training.begin_from)).configuration().data
    if not base.tokenizer.languages:
        what = "translates one direction and has no pieces for languages, so it can't learn others"
        raise UserError(what, file=training.begin_from, fix="Begin from a multilingual run, or train all files anew.")
    new_languages = set(chain.from_iterable(data.corpus_directions)) - set(base.all_languages)
    if new_languages and (training.adapter_rank or not data.tokenizer.joint):
        reason = "training.adapter_rank" if training.adapter_rank else "a vocabulary for each side"
        what = f"the model lacks {' and '.join(sorted(new_languages))}, and can't learn more languages with {reason}"
        raise UserError(what, file=training.begin_from, fix="Train the whole model, with a joint vocabulary.")
    return new_languages


@dataclass(frozen=True)
class _Texts:
    """The texts of the languages that a vocabulary gets, or of the others, from all training corpora."""

    corpora: Corpora
    pair_filter: Filter
    new_languages: Set[str]
    of_new: bool

    def __iter__(self) -> Iterator[str]:
        for index in sorted(chain.from_iterable(self.corpora.texts.values())):
            for pair in keep(self.corpora.train[index], self.pair_filter, Skipped()):
                for language, text in zip(self.corpora.directions[index], pair, strict=True):
                    if (language in self.new_languages) == self.of_new:
                        yield text


def _tokenizer_of_teacher(teacher: RunFolder, configuration: Configuration) -> Tokenizer:
    """Return the tokenizer of a teacher.

    Raises:
        UserError: the new run has other settings of the tokenizer.
    """
    settings = configuration.data.tokenizer.model_dump()
    for name, value in teacher.configuration().data.tokenizer.model_dump().items():
        if name != "added" and settings[name] != value:
            what = f"has data.tokenizer.{name}={value}, but the new run, which gets its vocabulary, {settings[name]}"
            raise UserError(what, file=teacher.path, fix="Set the same, or leave training.teachers out.")
    return teacher.tokenizer()


def lacks_pieces(configuration: Configuration) -> bool:
    """Whether the run to be fine-tuned lacks reserved pieces that the configuration needs."""
    folder = configuration.training.begin_from
    return folder is not None and not RunFolder(Path(folder)).tokenizer().reserves(configuration.data.reserved)
