"""Accessibility of the lessons in Chromium, opened from files: width, keyboard control, and axe's rules."""

import json
import re

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from axe_playwright_python.sync_playwright import DEFAULT_OPTIONS
from playwright.sync_api import expect

from tests.probes.fonts import set_in_a_wide_font
from tests.probes.pseudo_locale import CODE, english_texts, pseudo_catalog, shown_texts, words_of
from tests.probes.sliders import slide
from translucid.inspection.rendering.message_catalogs import LESSON_TEMPLATE, TEMPLATE
from translucid.lessons.pages import DEMO_PAGE, recorded, save_pages
from translucid.lessons.recording import LESSON

OVER = """(nodes) => nodes.filter((node) => {
  const box = node.querySelector("rect").getBoundingClientRect();
  const texts = [...node.querySelectorAll("text")].map((text) => text.getBoundingClientRect());
  return texts.some(({ left, right }) => left < box.left || right > box.right);
}).length"""  # the number of nodes of a tree that are narrower than their texts


def test_texts_fit_into_the_nodes_of_the_tree(lesson):
    page = lesson("beam")
    set_in_a_wide_font(page)
    page.evaluate("""() => { // a piece as long as in larger vocabularies
      for (const search of lessonRecords.beam.sentences[0].searches) search.nodes[1][1] = "▁extraordinariamente";
    }""")
    slide(page, "beam K", 5)
    assert page.locator(".search-tree .node").evaluate_all(OVER) == 0
    assert page.locator(".search-tree .piece").nth(1).text_content().endswith("…")
    last = page.locator(".search-tree .node").last
    slide(page, "step", int(page.get_by_label("step", exact=True).get_attribute("max")))
    visible_box, node_box = page.locator(".figure-content .scroll").bounding_box(), last.bounding_box()
    # The last step is scrolled into view.
    assert node_box["x"] + node_box["width"] <= visible_box["x"] + visible_box["width"]


def test_controls_work_by_keyboard_alone(lesson):
    """The Tab key moves to the controls, and arrow keys change them."""
    page = lesson("memory")
    before = page.locator(".memory .score").all_inner_texts()
    page.get_by_label("Sentence").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    assert page.locator(".memory .score").all_inner_texts() != before
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    assert page.get_by_label("sharpness").input_value() == "1.25"


def test_questions_check_themselves_and_are_remembered(context, saved):
    page = context.new_page()
    for name, opens in (("masks", True), ("features", False)):
        page.goto(f"{saved.as_uri()}/{name}.html")
        page.locator(".choices li:not([data-right]) button").first.press("Enter")
        assert page.locator(".result").inner_text().startswith("No.")
        assert not page.locator(".question details").evaluate("(details) => details.open")
        page.locator(".choices [data-right] button").press("Enter")
        assert page.locator(".result").inner_text() == "Right."
        assert page.locator(".question details").evaluate("(details) => details.open") == opens
    page.goto(f"{saved.as_uri()}/index.html")
    marked = [link.split()[0] for link in page.locator(".lessons a").all_inner_texts() if "✓ answered" in link]
    assert marked == ["Masks", "What"]
    page.evaluate("localStorage.setItem('translucid-lessons', '{')")
    page.reload()
    assert not page.get_by_text("✓ answered").count()
    page.close()


COLORS = {"runOnly": ["color-contrast"]}
OTHERS = {"rules": {"color-contrast": {"enabled": False}}}
COLORED = ("index", "alignment", "masks", "heads", "beam", "layers", "ablation", "features", "circuit")
"""Lessons that together contain every kind of element; the color rules are tested on them in both schemes."""


