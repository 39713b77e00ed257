"""Dictionary forms of words, by the dictionaries and rules of simplemma."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from bitext.languages import short_code
from translucid.ground.errors import UserError, missing_package


class Lemmas:
    """The dictionary forms of one language."""

    def __init__(self, language: str | None) -> None:
        """Open the dictionary of a language; the first look-up loads it.

        Args:
            language: the language code, such as `es` or `pt-BR`.

        Raises:
            UserError: simplemma is not installed, or has no dictionary of the language.
        """
        try:
            import simplemma
            from simplemma.strategies.dictionaries.dictionary_factory import SUPPORTED_LANGUAGES
        except ImportError as error:
            raise missing_package("telling the forms of a word", "simplemma", "terms") from error
        code, what = None, "the run names no language"
        if language:
            code, what = short_code(language), f"there is no dictionary of the language {language}"
        if code not in SUPPORTED_LANGUAGES:
            raise UserError(f"{what}, so the forms of a word can't be recognised", fix="Ask for terms as they stand.")
        self.language = code
        self._lemmatize = cache(lambda word: simplemma.lemmatize(word, lang=code))

    def of(self, word: str) -> str:
        """Return the dictionary form of a word, in lower case.

        >>> Lemmas("es").of("Casas")
        'casa'
        """
        return str(self._lemmatize(word.casefold())).casefold()

    def forms(self, words: Iterable[str]) -> dict[str, list[str]]:
        """Return the other forms of words that the dictionary lists, by dictionary form, in one pass over it."""
        from simplemma.strategies.dictionaries.dictionary_factory import DefaultDictionaryFactory

        lemmas = set(map(self.of, words))
        forms: dict[str, list[str]] = {}
        if not lemmas:
            return forms
        for form, lemma in DefaultDictionaryFactory().get_dictionary(self.language).items():
            lemma = str(lemma).casefold()
            if lemma in lemmas and form.isalpha() and form.islower():
                forms.setdefault(lemma, []).append(form)
        return forms

    def same_word(self, word: str, other: str) -> bool:
        """Whether two words are forms of the same word."""
        word, other = word.casefold(), other.casefold()
        return word == other or bool({word, self.of(word)} & {other, self.of(other)})
