"""The catalogs of the pages' texts: `.po` files with GNU gettext's messages, which pages load as scripts.

The command `python -m translucid.inspection.rendering.message_catalogs` collects the texts of all pages, writes the
templates `pages.pot`, `lessons.pot` and `files.pot`, and merges them into the catalogs; with `check`, it only reports
what is missing. Texts are the literals in calls of `gettext`, `pgettext`, `ngettext`, `gettextNoop` (messages.js), and
the texts in HTML files. The lessons have catalogs of their own, so that those of the other pages stay small, and so
have the slides and exercises that commands write, whose texts are in Python: `gettext_in` translates them.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

from bitext.documents.strings.plural_forms import PluralForms
from bitext.readers.po import Entry, entries
from translucid.ground.errors import UserError, nearest
from translucid.inspection.rendering.bundling import WEB

PACKAGE = Path(str(files("translucid")))
CATALOGS = WEB / "languages"
TEMPLATE = CATALOGS / "pages.pot"
LESSONS = PACKAGE / "lessons"
LESSON_CATALOGS = LESSONS / "languages"
LESSON_TEMPLATE = LESSON_CATALOGS / "lessons.pot"
FILE_CATALOGS = PACKAGE / "inspection" / "rendering" / "languages"
FILE_TEMPLATE = FILE_CATALOGS / "files.pot"
HTML = ("serving/page/index.html", "interop/web/page.html")
"""The HTML files of pages that are translated, in the package."""
LOADER = "language.js"
"""The script that chooses the language of a page."""
_ATTRIBUTES = ("aria-label", "title", "placeholder", "data-label")
_NOT_TRANSLATED = ("script", "style", "noscript", "kbd", "code", "svg", "math", "title")
_VOID = ("meta", "link", "input", "br", "path")
_CALL = re.compile(r"(?<!function )\b(n|p|)gettext(?:Noop)?\(")
_COMMENT = re.compile(r"^[ \t]*//.*", re.MULTILINE)
_LITERAL = re.compile(r"""\s*("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')\s*""")
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_LETTER = re.compile(r"(?<!\$)\b[^\W\d_]")
"""A letter, except in the names of Python templates, such as `$title`."""
_UNTRANSLATED = {"Translucid"}
"""The name of the project."""
_CONTEXT_END = "\x04"
_HEADER = """\
Content-Type: text/plain; charset=UTF-8
Content-Transfer-Encoding: 8bit
"""


@dataclass
class Message:
    """A text of the pages."""

    source: str
    context: str | None = None
    plural: str | None = None
    files: list[str] = field(default_factory=list)
    """The files with this text, relative to the package."""
    translations: list[str] = field(default_factory=list)
    """The forms of a translation, a single one without plurals; empty if there is none."""

    @property
    def key(self) -> str:
        """The text with its context, as catalogs on pages have it."""
        return self.source if self.context is None else self.context + _CONTEXT_END + self.source

    @property
    def placeholders(self) -> set[str]:
        """The names in braces."""
        return set(_PLACEHOLDER.findall(f"{self.source} {self.plural or ''}"))

    def problems(self) -> Iterator[str]:
        """Yield what is wrong with the translation."""
        if not self.translations or not all(self.translations):
            yield "is not translated"
        for translation in self.translations:
            names = set(_PLACEHOLDER.findall(translation))
            if names - self.placeholders or (self.plural is None and names != self.placeholders):
                yield f"has other placeholders: {translation}"
            if sorted(re.findall(r"<[^<>]*>", translation)) != sorted(re.findall(r"<[^<>]*>", self.source)):
                yield f"has other tags: {translation}"


def languages() -> list[str]:
    """Return the codes of the languages that have a catalog."""
    return sorted(file.stem for file in CATALOGS.glob("*.po"))


@cache
def page_scripts() -> Mapping[str, str]:
    """Return what pages in several languages load: by their names, `language.js` and a catalog for each language."""
    scripts = {LOADER: _loader()}
    for code in languages():
        header, messages = read_catalog(CATALOGS / f"{code}.po")
        scripts[f"languages/{code}.js"] = catalog_script(code, header, messages)
    return scripts


