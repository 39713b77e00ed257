"""Markdown syntax in detail: segments and output."""

from dataclasses import replace

import pytest

from bitext.documents.document import Target, read_document
from bitext.documents.tagged_text import TaggedText
from tests.documents.changing import ENGLISH_SPANISH, all_changed, placed_and_filled


def read_and_fill(text, name="a.md"):
    return placed_and_filled(name, text)


@pytest.mark.parametrize(
    ("text", "lines", "after"),
    [
        # Blocks.
        (
            "# One #\n\n## Two {#id}\n\nThree\n===\n\nFour | x\n---\n",
            "1: One|3: Two|5: Three|8: Four ¦ x",
            "# ONE #\n\n## TWO {#id}\n\nTHREE\n===\n\nFOUR \\| X\n---\n",
        ),
        (
            "1. one\n2) two\n   more\n\n   - three\n     > four\n     > five\n",
            "1: one|2: two more|5: three|6: four five",
            "1. ONE\n2) TWO MORE\n\n   - THREE\n     > FOUR FIVE\n",
        ),
        ("> One\ntwo\n", "1: One two", "> ONE TWO\n"),
        ("One\n- two\n", "1: One|2: two", "ONE\n- TWO\n"),
        ("One\r\ntwo\r\n\r\nthree\r\n", "1: One two|4: three", "ONE TWO\r\n\r\nTHREE\r\n"),
        ("One\rtwo\r\rthree\r", "1: One two|4: three", "ONE TWO\r\rTHREE\r"),
        ("    code\n\nOne\n", "3: One", None),
        ("<div>\nno\n</div>\n\nOne\n", "5: One", None),
        ("a\0b c\n", "1: a\ufffdb c", "A\ufffdB C\n"),
        # Cells.
        (
            "| a | b \\| c |\n|:--|--:|\n| `x` y | [l](u 't') |\n| | w |\n| w | w |\n",
            "1: a|1: b ¦ c|3: `x` y|3: l|3, title: t|4: w|5: w|5: w",
            "| A | B \\| C |\n|:--|--:|\n| `x` Y | [L](u 'T') |\n| | W |\n| W | W |\n",
        ),
        ("| a | a |\n|-|-|\n| a | a a |\n", "1: a|1: a|3: a|3: a a", None),
        ("| One\n| two\n\n| a | b |\n|---|---|\n| c | d |\n", "1: One|2: two|4: a|4: b|6: c|6: d", None),
        ("| One |\n| two\n", "1: ¦ One ¦|2: two", "| ONE |\n| TWO\n"),
        # Front matter.
        ("---\nt: no\n---\nOne\n", "4: One", None),
        ("--- \nt: no\n...\nOne\n", "4: One", None),
        ("+++\nno\n+++\nOne\n", "4: One", None),
        ("+++\nno\n---\nOne\n", "1: +++ no|4: One", "+++ NO\n---\nONE\n"),
        ("---\nOne\n", "2: One", None),
        ("---\nOne\n+++\n", "2: One +++", "---\nONE +++\n"),
        # Formulas, comments and modules.
        ("$$\nno\n$$\nOne\n\n$$ no $$\ntwo\n", "4: One|7: two", None),
        ("\\[\nno\n\\]\nOne\n", "4: One", None),
        ("\\begin{a}\nno\n\\end{a}\nOne\n", "4: One", None),
        ("{/*\nno\n*/}\nOne\n", "4: One", None),
        ("%%\nno\n%%\nOne\n", "4: One", None),
        ("$$ one\n\n\\begin{a} two\n\n$$ three\n", "", None),
        ("import {\n a\n} from 'b'\n\nOne\n", "5: One", None),
        ("export const a = {\n\n b: 1,\n}\n\nOne\n", "6: One", None),
        ("export const a = {\n\nOne\n\ntwo\n", "3: One|5: two", None),
        ("export let a = 1;\nno\n", "", None),
        ("import the goods.\n", "1: import the goods.", None),
        ("import the goods from 'here'\nexport x;\nexport y\n", "3: export y", None),
        # Lines of documentation tools.
        (
            "[TOC]\n{toc}\n@[toc]\n[[_TOC_]]\n{{< x >}}\n{{% y %}}\n(a)=\n%% c\n\\newpage\n::: x\n/// y\n-8<-\nOne\n",
            "13: One",
            None,
        ),
        ("Term\n: One\n: two\n\n*[A]: three\n", "1: Term|2: One|3: two|5: three", None),
        ("Term\n\n: One\n\n    two\n", "1: Term|3: One|5: two", None),
        (": One\n", "1: : One", None),
        ("/// note | One\ntwo\n///\n", "1: One|2: two", None),
        (
            ":::note[One [x](y)]\ntwo\n:::\n::: warning Three\n:::\n",
            "1: One [x](y)|2: two|4: Three",
            ":::note[ONE [X](y)]\nTWO\n:::\n::: warning THREE\n:::\n",
        ),
        # Fenced code.
        ("~~~\nno\n~~~~\nOne\n", "4: One", None),
        ("```a`b\nOne\n", "1: ```a`b One", "\\`\\`\\`A\\`B ONE\n"),
        ("````\nno\n```\nno\n````\nOne\n", "6: One", None),
        ("```\nno\n``` x\nno\n```\nOne\n", "6: One", None),
        ("```\nno\n    ```\nno\n```\nOne\n", "6: One", None),
        ("```\nno\n   ```\nOne\n", "4: One", None),
        ("- ```\n  no\n  ```\n  One\n", "4: One", None),
        ("> ```\n> no\n\nOne\n", "4: One", None),
        ("```\n$$\n!!! no\n    no\n```\nOne\n", "6: One", None),
        # Admonitions and tabs.
        (
            '!!! note "A *b*" \n    One\n\n    ```\n    no\n    ```\n\n    two\n??? x\n    three\n',
            "1: A *b*|2: One|8: two|10: three",
            '!!! note "A *B*" \n    ONE\n\n    ```\n    no\n    ```\n\n    TWO\n??? x\n    THREE\n',
        ),
        ('=== "A"\n    One\n=== "B"\n    two\n', "1: A|2: One|3: B|4: two", None),
        ("!!! a\n\tOne\n\n\ttwo\n\nthree\n", "2: One|4: two|6: three", None),
        ('- !!! a "T"\n      One\n  two\n', "1: T|2: One|3: two", None),
        ("!!! a\n    One\ntwo\n", "2: One|3: two", None),
        ("!!! a\n    !!! b\n        One\n    two\nthree\n", "3: One|4: two|5: three", None),
        ("!!! a\n   One\n", "2: One", None),
        ('!!! a "It \\"is\\""\n    One\n', '1: It "is"|2: One', '!!! a "IT ”IS”"\n    ONE\n'),
        ("===\nOne\n", "1: === One", "=== ONE\n"),
    ],
)
def test_blocks(text, lines, after):
    segments, filled = read_and_fill(text)
    assert segments == [line.replace("¦", "|") for line in lines.split("|") if line]
    expected = text
    for line in segments if after is None else ():
        word = line.partition(": ")[2]
        expected = expected.replace(word, word.upper())
    assert filled == (after or expected)


