"""The page with a memory and terms: improved translations and retrieved words are used at once; the editor's hints."""

import re

import pytest
from playwright.sync_api import expect

from bitext.memory.translation_memory import TranslationMemory
from bitext.pair import Pair
from translucid.terminology.glossary import Term

from .test_clients import serving
from .test_page import watched
from .test_page_documents import choose, texts


@pytest.fixture(scope="module")
def address(run, tmp_path_factory):
    """The address of a server with a memory that grows, from which it retrieves, and a term."""
    file = tmp_path_factory.mktemp("memory") / "mine.memory"
    with TranslationMemory.open(file, write=True) as memory:
        memory.add([Pair("I like soccer a lot.", "Me encanta el fútbol.")], "Ana")
        memory.add([Pair("Children drink cold milk.", "Los niños beben leche.")], "Ana")
    terms = [Term("music", "música")]
    terms.append(Term("bank", "banco", domain="finance", example="She went to the bank to open an account."))
    terms.append(Term("bank", "orilla", domain="geography", example="They fished on the bank of the river."))
    with serving(str(run), memory=file, terms=terms, knn=True) as server_url:
        yield server_url


@pytest.fixture
def page(context, address):
    with watched(context, address) as opened:
        opened.wait_for_selector("body.ready")
        yield opened


def test_improved_translations_are_shown_from_then_on(page):
    page.fill("#source", "You sing. They sing.")
    expect(page.locator("#translation")).not_to_be_empty()
    expect(page.locator("#translation-origin")).to_be_hidden()
    page.get_by_role("button", name="Improve").click()
    page.get_by_label("a better translation").fill("Cantas. Ellos cantan.")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("#translation")).to_have_text("Cantas. Ellos cantan.")
    expect(page.locator("#translation-origin")).to_have_text("From the translation memory")
    expect(page.locator("#translation .from-memory")).to_have_text("Cantas. Ellos cantan.")
    page.fill("#source", "We sing.")
    expect(page.locator("#translation-origin")).to_be_hidden()
    page.fill("#source", "You sing. They sing.")
    expect(page.locator("#translation")).to_have_text("Cantas. Ellos cantan.")
    words = page.locator("#attention .below .word")
    expect(words).to_have_text(["Cantas.", "Ellos", "cantan.", "</s>"])  # the views show it like any other translation
    page.fill("#source", "I like soccer a lot. We sing.")
    expect(page.locator("#translation-origin")).to_have_text("Partly from the translation memory")
    expect(page.locator("#translation .from-memory")).to_have_text("Me encanta el fútbol.")


def test_lines_are_stored_line_by_line(page):
    page.fill("#source", "We sing\nYou sing")
    expect(page.locator("#translation")).not_to_be_empty()
    page.get_by_role("button", name="Improve").click()
    page.get_by_label("a better translation").fill("Cantamos\nCantas")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("#translation .from-memory")).to_have_text(["Cantamos", "Cantas"])
    assert page.inner_text("#translation") == "Cantamos\nCantas"


def test_the_reason_for_a_refused_suggestion_is_shown_beside_it(page):
    page.route("**/suggest", lambda route: route.fulfill(status=400, json={"error": "Invalid request: no"}))
    page.fill("#source", "They sing")
    expect(page.locator("#translation")).not_to_be_empty()
    page.get_by_role("button", name="Improve").click()
    page.get_by_label("a better translation").fill("Cantan")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("#suggestion-form .problem")).to_have_text("No.")
    expect(page.get_by_label("a better translation")).to_have_value("Cantan")


def test_the_keys_that_translate_elsewhere_save_an_improved_translation(page):
    page.fill("#source", "We sing a song")
    expect(page.locator("#translation")).not_to_be_empty()
    page.get_by_role("button", name="Improve").click()
    page.get_by_label("a better translation").fill("Cantamos una canción")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#suggestion-form")).to_have_count(0)
    expect(page.locator("#translation")).to_have_text("Cantamos una canción")
    expect(page.locator("#translation-origin")).to_have_text("From the translation memory")


