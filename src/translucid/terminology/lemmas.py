"""Dictionary forms of words, by the dictionaries and rules of simplemma."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from translucid.data.languages import short_code
from translucid.ground.errors import UserError, missing_package


class Lemmas:
    """The dictionary forms of one language."""

    def __init__(self, language: str | None) -> None:
        """Open the dictionary of a language, which is loaded with the first word.

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
        self._of = cache(lambda word: simplemma.lemmatize(word, lang=code))

    def of(self, word: str) -> str:
        """Return the dictionary form of a word, in lower case.

        >>> Lemmas("es").of("Casas")
        'casa'
        """
        return str(self._of(word.casefold())).casefold()

    def forms(self, words: Iterable[str]) -> dict[str, list[str]]:
        """Return the other forms of words that the dictionary lists, by dictionary form, in one pass over it."""
        from simplemma.strategies.dictionaries.dictionary_factory import DefaultDictionaryFactory

        wanted = set(map(self.of, words))
        forms: dict[str, list[str]] = {}
        if not wanted:
            return forms
        for form, lemma in DefaultDictionaryFactory().get_dictionary(self.language).items():
            lemma = str(lemma).casefold()
            if lemma in wanted and form.isalpha() and form.islower():
                forms.setdefault(lemma, []).append(form)
        return forms

    def same(self, first: str, second: str) -> bool:
        """Whether two words are forms of the same word."""
        first, second = first.casefold(), second.casefold()
        return first == second or bool({first, self.of(first)} & {second, self.of(second)})