KEPT = (
    "a `code` **b *c*** ~~d~~ ~x~ ^y^ ~2~ ^-1^ ==m n== ^^o p^^ :smile: [^1] [[Wiki]] [[w|words]] ![[img]] ++ctrl+c++ j"
)
KEPT_AFTER = (
    KEPT.replace("[[w|words", "[[w|WORDS").replace("b *c", "B *C").replace("o p^", "O P^").replace("m n=", "M N=")
)
KEPT_AFTER = "A" + KEPT_AFTER.replace("~~d", "~~D")[1:-1] + "J"
MORE_KEPT = (
    r"a #tag {{ x }} {role}`y` \(z\) $e$ \cite{f} %%g%% <b>h</b> <br/><!-- i --> {:.k} {% l %} {a.b} {c ? d : e} j"
)
MORE_KEPT_AFTER = "A" + MORE_KEPT[1:-1].replace("<b>h", "<b>H") + "J"


@pytest.mark.parametrize(
    ("text", "lines", "after"),
    [
        # Links and images, with titles over lines and references.
        (
            'A [link *x*](<a b> "Title \\"q\\"") [ref][r] [r] [r][] ![alt ![in](x "deep")](i.png (paren \\( t)) <https://x.y>'
            " https://a.b/_c_.\n\n[r]: http://x 'no'\n",
            [
                '1: A [link *x*](<a b> "Title \\"q\\"") [ref][r] [r][r] [r][r] '
                '![alt ![in](x "deep")](i.png (paren \\( t))'
                " <https://x.y> https://a.b/_c_.",
                '1, title: Title "q"',
                "1, image: alt",
                "1, title: paren ( t",
            ],
            'A [LINK *X*](<a b> "TITLE \\"Q\\"") [REF][r] [R][r] [R][r] ![ALT ![in](x "deep")](i.png (PAREN \\( T)) <https://x.y>'
            " https://a.b/_c_.\n\n[r]: http://x 'no'\n",
        ),
        ("![r] ![one][r] ![two](u)\n\n[r]: x\n", ["1, image: two"], "![r] ![one][r] ![TWO](u)\n\n[r]: x\n"),
        ("[x](y 'One')\n", ["1: x", "1, title: One"], "[X](y 'ONE')\n"),
        ("One [x](y\n'two') three\n", ["1: One [x](y 'two') three", "2, title: two"], "ONE [X](y\n'TWO') THREE\n"),
        ("[a]: b\n[a]\n", ["2: [a][a]"], "[a]: b\n[A][a]\n"),
        ("A [b\nc] d\n\n[b c]: e\n", ["1: A [b c][b c] d"], "A [B C][b c] D\n\n[b c]: e\n"),
        # All kept constructs, and all constructs whose words are translated.
        (KEPT + "\n", [f"1: {KEPT}"], KEPT_AFTER + "\n"),
        (MORE_KEPT.replace("<br/>", "<br/> ") + "\n", [f"1: {MORE_KEPT}"], MORE_KEPT_AFTER + "\n"),
        (
            "a b#c x:y: 5^2 a~b = == == ~ ~ $5 and $6 {x y} [[a]](b) [x]\n",
            ["1: a b#c x:y: 5^2 a~b = == == ~ ~ $5 and $6 {x y} [[a]](b) [x]"],
            "A B#C X:Y: 5^2 A~B = == == ~ ~ $5 AND $6 {X Y} [\\[A\\]](b) \\[X\\]\n",
        ),
        (
            "One &copy; &amp; &#65; &nbsp;x \\* \\a &nosuch y\n",
            ["1: One © & A \xa0x * \\a &nosuch y"],
            "ONE © & A &nbsp;X * \\A &NOSUCH Y\n",
        ),
        (
            "One\ntwo  \nthree\\\nfour <br> five\n",
            ["1: One two   \nthree \\\nfour <br>five"],
            "ONE TWO   \nTHREE \\\nFOUR <br>FIVE\n",
        ),
        (
            "> [!NOTE] One\n> two\n\n- [ ] three\n- [x] four\n- [y] five\n",
            ["1: One two", "4: three", "5: four", "6: [y] five"],
            "> [!NOTE] ONE TWO\n\n- [ ] THREE\n- [x] FOUR\n- \\[Y\\] FIVE\n",
        ),
        ("*a*b **c** _d_ a_b_c 2*3*4\n", ["1: *a*b **c** _d_ a_b_c 2*3*4"], "*A*B **C** _D_ A_B_C 2*3*4\n"),
        (
            "<b>One</b> <i class='x'>two</i> <Tab a={b}>three</Tab> <X y='z'/>.\n",
            ["1: <b>One</b> <i class='x'>two</i> <Tab a={b}>three</Tab> <X y='z'/>."],
            "<b>ONE</b> <i class='x'>TWO</i> <Tab a={b}>THREE</Tab> <X y='z'/>.\n",
        ),
        ("x {a} y\n", ["1: x {a} y"], "X {a} Y\n"),
        # Footnotes.
        (
            "A note[^1].\n\n[^1]: One\n    two\n\n    three\n\n[^2]: four five\n[^ab]: six\n",
            ["1: A note[^1].", "3: One two", "6: three", "8: four five", "9: six"],
            "A NOTE[^1].\n\n[^1]: ONE TWO\n\n    THREE\n\n[^2]: FOUR FIVE\n[^ab]: SIX\n",
        ),
    ],
)
def test_constructs_in_a_paragraph(text, lines, after):
    assert read_and_fill(text) == (lines, after)