def lesson_scripts(bundled: str) -> Mapping[str, str]:
    """Return the same for the lessons: their catalogs, and what `bundled`, their script, shares with other pages."""
    shared = {message.key for message in messages_of_script(bundled, "lessons.js")}
    scripts = {LOADER: _loader()}
    for code in languages():
        header, messages = read_catalog(CATALOGS / f"{code}.po")
        messages = [message for message in messages if message.key in shared]
        own = LESSON_CATALOGS / f"{code}.po"
        if own.exists():
            messages += read_catalog(own)[1]
        scripts[f"languages/{code}.js"] = catalog_script(code, header, messages)
    return scripts


def gettext_in(language: str, catalogs: Path = FILE_CATALOGS) -> Callable[..., str]:
    """Return a function that translates an English text of slides or exercises, with values for the names in braces.

    Raises:
        UserError: there is no catalog of the language.
    """
    texts = {}
    if language != "en":
        if language not in languages():
            raise UserError(f"there is no language {language!r}", fix=nearest(language, ["en", *languages()]))
        messages = read_catalog(catalogs / f"{language}.po")[1]
        texts = {message.source: message.translations[0] for message in messages if any(message.translations)}

    def gettext(text: str, **values: object) -> str:
        return _PLACEHOLDER.sub(lambda name: str(values.get(name[1], name[0])), texts.get(text, text))

    return gettext


def _loader() -> str:
    names = {}
    for code in languages():
        text = (CATALOGS / f"{code}.po").read_text(encoding="utf-8")
        name = re.search(r'^"X-Language-Name: (.+)\\n"$', text, re.MULTILINE)
        names[code] = name[1] if name else code
    loader = (WEB / LOADER).read_text(encoding="utf-8")
    return f"globalThis.pageLanguages = {json.dumps(names, ensure_ascii=False)};\n{loader}"


def catalog_script(code: str, header: str, messages: Sequence[Message]) -> str:
    """Return a catalog as a script: the translated messages, and the plural form of each number below 200."""
    rule = PluralForms.of(header) or PluralForms.of_language(code)
    form_of: dict[int, int] = {}
    for form, numbers in enumerate(rule.numbers):
        form_of |= dict.fromkeys(numbers, form)
    texts: dict[str, str | list[str]] = {}
    for message in messages:
        if message.translations and all(message.translations):
            texts[message.key] = message.translations if message.plural else message.translations[0]
    forms = "".join(str(form_of[number]) for number in sorted(form_of))
    catalog = {"language": code, "forms": forms, "messages": texts}
    return f"globalThis.pageCatalog = {json.dumps(catalog, ensure_ascii=False, separators=(',', ':'))};\n"


def read_catalog(file: Path) -> tuple[str, list[Message]]:
    """Return the header and the messages of a `.po` file. A translation that is marked as fuzzy is left out.

    Raises:
        ValueError: a line is invalid.
    """

    def refuse(number: int, what: str, fix: str, text: str) -> None:
        raise ValueError(f"{file.name}:{number} {what}: {text.strip()}. {fix}")

    header, messages = "", []
    for entry in entries(file.read_text(encoding="utf-8").splitlines(keepends=True), refuse):
        message = _message_of(entry)
        if message.source:
            messages.append(message)
        else:
            header = entry.forms[0].text
    return header, messages


def _message_of(entry: Entry) -> Message:
    context = entry.values.get("msgctxt")
    translations = [] if entry.fuzzy else [entry.forms[form].text for form in sorted(entry.forms)]
    return Message(entry.source, context.text if context else None, entry.plural, translations=translations)


def page_messages() -> list[Message]:
    """Return the texts of all pages except the lessons, each once, in the order of the files.

    Raises:
        ValueError: a call has no literal, or a text has two plurals.
    """
    from translucid.models.kinds import extensions

    labels = []
    for extension in extensions():
        labels += [extension.section.label] if extension.section else []
        labels += [label for label, _ in extension.tabs.tabs.values()] if extension.tabs else []
    scripts = [script for script in sorted(PACKAGE.rglob("*.js")) if not script.is_relative_to(LESSONS)]
    return _collected([PACKAGE / name for name in HTML], scripts, {"models/kinds.py": labels})


