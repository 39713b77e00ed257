"""The lessons in Chromium, from files: what is too wide, keyboards, and the rules of axe."""

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from axe_playwright_python.sync_playwright import DEFAULT_OPTIONS

from tests.probes.fonts import FONTS, set_in
from tests.probes.sliders import slide
from translucid.lessons.recording import LESSON

OVER = """(nodes) => nodes.filter((node) => {
  const box = node.querySelector("rect").getBoundingClientRect();
  const texts = [...node.querySelectorAll("text")].map((text) => text.getBoundingClientRect());
  return texts.some(({ left, right }) => left < box.left || right > box.right);
}).length"""  # the number of nodes of a tree that are narrower than their texts


@pytest.mark.parametrize("font", FONTS)
def test_what_stands_in_the_boxes_of_the_tree_fits(lesson, font):
    page = lesson("beam")
    set_in(page, font)
    page.evaluate("""() => { // pieces as long as others have them
      for (const search of lessonRecords.beam.sentences[0].searches) search.nodes[1][1] = "▁extraordinariamente";
    }""")
    slide(page, "beam K", 5)
    assert page.locator(".search-tree .node").evaluate_all(OVER) == 0
    assert page.locator(".search-tree .piece").nth(1).text_content().endswith("…")
    last = page.locator(".search-tree .node").last
    slide(page, "step", int(page.get_by_label("step", exact=True).get_attribute("max")))
    shown, whole = page.locator(".figure-content .scroll").bounding_box(), last.bounding_box()
    assert whole["x"] + whole["width"] <= shown["x"] + shown["width"]  # the last step is scrolled into view


def test_by_keyboard_alone(lesson):
    """Tab reaches the choices, the arrows change them."""
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


def test_nothing_stands_out_of_the_page(context, saved):
    page = context.new_page()
    out = []
    for file in sorted(saved.glob("*.html")):
        page.goto(file.as_uri())
        page.set_viewport_size({"width": 390, "height": 800})
        # A keyboard cannot scroll an equation.
        equations = page.locator(".equation")
        if equations.evaluate_all("(nodes) => nodes.some((node) => node.scrollWidth > node.clientWidth)"):
            out.append((file.name, "equation"))
        set_in(page, "wide")
        for width in (1000, 360):
            page.set_viewport_size({"width": width, "height": 800})
            if page.evaluate("document.documentElement.scrollWidth") > width:
                out.append((file.name, width))
    page.close()
    assert not out


COLOURS = {"runOnly": ["color-contrast"]}
OTHERS = {"rules": {"color-contrast": {"enabled": False}}}
COLOURED = ("index", "alignment", "masks", "heads", "beam", "layers", "ablation")
"""The lessons that have every kind of part between them; the rules about colours are tried on them, in the dark too."""


def test_axe_finds_nothing(context, saved):
    page = context.new_page()
    found = {}
    for name in ("index", *LESSON):
        page.emulate_media(color_scheme="light")
        page.goto(f"{saved.as_uri()}/{name}.html")
        page.evaluate("document.querySelectorAll('details').forEach((details) => { details.open = true; })")
        # Hundreds of similar cells would only slow axe down.
        page.evaluate("document.querySelectorAll('.strip rect').forEach((cell) => cell.remove())")
        page.evaluate(AXE_SCRIPT)
        tried = [("light", OTHERS)]
        if name in COLOURED:
            tried = [("light", {}), ("dark", COLOURS)]
        for scheme, rules in tried:
            page.emulate_media(color_scheme=scheme)
            for violation in page.evaluate("(rules) => axe.run(rules)", DEFAULT_OPTIONS | rules)["violations"]:
                found[name, scheme, violation["id"]] = violation["nodes"][0]["target"]
    page.close()
    assert not found