def test_mdx():
    text = "import a from 'b'\n\nOne {a} <B c={d} /> {`${e}`} two\n\nexport const x = 1\nno\n\n{/* no */}\n"
    assert read_and_fill(text, "a.mdx") == (
        ["3: One {a} <B c={d} /> {`${e}`} two"],
        text.replace("One", "ONE").replace("two", "TWO"),
    )
    text = "exported goods\n\nimport\n\nexport{a}\n\nimport'x'\n"
    assert read_and_fill(text, "a.MDX") == (
        ["1: exported goods", "3: import"],
        text.replace("exported goods", "EXPORTED GOODS").replace("import\n", "IMPORT\n"),
    )
    document = read_document("a.mdx", b"One\n", ENGLISH_SPANISH)
    assert document.filled({0: Target(TaggedText("a < b {c} \\{"))}) == b"a \\< b \\{c} \\\\{\n"


@pytest.mark.parametrize(
    ("translation", "after"),
    [
        ("http://a.b_*[c", "http://a.b_*[c\n"),
        ("https://a.b<b>", "https://a.b\\<b>\n"),
        ("http://a.b`c`", "http://a.b\\`c\\`\n"),
        ("http:/a_b_ *c*", "http:/a_b\\_ \\*c\\*\n"),
        ("a < b <c </d <!e <?f <1", "a < b \\<c \\</d \\<!e \\<?f <1\n"),
        ("&amp; &#1; & &x y;", "&amp;amp; &amp;#1; & &x y;\n"),
        ("a * b *c d* _e f_ g_h ~ ~~", "a * b \\*c d\\* \\_e f\\_ g_h ~ \\~~\n"),
        ("\\a \\* b\\", "\\a \\\\\\* b\\\\\n"),
        ("12. a", "12\\. a\n"),
        ("1234567890. a", "1234567890. a\n"),
        ("1.a", "1.a\n"),
        ("  - a", "\\- a\n"),
        ("-a", "-a\n"),
        ("#a", "#a\n"),
        ("####### a", "####### a\n"),
        ("###### a", "\\###### a\n"),
        ("#", "\\#\n"),
        ("- - -", "\\- - -\n"),
        ("~ a", "\\~ a\n"),
        (": a", "\\: a\n"),
        ("::: a", "\\::: a\n"),
        ("/// a", "\\/// a\n"),
        ("??? a", "\\??? a\n"),
        ("=== a", "\\=== a\n"),
        ("$$ a", "\\$$ a\n"),
        ("%% a", "\\%% a\n"),
        (">a", "\\>a\n"),
    ],
)
def test_words_that_would_be_markup_are_escaped(translation, after):
    document = read_document("a.md", b"One\n", ENGLISH_SPANISH)
    assert document.filled({0: Target(TaggedText(translation))}).decode() == after