def lesson_messages() -> list[Message]:
    """Return the texts of the lessons, as `page_messages` does those of the other pages."""
    pages = LESSONS / "pages"
    lessons = tomllib.loads((LESSONS / "lessons.toml").read_text(encoding="utf-8"))["lesson"]
    labels = [lesson[key] for lesson in lessons for key in ("title", "summary")]
    html = [*sorted(pages.glob("templates/*.html")), *sorted(pages.glob("texts/*.html"))]
    return _collected(html, sorted(pages.glob("*.js")), {"lessons/lessons.toml": labels})


def file_messages() -> list[Message]:
    """Return the texts of slides and exercises.

    They are the literals in calls of `gettext` and `gettext_noop`, the docstrings of the functions to write, and the
    keys of dictionaries in `exercises.py`: what is wrong with typical answers.
    """
    modules = ["inspection/rendering/slides.py", "lessons/exercise_notebooks.py", "lessons/checking.py"]
    labels = {name: _literals(_parsed(name)) for name in modules}
    exercises, equations = _parsed("lessons/exercises.py"), _parsed("lessons/equations.py")
    functions = {node.name: ast.get_docstring(node) for node in equations.body if isinstance(node, ast.FunctionDef)}
    texts: list[str] = []
    for node in ast.walk(exercises):
        match node:
            case ast.Call(ast.Name("Exercise"), [ast.Attribute(attr=name), *_, ast.Dict(keys)]):
                texts.append(functions[name] or "")
                texts += [str(key.value) for key in keys if isinstance(key, ast.Constant)]
    return _collected([], [], labels | {"lessons/exercises.py": texts})


def _parsed(name: str) -> ast.Module:
    return ast.parse((PACKAGE / name).read_text(encoding="utf-8"))


def _literals(module: ast.Module) -> list[str]:
    """Return the texts in calls of `gettext`, in the order of their lines."""
    found = []
    for node in ast.walk(module):
        match node:
            case ast.Call(ast.Name("gettext" | "gettext_noop"), [ast.Constant(str(text)), *_]):
                found.append((node.lineno, text))
    return [text for _, text in sorted(found)]


def _collected(html: Iterable[Path], scripts: Iterable[Path], labels: Mapping[str, Sequence[str]]) -> list[Message]:
    """Return the texts of files, and further ones by the names of the files in which they are."""
    messages: dict[str, Message] = {}

    def add(message: Message, file: str) -> None:
        known = messages.setdefault(message.key, message)
        known.plural = known.plural or message.plural
        if message.plural not in (None, known.plural):
            raise ValueError(f"{file}: {message.source!r} has two plurals")
        if file not in known.files:
            known.files.append(file)

    for path in html:
        for text in texts_of_html(path.read_text(encoding="utf-8")):
            add(Message(text), path.relative_to(PACKAGE).as_posix())
    for path in scripts:
        name = path.relative_to(PACKAGE).as_posix()
        for message in messages_of_script(path.read_text(encoding="utf-8"), name):
            add(message, name)
    for name, texts in labels.items():
        for text in texts:
            add(Message(text), name)
    return list(messages.values())


def messages_of_script(text: str, name: str) -> Iterator[Message]:
    """Yield the messages in the calls of a script.

    Raises:
        ValueError: an argument is not a literal: a string in quotes, or several with a plus between them.
    """
    text = _COMMENT.sub("", text)
    for call in _CALL.finditer(text):
        place = f"{name}:{text.count(chr(10), 0, call.start()) + 1}"
        first, end = _literal(text, call.end(), place)
        second = None
        if call[1]:
            second, end = _literal(text, end + 1, place)
        if text[end : end + 1] not in (",", ")"):
            raise ValueError(f"{place}: gettext needs a literal, and values by name in place of templates")
        yield Message(*((second or "", first) if call[1] == "p" else (first, None, second)))


def _literal(text: str, start: int, place: str) -> tuple[str, int]:
    """Return the string that begins here and the offset after it."""
    value = ""
    while match := _LITERAL.match(text, start):
        quoted = match[1]
        if quoted.startswith("'"):
            quoted = '"' + quoted[1:-1].replace('"', '\\"') + '"'
        value += json.loads(quoted)
        start = match.end()
        if text[start : start + 1] != "+":
            return value, start
        start += 1
    raise ValueError(f"{place}: gettext needs a literal, and values by name in place of templates")


def texts_of_html(content: str) -> list[str]:
    """Return the texts of an HTML file with a letter, and those of attributes, as messages.js looks them up."""
    parser = _Texts(content)
    parser.feed(content)
    texts = [" ".join(text.split()) for text in parser.texts]
    return [text for text in texts if _LETTER.search(text) and text not in _UNTRANSLATED]


