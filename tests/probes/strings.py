"""Random files with the texts of programs: .NET, Qt, Apple's catalogs, Fluent."""

import json
from itertools import count
from random import Random
from typing import Any

from tests.probes.drawn import DECLARATION, WORDS, text


def resx(chance: Random) -> bytes:
    """Resources of .NET: texts, also in CDATA sections, comments, objects, and names of the designer."""

    def value():
        words = text(chance)
        return chance.choice(
            [words, words, f"&lt;b&gt;{words}&lt;/b&gt; {{0}}\n{text(chance)}", "<![CDATA[One < two]]>"]
        )

    def data(number):
        kind = chance.choice(["", "", "", ' type="System.Drawing.Color, System.Drawing"', ' mimetype="x/y"'])
        name = chance.choice(["n", "n", "n", "&gt;&gt;n"])
        comment = chance.choice(["", "<comment>Mind it</comment>", "<comment>{Locked}</comment>"])
        space = ' xml:space="preserve"'
        return f'  <data name="{name}{number}"{kind or space}>\n    <value>{value()}</value>{comment}</data>'

    entries = "\n".join(data(number) for number in range(10))
    version = '<resheader name="version"><value>2.0</value></resheader>'
    return _ended(chance, f"{DECLARATION}\n<root>\n  {version}\n{entries}\n</root>\n")


def qt(chance: Random) -> bytes:
    """Translations of Qt: new, unfinished, finished and vanished ones, plurals, notes."""
    ids = count(1)

    def message():
        source = f"{text(chance).strip()} {next(ids)}" + chance.choice(
            ["", " %1", " &lt;b&gt;bold&lt;/b&gt;", "\nmore"]
        )
        notes = chance.choice(["", "\n<comment>Mind it</comment>", "\n<translatorcomment>mine</translatorcomment>"])
        if chance.random() < 0.2:
            forms = chance.choice(["", "<numerusform></numerusform><numerusform></numerusform>"])
            translation = f'<translation type="unfinished">{forms}</translation>'
            return f'<message numerus="yes">\n<source>%n {source}</source>{notes}\n{translation}\n</message>'
        kind = chance.choice(["vanished", "obsolete", "unfinished", "unfinished", "unfinished"])
        translation = chance.choice(
            ["", "<translation>hecho</translation>", f'<translation type="{kind}">hecho</translation>']
        )
        return f"<message>\n<source>{source}</source>{notes}\n{translation}</message>"

    messages = "\n".join(message() for _ in range(10))
    language = chance.choice(["", ' language="de_DE"'])
    head = f'{DECLARATION}\n<!DOCTYPE TS>\n<TS version="2.1"{language}>'
    return _ended(chance, f"{head}<context>\n<name>Window</name>\n{messages}\n</context></TS>\n")


def xcstrings(chance: Random) -> bytes:
    """An Apple string catalog: plurals, devices, substitutions, existing translations, other languages."""
    ids = count(1)

    def unit(state="translated"):
        return {"stringUnit": {"state": state, "value": f"A {_words(chance)} {next(ids)}"}}

    def plural():
        zero = {"zero": unit()} if chance.random() < 0.3 else {}
        return {"plural": {**zero, "one": unit(), "other": unit()}}

    def localization():
        return chance.choice(
            [
                unit,
                lambda: {"variations": plural()},
                lambda: {"variations": {"device": {"iphone": unit(), "other": {"variations": plural()}}}},
                lambda: {"substitutions": {"cats": {"argNum": 1, "variations": plural()}}, **unit()},
            ]
        )()

    def entry() -> dict[str, Any]:
        extra: dict[str, Any] = chance.choice([{}, {}, {"comment": "Mind it"}, {"extractionState": "stale"}])
        extra = {**extra, **chance.choice([{}, {}, {}, {"shouldTranslate": False}])}
        localizations = {"de": unit(chance.choice(["new", "translated"]))} if chance.random() < 0.2 else {}
        if chance.random() < 0.7:
            localizations["en"] = localization()
        if chance.random() < 0.3:
            localizations["fr"] = unit()
        return {**extra, "localizations": localizations} if localizations else extra

    strings = {f"The {_words(chance)} {next(ids)}": entry() for _ in range(10)}
    catalog = {"sourceLanguage": "en", "strings": strings, "version": "1.0"}
    text = json.dumps(catalog, ensure_ascii=False, indent=chance.choice([2, 4]), separators=(",", " : "))
    return text.replace("\n", chance.choice(["\n", "\n", "\r\n"])).encode()


def fluent(chance: Random) -> bytes:
    """Messages of Fluent: lines, attributes, selections, terms, references, comments."""
    placeables = ["{ $name }", "{ -brand }", '{ "}" }', '{ NUMBER($n, style: "percent") }', "{ m1.a }", "<b>bold</b>"]

    def line():
        return f"{_words(chance)} {chance.choice([*placeables, '', ''])} {_words(chance)}"

    def selection():
        return f"{{ $n ->\n    [one] {line()}\n   *[other] {line()}\n }}"

    def message(number):
        value = chance.choice([line, line, lambda: f"\n    {line()}\n\n    {line()}", selection])()
        attribute = f"\n    .label = {line()}\n    .accesskey = S" if chance.random() < 0.3 else ""
        comment = chance.choice(["", "", "# Mind it\n", "## A group\n\n"])
        return f"{comment}{chance.choice(['m', 'm', '-t'])}{number} = {value}{attribute}\n"

    return _ended(chance, "\n".join(message(number) for number in range(10)))


def _words(chance: Random) -> str:
    """Return some words without braces."""
    words = [word for word in WORDS if "{" not in word]
    return " ".join(["word", *chance.sample(words, chance.randrange(3))])


def _ended(chance: Random, content: str) -> bytes:
    return content.replace("\n", chance.choice(["\n", "\n", "\r\n"])).encode()