def test_no_content_is_wider_than_the_page_and_axe_finds_nothing(context, saved):
    page = context.new_page()
    out, violations = [], {}
    for file in sorted(saved.glob("*.html")):
        page.emulate_media(color_scheme="light")
        page.goto(file.as_uri())
        page.set_viewport_size({"width": 390, "height": 800})
        # A keyboard cannot scroll an equation.
        equations = page.locator(".equation")
        if equations.evaluate_all("(nodes) => nodes.some((node) => node.scrollWidth > node.clientWidth)"):
            out.append((file.name, "equation"))
        set_in_a_wide_font(page)
        for width in (360, 1000):
            page.set_viewport_size({"width": width, "height": 800})
            if page.evaluate("document.documentElement.scrollWidth") > width:
                out.append((file.name, width))
        if file.name == DEMO_PAGE:  # tests/interop/test_web.py tests its rules
            continue
        page.evaluate("document.querySelectorAll('details').forEach((details) => { details.open = true; })")
        # Hundreds of similar cells would only slow axe down.
        page.evaluate("document.querySelectorAll('.strip rect').forEach((cell) => cell.remove())")
        page.evaluate(AXE_SCRIPT)
        is_colored = file.stem in COLORED
        part = "html" if is_colored else "#figure"  # all lessons have the same parts around their figures
        for scheme, rules in [("light", {}), ("dark", COLORS)] if is_colored else [("light", OTHERS)]:
            page.emulate_media(color_scheme=scheme)
            for violation in page.evaluate("(all) => axe.run(...all)", [part, DEFAULT_OPTIONS | rules])["violations"]:
                violations[file.stem, scheme, violation["id"]] = violation["nodes"][0]["target"]
    page.close()
    assert not out
    assert not violations


NAMES_IN_FIGURES = {"clean", "other", "bleu", "alti", "log", "exp", "tanh", "sin", "cos", "max", "logit", "lang"}
NAMES_IN_FIGURES |= {"attention", "multihead", "head", "softmax", "argmax", "var", "ffn", "topk"}
"""Words that are the same in every language: functions, and names of figures, runs and measures."""


@pytest.fixture(scope="module")
def translated(tmp_path_factory):
    """The folder of lessons with the packaged records, also in a pseudo-language whose texts are a third longer."""
    folder = tmp_path_factory.mktemp("translated")
    save_pages(folder, {name: recorded(name) for name in LESSON})
    (folder / "languages" / f"{CODE}.js").write_text(pseudo_catalog(TEMPLATE, LESSON_TEMPLATE), encoding="utf-8")
    loader = folder / "language.js"
    loader.write_text(
        loader.read_text(encoding="utf-8").replace("= {", f'= {{"{CODE}": "{CODE}", ', 1), encoding="utf-8"
    )
    return folder


def test_no_text_is_only_english_and_longer_texts_fit_from_right_to_left(context, translated):
    page = context.new_page()
    page.set_viewport_size({"width": 390, "height": 844})
    found = {}
    for name in ("index", *LESSON):
        page.goto(f"{translated.as_uri()}/{name}.html?lang={CODE}")
        assert page.evaluate("[document.documentElement.lang, document.dir]") == [CODE, "rtl"]
        record = [] if name == "index" else json.loads(recorded(name))
        words = {*words_of(record), *NAMES_IN_FIGURES}
        facts = page.locator("[data-fact]").all_text_contents()
        assert all(fact and "undefined" not in fact and "NaN" not in fact for fact in facts), (name, facts)
        if english := english_texts(shown_texts(page), words):
            found[name] = english
        if page.evaluate("document.documentElement.scrollWidth") > 390:
            found[name, "is wider than 390 pixels"] = ""
    page.close()
    assert found == {}, "\n".join(map(str, found.items()))


def test_the_language_is_that_of_the_browser_or_of_a_link_that_other_lessons_keep(context, translated):
    page = context.browser.new_page(locale="es-MX")
    page.goto(f"{translated.as_uri()}/heads.html")
    expect(page.locator("h1")).to_have_text("Cabezas")
    assert page.title() == "Cabezas · Translucid"
    assert re.search(r"\d,\d \%", page.locator(".ablation-table").inner_text())
    page.goto(f"{translated.as_uri()}/masks.html?lang=de#head=1")
    page.wait_for_selector("#figure[data-ready]")
    assert page.evaluate("document.documentElement.lang") == "de"
    expect(page.get_by_role("group").locator("[value='1']:checked").last).to_be_attached()  # links mean the same
    page.set_viewport_size({"width": 390, "height": 844})
    for name in ("ablation", "features", "masks"):
        page.goto(f"{translated.as_uri()}/{name}.html?lang=de")
        page.wait_for_selector("#figure[data-ready]")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, name
    page.locator(".pagination a").last.click()
    page.wait_for_url("**/positions.html?lang=de")
    page.locator(".page-language").select_option("fr")
    page.wait_for_selector("html[lang=fr] #figure[data-ready]")
    page.close()