def test_a_marker_at_the_beginning_of_the_source_is_kept():
    for text in ("1986\\. One\n", "\\- One\n", "$5 One\n"):
        document = read_document("a.md", text.encode(), ENGLISH_SPANISH)
        assert document.filled(all_changed(document)).decode() == text.upper()


@pytest.mark.parametrize(
    ("text", "lines", "after"),
    [
        ("One {n > 0 && <b>two</b>} six", "One {n > 0 && <b>two</b>} six|two", "ONE {n > 0 && <b>TWO</b>} SIX"),
        ("{a ? <p>One</p> : <p>two</p>}", "One|two", "{a ? <p>ONE</p> : <p>TWO</p>}"),
        (
            "{x.map(i => (\n  <li key={i}>One <b>two</b> {i}.\n</li>\n))}\n\nsix",
            "One <b>two</b> {i}.|six",
            "{x.map(i => (\n  <li key={i}>ONE <b>TWO</b> {i}.\n</li>\n))}\n\nSIX",
        ),
        (
            "{a && <><p>One<br/>two</p><X>six</X></>}",
            "One <br/>two|six",
            "{a && <><p>ONE <br/>TWO</p><X>SIX</X></>}",
        ),
        ("{f(() => { return <p>One {y && <i>two</i>}</p> })}", None, None),
        ("{a < 3 ? 'one' : \"two\"}", "", None),
        ("{{{{{{{<b>one {}}}}}}</b>", None, None),
        ("{a &&\none", "{a && one", None),
        ("One v{version} or x{n} ab{c}", "One v{version} or x{n} ab{c}", "ONE v{version} OR x{n} AB{c}"),
    ],
)
def test_texts_in_expressions_of_mdx(text, lines, after):
    document = read_document("a.mdx", text.encode(), ENGLISH_SPANISH)
    assert document.filled({}) == text.encode()
    filled = document.filled(all_changed(document)).decode()
    if lines is not None:
        assert "|".join(segment.source.full_text for segment in document.segments) == lines
    assert after is None or filled == after
    special = {}
    for i, segment in enumerate(document.segments):
        marks = tuple(replace(mark, offset=0) for mark in segment.source.marks)
        special[i] = Target(TaggedText("a < {b}", marks))
    if after and text.startswith("{"):
        assert "a &lt; &#123;b&#125;" in document.filled(special).decode()


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("# One two\n\n[x](#one-two) `[y](#one-two)`", "# ONE É\n\n[x](#one-é)"),
        ("[Six](#one-two)\n\nOne `a` two\n===\n\n[no](#one-a-two)", None),
        ("# One two {#one-two}\n\n[x](#one-two)", "[x](#one-two)"),
        (
            '# One two\n# One two\n\n<a href="#one-two-1">x</a>\n\n[y]: #one-two',
            '<a href="#one-é-1">x</a>\n\n[y]: #one-é',
        ),
        ("# One two\n\n```\n[x](#one-two)\n```\n[z](b.md#one-two)", "```\n[x](#one-two)\n```\n[z](b.md#one-two)"),
        ("# One `c` two\n\n[x](#one-c-two)", "[x](#one-c-é)"),
    ],
)
def test_links_follow_the_headings_of_a_file(text, after):
    document = read_document("a.md", text.encode(), ENGLISH_SPANISH)
    targets = {}
    for i, segment in enumerate(document.segments):
        if segment.source.text.lower().startswith("one"):
            targets[i] = Target(
                replace(segment.source, text=segment.source.text.replace("One", "ONE").replace("two", "É"))
            )
    filled = document.filled(targets).decode()
    assert document.filled({}) == text.encode()
    if after:
        assert after in filled