def test_a_form_with_edits_stays_open_and_belongs_to_its_text(page):
    page.fill("#source", "I sing a song")
    expect(page.locator("#translation")).not_to_be_empty()
    page.get_by_role("button", name="Improve").click()
    page.fill("#source", "You sing a song")
    expect(page.locator("#suggestion-form")).to_have_count(0)  # it had no edits
    expect(page.locator("#translation")).not_to_be_empty()
    page.get_by_role("button", name="Improve").click()
    better = page.locator("#suggestion-text")
    better.fill("Cantas una canción")
    better.press("Escape")
    expect(page.locator("#suggestion-form .problem")).to_contain_text("not saved")
    for act in (
        lambda: page.fill("#source", "They sing a song"),
        lambda: page.locator("#source").press("Control+Enter"),
        lambda: page.locator("#clear").click(),
    ):
        with page.expect_event("requestfinished", lambda request: request.url.endswith("/look")):
            act()
            page.fill("#source", "We like soccer")
        expect(better).to_have_value("Cantas una canción")
    expect(page.locator("#suggestion-subject")).to_have_text("You sing a song")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("#suggestion-form")).to_have_count(0)
    page.fill("#source", "You sing a song")
    expect(page.locator("#translation")).to_have_text("Cantas una canción")


def test_a_segment_shows_similar_entries_and_its_terms(page):
    requests = []
    page.on("request", lambda request: requests.append(request.url) if request.url.endswith("/hints") else None)
    choose(page, "I like soccer a little.\nI like music.\n")
    assert requests == []  # hints are only requested for the segment with the focus
    page.locator("#segments textarea").first.focus()
    hint = page.locator("#segments .hints button").first
    expect(hint).to_have_text("80\u00a0% Me encanta el fútbol.")
    assert "little here, lot there" in hint.get_attribute("title") and "Ana" in hint.get_attribute("title")
    hint.click()
    assert texts(page)[0] == "Me encanta el fútbol."
    expect(page.locator("#segments textarea").first).to_be_focused()
    page.locator("#segments textarea").nth(1).focus()
    expect(page.locator("#segments .hints button")).to_have_text(["music → música"])
    page.locator("#segments textarea").first.focus()
    expect(page.locator("#segments .hints button")).to_have_count(1)
    assert len(requests) == 2  # once per segment
    page.evaluate("localStorage.clear()")


