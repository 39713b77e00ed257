"""The files of the lessons: pages, a script, a style sheet, and the records that the figures show.

Pages show excerpts of the package's source, which are read when a page is built, so that they are always current.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from html import escape
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from string import Template
from textwrap import dedent
from typing import Any

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from translucid.inspection.rendering.bundling import WEB, bundle
from translucid.inspection.rendering.message_catalogs import lesson_scripts
from translucid.lessons.lessons import LESSONS, Lesson
from translucid.models.kinds import lesson_figures, resolved

PAGES = Path(str(files("translucid.lessons"))) / "pages"
RECORDED = PAGES.parent / "recorded"
"""The records that come with the package, a JSON file per lesson."""
DEMO_PAGE = "translator"
"""The folder next to saved pages with the demo's web export, which some of them embed."""


SCRIPT = '<script defer src="lessons.js"></script>\n'
EQUATIONS = "translucid.lessons.equations"
"""The module of the lines that the pages show as the code of an equation."""
SOURCES = PAGES.parent.parent.parent
"""The folder of the package."""


@dataclass(frozen=True)
class Excerpt:
    """The source of a function or a class."""

    file: str
    """The path of the file in the source folder, such as `translucid/attention/attend.py`."""
    line: int
    """The number of the first line, from 1."""
    text: str

    @classmethod
    def of(cls, name: str) -> Excerpt:
        """Return the source of an object by name, such as `translucid.attention.scores:Concat.over`."""
        module, _, path = name.partition(":")
        target: Any = import_module(module)
        for part in path.split("."):
            target = getattr(target, part)
        target = inspect.unwrap(target)  # a decorator, such as that of no-grad mode, has another source
        lines, first = inspect.getsourcelines(target)
        file = Path(inspect.getfile(target)).relative_to(SOURCES)
        return cls(file.as_posix(), first, dedent("".join(lines)).rstrip())

    def html(self) -> str:
        """Return the source as highlighted HTML."""
        return highlight(self.text, PythonLexer(), HtmlFormatter(nowrap=True)).rstrip()


def recorded(name: str) -> str:
    """Return the record of a lesson that comes with the package, as JSON."""
    return (RECORDED / f"{name}.json").read_text(encoding="utf-8")


def as_json(record: Mapping[str, Any]) -> str:
    """Return the record of a lesson as compact JSON."""
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


def record_script(name: str, record: str) -> str:
    """Return the script that passes the record of a lesson, in JSON, to its page."""
    return f"(globalThis.lessonRecords ??= {{}})[{json.dumps(name)}] = {record};\n"


def static_files(live: Collection[Lesson] = (), translator: str = "", *, embed: bool = False) -> dict[str, str]:
    """Return all files except the records, by name.

    Args:
        live: the lessons for which a server answers requests to `look` with records of other sentences.
        translator: the address of a translator's page, if there is one.
        embed: whether pages embed the translator in the folder DEMO_PAGE.
    """
    content = {"index.html": index(translator, live=bool(live))}
    for lesson in LESSONS:
        content[f"{lesson.name}.html"] = page(lesson, translator, live=lesson in live, embed=embed)
    further = lesson_figures()
    content["lessons.js"] = bundle("main.js", [PAGES, WEB, *(resolved(figures.page) for figures in further)])
    styles = [WEB / "tokens.css", WEB / "inspector.css"]
    for figures in further:
        styles += (resolved(figures.page) / name for name in figures.styles)
    styles.append(PAGES / "lesson.css")
    content |= lesson_scripts(content["lessons.js"])
    content["lessons.css"] = "".join(path.read_text(encoding="utf-8") for path in styles)
    return content