class _Texts(HTMLParser):
    """Collects the texts of an HTML file; an element with the attribute `data-message` is a single one."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._lines = content.splitlines(keepends=True)
        self._open: list[tuple[str, bool]] = []
        """The open elements: their tags, and whether their texts are left out."""
        self._message: tuple[int, int] | None = None
        """The number of open elements around the current message, and the offset of its content."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        skips = tag in _NOT_TRANSLATED or attributes.get("translate") == "no" or self._skips()
        if not skips:
            self.texts += [attributes[name] or "" for name in _ATTRIBUTES if name in attributes]
        if "data-message" in attributes and self._message is None:
            self._message = len(self._open), self._offset() + len(self.get_starttag_text() or "")
        if tag not in _VOID:
            self._open.append((tag, skips))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Leave out elements without content: those of icons."""

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass
        if self._message and len(self._open) == self._message[0]:
            self.texts.append("".join(self._lines)[self._message[1] : self._offset()])
            self._message = None

    def handle_data(self, data: str) -> None:
        if self._message is None and not self._skips():
            self.texts.append(data)

    def _skips(self) -> bool:
        return bool(self._open) and self._open[-1][1]

    def _offset(self) -> int:
        line, column = self.getpos()
        return sum(map(len, self._lines[: line - 1])) + column


def written(header: str, messages: Sequence[Message], plural_forms: int) -> str:
    """Return a file in gettext's format."""
    parts = [_field("msgid", "") + _field("msgstr", header)]
    for message in messages:
        part = "".join(f"#: {file}\n" for file in message.files)
        if message.placeholders:
            part += "#, python-brace-format\n"
        if message.context is not None:
            part += _field("msgctxt", message.context)
        part += _field("msgid", message.source)
        if message.plural is None:
            part += _field("msgstr", (message.translations or [""])[0])
        else:
            part += _field("msgid_plural", message.plural)
            for form in range(plural_forms):
                part += _field(f"msgstr[{form}]", (message.translations or [""] * plural_forms)[form])
        parts.append(part)
    return "\n".join(parts)


def _field(keyword: str, text: str) -> str:
    lines = text.splitlines(keepends=True)
    quoted = [json.dumps(line, ensure_ascii=False) for line in lines] or ['""']
    return f"{keyword} " + "\n".join(quoted if len(quoted) == 1 else ['""', *quoted]) + "\n"


def merged(file: Path, collected: Sequence[Message]) -> str:
    """Return a catalog with the collected messages and the translations that it has; others are dropped."""
    header, messages = read_catalog(file if file.exists() else CATALOGS / file.name)  # of a new language, the header
    known = {(message.key, message.plural): message.translations for message in messages}
    rule = PluralForms.of(header) or PluralForms.of_language(file.stem)
    result = []
    for message in collected:
        translations = known.get((message.key, message.plural), [])
        result.append(Message(message.source, message.context, message.plural, message.files, translations))
    return written(header, result, rule.nplurals)


def main(arguments: Sequence[str]) -> int:
    """Update the templates and the catalogs, or check them; return 1 if something is missing."""
    contents, catalogs = {}, []
    parts = (TEMPLATE, page_messages()), (LESSON_TEMPLATE, lesson_messages()), (FILE_TEMPLATE, file_messages())
    for template, collected in parts:
        contents[template] = written(_HEADER, collected, 2)
        for code in languages():
            file = template.with_name(f"{code}.po")
            contents[file] = merged(file, collected)
            catalogs.append(file)
    problems = []
    for file, content in contents.items():
        if "check" not in arguments:
            file.write_text(content, encoding="utf-8")
        elif not file.exists() or file.read_text(encoding="utf-8") != content:
            problems.append(f"{file.relative_to(PACKAGE)} is not up to date: make messages")
    count = 0
    for file in filter(Path.exists, catalogs):
        messages = read_catalog(file)[1]
        count += len(messages)
        for message in messages:
            where = file.relative_to(PACKAGE)
            problems += [f"{where}: {message.source!r} {problem}" for problem in message.problems()]
    print("\n".join(problems) or f"{count} messages, complete in {', '.join(languages())}")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