def test_a_word_shows_the_entry_that_decided_it_which_can_be_changed_and_deleted(page):
    page.fill("#source", "Children drink warm milk.")
    words, dialog = page.locator("#translation .retrieved"), page.locator("#memory-dialog")
    expect(words.first).to_have_text("Los")
    expect(page.locator("#retrieved-note")).to_be_visible()
    assert words.first.get_attribute("title").endswith(" from “Children drink cold milk.” → “Los niños beben leche.”")
    translation = page.inner_text("#translation")
    words.first.press("Enter")
    expect(dialog).to_contain_text("“Los” has")
    expect(page.locator("#memory-share")).to_contain_text("% of its probability from this entry. The model alone would")
    expect(page.locator("#memory-source")).to_have_text("Children drink cold milk.")
    expect(page.locator("#memory-target")).to_have_value("Los niños beben leche.")
    expect(page.locator("#memory-origin")).to_contain_text("Ana, 20")
    page.keyboard.press("Escape")
    expect(words.first).to_be_focused()
    page.keyboard.press("Space")
    expect(page.locator("#delete-entry")).to_be_visible()
    page.locator("#memory-target").fill("Nos gusta la música.")
    page.keyboard.press("Control+Enter")
    expect(dialog).to_be_hidden()
    expect(page.locator("#translation")).to_contain_text("Nos gusta")
    expect(page.locator("#output")).to_be_focused()
    words.first.click()
    expect(page.locator("#delete-entry")).to_be_visible()  # `press` doesn't wait for it: the key would go to the dialog
    page.locator("#delete-entry").press("Enter")
    expect(page.locator("#keep-entry")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#delete-entry")).to_be_focused()
    page.keyboard.press("Enter")
    page.locator("#confirm-delete-entry").press("Enter")
    expect(words).to_have_count(0)
    expect(page.locator("#retrieved-note")).to_be_hidden()
    assert page.inner_text("#translation") not in ("", translation)


def test_an_entry_that_is_gone_cant_be_changed(page):
    entry = {"source": "We sing.", "target": "Cantamos."}

    def look(route):
        answer = route.fetch().json()
        (sentence,) = answer["sentences"]
        word = sentence["text"].split()[0]
        sentence["retrieved"] = [{"word": word, "position": 0, "share": 0.06, "changed": False, **entry}]
        route.fulfill(json=answer)

    page.route("**/look", look)
    error = {"error": "The memory has no such entry"}  # with 404, which the browser would report
    page.route("**/memory/entry", lambda route: route.fulfill(status=400, json=error))
    page.fill("#source", "We sing today")
    page.locator("#translation .retrieved").click()
    expect(page.locator("#memory-problem")).to_have_text("The memory has no such entry.")
    expect(page.locator("#memory-share")).to_contain_text(
        "6 % of its probability from this entry. The model alone prefers"
    )
    expect(page.locator("#memory-target")).to_have_value("Cantamos.")
    expect(page.locator("#memory-target")).to_have_attribute("readonly", "")
    expect(page.locator("#memory-buttons")).to_be_hidden()


def test_an_accepted_segment_changes_the_next_one_which_shows_the_entry(page):
    choose(page, "Dogs sleep every night.\nDogs sleep every day.\n")
    first, second = page.locator("#segments textarea").all()
    first.fill("Los perros duermen siempre.")
    first.press("Enter")
    expect(second).to_be_focused()
    expect(second).to_have_value(re.compile("^Los perros"))
    entry = page.locator("#segments .entries button")
    assert entry.get_attribute("title").endswith("“Dogs sleep every night.” → “Los perros duermen siempre.”")
    entry.press("Enter")
    expect(page.locator("#memory-target")).to_have_value("Los perros duermen siempre.")
    page.locator("#delete-entry").click()
    page.locator("#confirm-delete-entry").click()
    expect(entry).to_have_count(0)
    expect(second).to_be_focused()
    page.evaluate("localStorage.clear()")


def test_the_page_says_when_the_model_has_learned_from_corrections(page):
    adapters = [
        None,
        {"number": 1, "when": "2026-01-15T09:30:00Z"},
        {"number": 1, "when": "2026-01-15T09:30:00Z"},
        None,
    ]

    def look(route):
        answer = route.fetch().json()
        route.fulfill(json=answer | {"adapter": adapters.pop(0)})

    page.route("**/look", look)
    note, learned = page.locator("#adapter-note"), "The model has learned from corrections (2026-01-15 09:30 UTC)."
    for text, expected in (
        ("We", ""),
        ("They", f"New: {learned}"),
        ("You", learned),
        ("I", "New: The model has forgotten"),
    ):
        page.fill("#source", text)
        expect(page.locator("#attention .above .word").first).to_have_text(text)
        expect(note).to_contain_text(expected) if expected else expect(note).to_be_hidden()
    expect(note).to_have_text("New: The model has forgotten what it learned from corrections.")


def test_another_sense_of_a_term_is_chosen_for_a_segment(page):
    choose(page, "They sit on the bank.\n")
    before = texts(page)
    page.locator("#segments textarea").focus()
    menu = page.get_by_label("sense of “bank”")
    expect(menu.locator("option")).to_have_text(["banco (finance)", "orilla (geography)"])
    expect(page.locator("#segments .hints .hint")).to_contain_text("“bank” as")
    chosen = menu.input_value()
    (other,) = {"banco", "orilla"} - {chosen}
    menu.select_option(other)
    expect(page.locator("#editor-notice")).to_contain_text(f"bank as {other}")
    expect(page.locator("#segments textarea")).to_have_value(re.compile(other))
    page.locator("#segments textarea").focus()
    page.keyboard.press("Control+z")
    expect(page.locator("#segments textarea")).to_have_value(before[0])
    page.locator("#show-texts").click()
    page.fill("#source", "They sit on the bank.")
    expect(page.locator("#sense-note")).to_contain_text(f"“bank” as {chosen}")
    page.evaluate("localStorage.clear()")
