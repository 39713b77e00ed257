"""Accessibility of the page: axe-core's rules and long texts in every state, and use by keyboard alone."""

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from axe_playwright_python.sync_playwright import DEFAULT_OPTIONS, Axe
from playwright.sync_api import expect

from tests.probes.fonts import set_in_a_wide_font
from tests.probes.page_states import opened, states
from tests.probes.pseudo_locale import CODE, english_texts, pseudo_scripts, shown_texts, words_sent
from translucid.serving import app

from .test_clients import serving
from .test_page import fresh
from .test_text_models import models  # noqa: F401

SAME = (
    *("empty", "text", "slow", "busy", "refused", "too-long", "long", "doubtful", "detected", "swapped", "dropping"),
    *("remembered", "documents", "document", "document-wrong", "accepting", "images", "image-steps", "text-models"),
    *("patching-opened", "live-empty"),
)
"""States that are left out to save time, because another state has the same elements in the same places."""
TRANSLATED = (
    *("word", "contributions", "layers", "heads", "steps", "why", "patching", "features", "graph", "live"),
    *("shortcuts", "entry", "key", "unaccepted", "searching", "image", "classification"),
)
"""States with most texts of the page."""
INSIDE = {
    **dict.fromkeys(
        ("contributions", "layers", "heads", "steps", "why", "patching", "features", "graph"), "#inspection"
    ),
    "history": "#history-dialog",
    "shortcuts": "#shortcuts-dialog",
    "entry": "#memory-dialog",
    "unaccepted": "#unaccepted-dialog",
    "image": "#images",
    "live": "#live",
    "classification": "#text-models",
}
"""The part of the page in which a state differs from others; axe examines only this part, if there is one."""
DARK = {"resultTypes": ["violations"], "runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}
"""The rules about colors; all other rules have the same result in the dark scheme."""
WIDE = """() => [...document.querySelectorAll("main *")]
  .filter((part) => part.getBoundingClientRect().left < -1 && !part.closest(".scroll"))
  .map((part) => `${part.tagName} ${part.id} ${part.className} ${part.textContent.slice(0, 60)}`)"""
"""The elements that begin left of the page."""
PHONE = {"width": 390, "height": 844}
NAMED = """() => {
  const one = document.activeElement;
  const style = getComputedStyle(one);
  const seen = style.outlineStyle !== "none" || one.matches("textarea, .file input, #inspection *");
  return [one.id || one.textContent.trim(), seen];
}"""


@pytest.fixture(scope="module")
def address(run_with_features, captioner_run, models):  # noqa: F811
    """The address of a server with models for both directions, a captioner, a classifier and a language model."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(app, "page_scripts", pseudo_scripts)
        patched.setattr(app, "_page", app._page.__wrapped__)  # all other servers of this process share the files
        with serving(str(run_with_features), f"es-en={run_with_features}", str(captioner_run), *models) as server_url:
            yield server_url


@pytest.fixture
def page(context, address):
    with fresh(context) as new_page:
        new_page.emulate_media(reduced_motion="reduce")
        opened(new_page, address)
        yield new_page


def test_axe_finds_nothing_and_longer_texts_fit_from_right_to_left(page, address):
    """Test each state in a pseudo-language whose texts are longer: its texts and its width on a phone, and axe's rules.

    All rules are tested in the light scheme, and those about colors also in the dark one.
    """
    found, seen = {}, set()
    page.set_viewport_size(PHONE)
    with words_sent(page) as words_so_far:
        for state in states(page, address, without=SAME, link=f"?lang={CODE}"):
            seen.add(state.name)
            assert page.evaluate("[document.documentElement.lang, document.dir]") == [CODE, "rtl"]
            if state.name in TRANSLATED:
                if english := english_texts(shown_texts(page), words_so_far()):
                    found[state.name] = english
                if page.evaluate("document.documentElement.scrollWidth") > PHONE["width"]:
                    found[state.name, "too wide"] = page.evaluate(WIDE)
            page.set_viewport_size({"width": 1280, "height": 720})
            page.evaluate(AXE_SCRIPT)
            for scheme, options in (("light", DEFAULT_OPTIONS), ("dark", DARK)):
                page.emulate_media(color_scheme=scheme)
                part = INSIDE.get(state.name, "html")
                for violation in page.evaluate("(all) => axe.run(...all)", [part, options])["violations"]:
                    found[state.name, scheme, violation["id"]] = [
                        node["html"][:200] + node["failureSummary"] for node in violation["nodes"]
                    ]
            page.set_viewport_size(PHONE)
    assert len(seen) == 23 and {*TRANSLATED, *INSIDE, "gone", "compared"} <= seen
    assert found == {}, "\n".join(map(str, found.items()))


def test_the_language_is_that_of_the_browser_of_the_choice_or_of_a_link(context, address):
    page = context.browser.new_page(locale="es-MX")

    def shows(code, translation, title):
        page.wait_for_selector("body.ready")
        assert page.evaluate("[document.documentElement.lang, document.dir]") == [code, "ltr"]
        expect(page.get_by_role("region", name=translation, exact=True)).to_be_visible()
        expect(page.locator("#clear")).to_have_attribute("title", title)
        expect(page.locator(".page-language")).to_have_value(code)

    page.goto(address)
    shows("es", "Español", "Borrar el texto")
    page.locator(".page-language").select_option("de")
    page.wait_for_selector("html[lang=de] body.ready")
    page.reload()
    shows("de", "Spanisch", "Text löschen")
    page.goto(f"{address}/?lang=fr")
    shows("fr", "Espagnol", "Effacer le texte")
    forms = page.evaluate("""async () => {
      const { ngettext } = await import("./messages.js");
      return [0, 1, 2, 1000].map((count) => ngettext("{count} language", "{count} languages", count));
    }""")
    assert forms == ["0 langue", "1 langue", "2 langues", "1\u202f000 langues"]
    page.locator(".page-language").select_option("en")
    page.wait_for_selector("html[lang=en] body.ready")
    assert "lang" not in page.url
    shows("en", "Spanish", "Clear the text")
    page.route("**/languages/fr.js", lambda route: route.abort())  # without its catalog, the page is in English
    page.goto(f"{address}/?lang=fr")
    shows("en", "Spanish", "Clear the text")
    page.close()


def test_axe_detects_a_button_without_a_name(page):
    page.evaluate("() => document.body.append(document.createElement('button'))")
    assert [violation["id"] for violation in Axe().run(page).response["violations"]] == ["button-name"]


def test_every_control_is_reached_by_tab_and_shows_the_focus(page):
    page.fill("#source", "I")
    expect(page.locator("#translation")).not_to_be_empty()
    page.locator("#show-texts").focus()
    reached = []
    while len(reached) < 40:
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement === document.body"):
            break
        name, visible = page.evaluate(NAMED)
        assert visible, f"{name} has the focus and does not look it"
        reached.append(name)
    header = ["show-documents", "show-images", "show-text-models", "show-live", "open-history", "open-shortcuts"]
    assert reached[:9] == [*header, "from", "swap", "Model: tiny"]
    panes = ["source", "clear", "text-file", "output", "copy-translation", "copy-link"]
    assert [name for name in reached if name in panes] == panes


def test_the_focus_is_never_lost(page):
    page.click("#show-documents")
    file = {"name": "a.txt", "mimeType": "text/plain", "buffer": b"You sing 1.\n" * 60}
    page.set_input_files("#document-file", file)
    expect(page.locator("#document-download")).to_be_visible(timeout=30_000)
    expect(page.locator("#segment-range")).to_have_text("1 to 50 of 60")
    page.locator("#next-segments").press("Enter")
    expect(page.locator("#next-segments")).to_be_disabled()
    expect(page.locator("#previous-segments")).to_be_focused()
    page.locator("#delete-document").press("Enter")
    expect(page.locator("#document")).to_be_hidden()
    expect(page.locator("#document-file")).to_be_focused()


def test_another_word_is_chosen_by_keyboard_and_the_focus_stays_there(page, scene):
    page.click("#show-images")
    page.set_input_files("#image-file", {"name": "scene.png", "mimeType": "image/png", "buffer": scene})
    words = page.locator("#caption-inspection .word")
    expect(words.nth(1)).to_be_visible()
    assert words.evaluate_all("all => all.map((one) => one.tabIndex)") == [0] + [-1] * (words.count() - 1)
    words.first.press("ArrowRight")  # the words are a single Tab stop; arrow keys move between them
    expect(words.nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    page.locator("#caption-inspection .continuations button").nth(3).press("Enter")
    expect(page.locator("#caption-inspection .continuations button")).to_have_count(0)
    expect(page.locator("#caption-inspection .word:focus")).to_have_count(1)


def test_the_layout_fits_at_200_percent_and_on_the_narrowest_phone(page, address):
    """At 200 %, a window of 1280 pixels has 640 CSS pixels; WCAG also requires a width of 320."""
    wide = ("text", "document")
    page.set_viewport_size({"width": 320, "height": 480})
    for state in states(page, address, names=(*wide, "models", "entry", "shortcuts", "text-models")):
        set_in_a_wide_font(page)
        for width in (640, 320) if state.name in wide else (320,):
            page.set_viewport_size({"width": width, "height": 480})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (width, state.name)
