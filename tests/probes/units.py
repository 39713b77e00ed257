"""Random files of strings and of segments: XLIFF, TMX, Android."""

import re
from itertools import count
from random import Random

from tests.probes.drawn import DECLARATION, tagged

XLIFF = 'xmlns="urn:oasis:names:tc:xliff:document:{}"'


def xliff_1(chance: Random) -> bytes:
    """XLIFF 1.2: units with and without a target, with segments, and units that must not be translated."""
    ids = count(1)

    def bx_ex(inside):
        number = next(ids)
        return f'<bx id="{number}" rid="r{number}"/>{inside}<ex id="e{number}" rid="r{number}"/>'

    def bpt_ept(inside):
        number = next(ids)
        return f'<bpt id="{number}">&lt;b></bpt>{inside}<ept id="{number}">&lt;/b></ept>'

    tags = [
        lambda inside: f'<g id="{next(ids)}" ctype="bold">{inside}</g>',
        lambda inside: f'<mrk mtype="term">{inside}</mrk>',
        lambda inside: f'<mrk mtype="protected">fixed {next(ids)}</mrk>',
        lambda inside: f'<x id="{next(ids)}"/>',
        lambda inside: f"<ph id='{next(ids)}'>&lt;br/></ph>",
        bx_ex,
        bpt_ept,
    ]

    def unit(number):
        source = tagged(chance, tags)
        kind = chance.choice(["plain", "plain", "new", "done", "no", "cut"])
        attributes = ' translate="no"' if kind == "no" else ""
        rest = {"new": f'\n <target state="new">{source}</target>', "done": '\n <target state="final">hecho</target>'}
        if kind == "cut":
            parts = [tagged(chance, tags) for _ in range(2)]
            source = " ".join(parts)
            marks = " ".join(f'<mrk mtype="seg" mid="{i}">{part}</mrk>' for i, part in enumerate(parts))
            rest["cut"] = f"<seg-source>{marks}</seg-source>"
        note = chance.choice(["", "<note>Mind it</note>"])
        return (
            f'<trans-unit id="{number}"{attributes}>\n <source>{source}</source>{rest.get(kind, "")}{note}</trans-unit>'
        )

    units = "\n".join(unit(number) for number in range(8))
    header = (
        f'<xliff version="1.2" {XLIFF.format("1.2")}><file source-language="en" original="a" datatype="html"><body>'
    )
    return _ended(chance, f"{DECLARATION}\n{header}{units}</body></file></xliff>\n")


def xliff_2(chance: Random) -> bytes:
    """XLIFF 2: units of several segments, and spans with separate start and end elements."""
    ids = count(1)

    def sc_ec(inside):
        number = next(ids)
        return f'<sc id="{number}"/>{inside}<ec startRef="{number}"/>'

    tags = [
        lambda inside: f'<pc id="{next(ids)}">{inside}</pc>',
        lambda inside: f'<mrk id="m{next(ids)}" type="term">{inside}</mrk>',
        lambda inside: f'<mrk id="m{next(ids)}" translate="no">fixed</mrk>',
        lambda inside: f'<ph id="{next(ids)}"/>',
        lambda inside: '<cp hex="001A"/>',
        sc_ec,
    ]

    def segment():
        target = chance.choice(["", "<target>hecho</target>"])
        return f"<segment>\n  <source>{tagged(chance, tags)}</source>{target}</segment>"

    def unit(number):
        notes = chance.choice(["", "<notes><note>Mind it</note></notes>"])
        ignorable = "<ignorable><source> </source></ignorable>"
        segments = ignorable.join(segment() for _ in range(chance.randrange(1, 3)))
        return f'<unit id="u{number}">{notes}{segments}</unit>'

    units = "\n".join(unit(number) for number in range(8))
    return _ended(
        chance,
        f'<xliff version="2.1" srcLang="en" trgLang="de" {XLIFF.format("2.0")}><file id="f">{units}</file></xliff>',
    )


def tmx(chance: Random) -> bytes:
    """TMX: units with both languages, or one."""
    ids = count(1)

    def bpt_ept(inside):
        number = next(ids)
        return f'<bpt i="{number}">&lt;b></bpt>{inside}<ept i="{number}">&lt;/b></ept>'

    tags = [
        lambda inside: f'<hi type="x{next(ids)}">{inside}</hi>',
        lambda inside: f'<ph x="{next(ids)}">&lt;br/></ph>',
        lambda inside: f'<it pos="begin" x="{next(ids)}">&lt;i></it>',
        bpt_ept,
    ]

    def unit():
        target = chance.choice(
            ["", "", '<tuv xml:lang="de-AT"><seg>hecho</seg></tuv>', '<tuv xml:lang="de-AT"><seg/></tuv>']
        )
        return f'<tu>\n  <tuv xml:lang="en-US"><seg>{tagged(chance, tags)}</seg></tuv>{target}</tu>'

    units = "\n".join(unit() for _ in range(8))
    doctype = chance.choice(["", '<!DOCTYPE tmx SYSTEM "tmx14.dtd">'])
    return _ended(chance, f'{DECLARATION}{doctype}<tmx version="1.4"><header srclang="en"/><body>{units}</body></tmx>')


def android(chance: Random) -> bytes:
    """Android strings, arrays and plurals, with escapes, tags and CDATA."""
    ids = count(1)
    tags = [
        lambda inside: f'<a href="h{next(ids)}">{inside}</a>',
        lambda inside: f"<b>{inside}</b>",
        lambda inside: f'<xliff:g id="{next(ids)}">%1$s</xliff:g>',
        lambda inside: rf"\n{inside}",
    ]

    def escaped(part):
        is_tag = part.startswith("<")
        return part if is_tag else part.replace("'", r"\'").replace('"', r"\"")

    def value():
        parts = re.split(r"(<[^>]*>)", tagged(chance, tags))
        inside = "".join(map(escaped, parts))
        return chance.choice([inside, inside, f"\n    {inside}\n  ", f"<![CDATA[<i>Look</i> at {next(ids)}]]>"])

    def resource(number):
        name = f'name="n{number}"'
        return chance.choice(
            [
                lambda: f"<string {name}>{value()}</string>",
                lambda: f'<string {name} translatable="false">{value()}</string>',
                lambda: f"<string-array {name}><item>{value()}</item><item>{value()}</item></string-array>",
                lambda: (
                    f'<plurals {name}>\n <item quantity="one">{value()}</item>\n'
                    f' <item quantity="other">{value()}</item>\n</plurals>'
                ),
            ]
        )()

    resources = "\n".join(f"<!-- note {number} -->{resource(number)}" for number in range(10))
    return _ended(chance, f'{DECLARATION}<resources xmlns:xliff="{XLIFF.format("1.2")[7:-1]}">{resources}</resources>')


def _ended(chance: Random, content: str) -> bytes:
    """Return a file in one of several encodings, with one of two kinds of line ends."""
    content = content.replace("\n", chance.choice(["\n", "\n", "\r\n"]))
    if content.startswith("<?xml") and chance.random() < 0.2:
        return content.replace("UTF-8", "UTF-16", 1).encode("utf-16")
    return content.encode("utf-8-sig" if chance.random() < 0.2 else "utf-8")