def page(lesson: Lesson, translator: str = "", *, live: bool, embed: bool = False) -> str:
    """Return the page of a lesson."""
    number = LESSONS.index(lesson)
    text = (PAGES / "texts" / f"{lesson.name}.html").read_text(encoding="utf-8")
    introduction, question = text.split("<!-- question -->\n")
    lead, explanation = introduction.split("<!-- figure -->\n")
    embedded = ""
    if embed and lesson.view:
        embedded = _template("embedded").substitute(folder=DEMO_PAGE, view=lesson.view)
    body = _template("lesson").substitute(
        number=number + 1,
        count=len(LESSONS),
        title=escape(lesson.title),
        lead=lead,
        explanation=explanation,
        equations=_equations(lesson),
        code=_code(lesson),
        question=question,
        embedded=embedded,
        pagination=_pagination(number),
    )
    scripts = f'<script defer src="records/{lesson.name}.js"></script>\n{SCRIPT}'
    attributes = f' data-exercise="{lesson.exercise}"'
    if lesson.command:
        attributes += f' data-command="{escape(lesson.command.format(runs="runs"))}"'
    return _document(lesson.title, lesson.name, body, scripts, translator, live=live, attributes=attributes)


def index(translator: str = "", *, live: bool = False) -> str:
    """Return the page that lists the lessons."""
    hint = "" if live else _template("recorded_hint").template
    body = _template("index").substitute(cards="".join(map(_card, LESSONS)), hint=hint)
    return _document("Lessons", "", body, SCRIPT, translator, live=live)


def save_pages(folder: Path, records: Mapping[str, str]) -> None:
    """Write the lessons with records, JSON by lesson, into a folder; the pages need no server.

    If the folder has a web export of the demo, in DEMO_PAGE, some pages embed it.
    """
    (folder / "records").mkdir()
    (folder / "languages").mkdir()
    for name, text in static_files(embed=(folder / DEMO_PAGE).is_dir()).items():
        (folder / name).write_text(text, encoding="utf-8")
    for name, record in records.items():
        (folder / "records" / f"{name}.js").write_text(record_script(name, record), encoding="utf-8")


def _card(lesson: Lesson) -> str:
    title, summary = escape(lesson.title), escape(lesson.summary)
    return f'<li><a href="{lesson.name}.html"><b>{title}</b> <span>{summary}</span></a>\n'


def _equations(lesson: Lesson) -> str:
    """Return the lines that are the equation of a lesson."""
    return "\n".join(_listing(name, Excerpt.of(f"{EQUATIONS}:{name}")) for name in lesson.equations)


def _code(lesson: Lesson) -> str:
    """Return the code of the package that computes the same."""
    parts = []
    for name in lesson.code:
        excerpt, label = Excerpt.of(name), name.split(":")[1]
        place = f"src/{excerpt.file}:{excerpt.line}"
        parts.append(f'<p class="file" translate="no"><b>{escape(label)}</b> {escape(place)}</p>')
        parts.append(_listing(label, excerpt))
    return "\n".join(parts)


def _listing(label: str, excerpt: Excerpt) -> str:
    attributes = f'role="group" tabindex="0" translate="no" aria-label="{escape(label)}"'
    return f"<pre {attributes}><code>{excerpt.html()}</code></pre>"


def _pagination(number: int) -> str:
    links = []
    for step, rel, arrow in ((-1, "prev", "← <span>{}</span>"), (1, "next", "<span>{}</span> →")):
        if 0 <= number + step < len(LESSONS):
            lesson = LESSONS[number + step]
            links.append(f'<a rel="{rel}" href="{lesson.name}.html">{arrow.format(escape(lesson.title))}</a>')
    return _template("pagination").substitute(links="".join(links))


def _document(
    title: str, name: str, body: str, scripts: str, translator: str, *, live: bool, attributes: str = ""
) -> str:
    steps = ""
    for number, lesson in enumerate(LESSONS, 1):
        current = " aria-current=page" if lesson.name == name else ""
        steps += f'<li><a href="{lesson.name}.html" title="{escape(lesson.title)}"{current}>{number}</a></li>'
    back = _template("back").substitute(translator=translator) if translator else ""
    attributes += " data-live" if live else ""
    return _template("document").substitute(
        title=escape(title), scripts=scripts, name=name, attributes=attributes, back=back, steps=steps, body=body
    )


def _template(name: str) -> Template:
    return Template((PAGES / "templates" / f"{name}.html").read_text(encoding="utf-8"))
