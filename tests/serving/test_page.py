"""The page in a real browser: typing, languages and errors; test_page_seeing.py tests the views of a translation."""

import json
import re
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.probes.fonts import set_in_a_wide_font
from translucid.inspection import explain as explanation

from .test_clients import address, serving  # noqa: F401


@contextmanager
def fresh(context, **options):
    """Open a page with empty storage; at the end, clear its storage and close it."""
    page = context.new_page(**options)
    try:
        yield page
    finally:
        page.unroute_all(behavior="ignoreErrors")
        page.evaluate("localStorage.clear()")
        page.close()


@contextmanager
def watched(context, server_url, *, allowed=("data:",)):
    """Open a page that must report no error, and fetch only from its server and from URLs that start like `allowed`."""
    with fresh(context) as opened:
        problems, requests = [], []
        opened.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        opened.on("pageerror", lambda error: problems.append(str(error)))
        opened.on("request", lambda request: requests.append(request.url))
        opened.goto(server_url)
        yield opened
        assert [problem for problem in problems if "status of 400" not in problem] == []
        assert all(url.startswith((server_url, *allowed)) for url in requests), "something came from elsewhere"


@pytest.fixture
def page(context, address):  # noqa: F811
    with watched(context, address) as opened:
        yield opened


STARTS = {"PNG": b"\x89PNG", "SVG": b"<svg", "PDF": b"%PDF", "JSON": b"{"}
"""How the files of each format begin in which a view is saved."""


def saved(page, kinds=tuple(STARTS)):
    """Save the view that is open in each format; return the contents of the files by format."""
    expect(page.get_by_role("button", name="save as PDF")).to_be_visible()
    contents = {}
    for kind in kinds:
        with page.expect_download() as download:
            page.get_by_role("button", name=f"save as {kind}").click()
        contents[kind] = download.value.path().read_bytes()
        assert contents[kind].startswith(STARTS[kind]), kind
        assert download.value.suggested_filename.endswith(kind.lower())
    assert json.loads(contents["JSON"])
    return contents


def made_by_code(page, name, run):
    """Run the code that the open view shows, with `run` as its run folder; return the .pdf files that it writes."""
    page.get_by_text("As code").click()
    expect(page.locator(".code pre")).to_contain_text("save_figure")
    code = page.locator(".code pre").inner_text().replace(f'"{name}"', repr(str(run)))
    exec(compile(code, name, "exec"), {})
    return [file.read_bytes() for file in Path.cwd().glob("*.pdf")]


def type_in(page, text):
    page.get_by_label("English").fill(text)
    page.wait_for_selector("#attention .word")


def test_typing_translates_and_sides_have_their_language_and_their_direction(page):
    type_in(page, "I like soccer")
    assert page.inner_text("#translation").strip()
    assert page.locator("#source-language").inner_text() == "English"
    assert page.locator("#target-language").inner_text() == "Spanish"
    for selector, language in (("#source", "en"), ("#translation", "es")):
        assert page.get_attribute(selector, "lang") == language
        assert page.get_attribute(selector, "dir") == "auto"
    assert [page.locator("#attention .line").nth(i).get_attribute("lang") for i in (0, 1)] == ["en", "es"]


def test_long_texts_and_errors_are_reported(page):
    page.get_by_label("English").fill("I sing.\n" * 80)
    expect(page.locator("#status")).to_contain_text("up to 500", timeout=30_000)
    expect(page.locator("#translation")).to_have_text(re.compile(r"(.*\n){79}"), use_inner_text=True)
    assert page.inner_text("#problem") == ""
    page.get_by_label("English").fill("x" * 6000)
    expect(page.locator("#problem")).to_contain_text("1,000 characters over the limit of 5,000")


def test_the_layout_on_a_phone_and_the_dark_scheme(page):
    set_in_a_wide_font(page)
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": 360, "height": 740})
    type_in(page, "I like soccer and also going to the beach")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark != "rgb(255, 255, 255)"


def test_the_documentation_needs_no_other_host(context, address):  # noqa: F811
    with fresh(context) as page:
        requests = []
        page.on("request", lambda request: requests.append(request.url))
        page.goto(f"{address}/docs")
        expect(page.locator(".opblock-summary-path").first).to_be_visible()
        assert "/translate" in page.inner_text("#docs")
        assert [url for url in requests if not url.startswith((address, "data:"))] == []
        backgrounds = []
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            backgrounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        assert backgrounds[0] != backgrounds[1] and "invert" in page.evaluate("getComputedStyle(docs).filter")
        page.locator(".opblock-post").first.click()
        expect(page.locator(".opblock-section-request-body").first).to_contain_text('"q": "I like soccer"')
        page.get_by_role("link", name="Back to the translator").click()
        expect(page.get_by_label("English")).to_be_visible()


def test_an_unreachable_server_is_reported_and_old_results_disappear(context, address):  # noqa: F811
    with fresh(context) as page:
        page.goto(address)
        type_in(page, "I like soccer")
        page.locator("#attention .below .word").first.click()
        expect(page.locator(".continuations button").first).to_be_visible()
        page.route("**/look", lambda route: route.abort())
        page.get_by_label("English").fill("They are going to the beach")
        expect(page.locator("#problem")).to_contain_text("does not respond")
        for selector in ("#translation", "#inspection"):
            assert page.inner_text(selector).strip() == "", selector
        page.unroute("**/look")
        expect(page.locator("#attention .word").first).to_be_visible(timeout=10_000)
        assert page.inner_text("#problem") == ""
        page.route("**/look", lambda route: route.fulfill(status=502, body="<html>bad gateway"))
        page.get_by_label("English").fill("You sing")
        expect(page.locator("#problem")).to_contain_text("does not respond")


def test_a_server_that_is_not_ready_is_reported(context, address):  # noqa: F811
    with fresh(context) as page:
        page.route("**/models", lambda route: route.abort())
        page.goto(address)
        expect(page.locator("#problem")).to_contain_text("does not respond")
        page.unroute("**/models")
        expect(page.locator("#model option")).to_have_count(1, timeout=10_000)
        assert page.inner_text("#problem") == ""


def test_quality_warnings_are_shown(page):
    type_in(page, "I like 足球")
    assert "unknown characters: 足 球" in page.inner_text("#warnings")


def test_panels_name_their_model_and_only_available_methods_are_offered(context, run, monkeypatch):
    find_spec = explanation.find_spec
    monkeypatch.setattr(explanation, "find_spec", lambda name: None if name == "captum" else find_spec(name))
    with serving(str(run), f"en-fr={run}") as server_url, fresh(context) as page:
        page.goto(server_url)
        page.locator("#model-menu summary").click()
        page.get_by_label("Compare with").select_option(index=2)
        type_in(page, "I like soccer")
        assert page.locator("#inspection h3").all_inner_texts() == ["tiny", "tiny 2"]
        assert "tiny 2" in page.inner_text("#compared-heading")
        page.get_by_role("tab", name="Why").first.click()
        expect(page.get_by_label("method").locator("option")).to_have_count(2)
        assert "gradients" not in page.get_by_label("method").inner_text()


def test_the_languages_of_a_model_that_has_many_are_chosen_by_name(context, run, m2m):
    with serving(str(m2m), str(run)) as server_url, watched(context, server_url) as page:
        expect(page.locator("#model option")).to_have_text(["many (2 languages → 2 languages)", "tiny (en → es)"])
        assert page.locator("#from option").all_inner_texts() == ["Detect language", "English", "Spanish"]
        page.fill("#source", "I like soccer")
        page.wait_for_selector("#attention .word")
        spanish = page.inner_text("#translation")
        page.select_option("#from", "es")
        expect(page.locator("#source-language")).to_have_text("Spanish")
        expect(page.locator("#target-language")).to_have_text("English")
        expect(page.locator("#translation")).not_to_have_text(spanish)
        page.locator("#model-menu summary").click()
        page.select_option("#model", "1")
        expect(page.locator("#source-language")).to_have_text("English")
        expect(page.locator("#target-language")).to_have_text("Spanish")


def test_uncertain_words_and_sentences_are_marked(page):
    """Words of low probability and sentences of low confidence are marked; the text of the translation is unchanged."""
    piece = {"source": ["I", "sing", "</s>"], "target": ["Yo", "canto", "canto", "</s>"], "opening": 0, "unknown": []}
    weights = [[0.4, 0.3, 0.3]] * 4
    piece["maps"] = [{"name": "all", "kind": "cross", "layer": None, "head": None, "weights": weights}]
    piece |= {"probabilities": [0.9, 0.9, 0.1, 1], "sizes": [1] * 4, "tokens": [[5], [6], [6], [3]]}
    first = {"source_text": "I sing.", "text": "Yo canto canto.", "pieces": [piece], "origin": "model"}
    first |= {"warnings": ["repetition: canto"], "confidence": 0.9}
    second = first | {"text": "Yo canto canto", "warnings": [], "confidence": 0.35}
    third = first | {"text": "Del archivo", "warnings": [], "confidence": None, "origin": "memory"}
    text = "Yo canto canto.\nYo canto canto Del archivo"
    answer = {"model": "tiny", "translation": text, "sentences": [first, second, third]}
    page.route("**/look", lambda route: route.fulfill(json=answer))
    type_in(page, "I sing.\nI sing I file")
    shown = page.locator("#translation")
    assert shown.evaluate("one => one.textContent") == text
    expect(shown.locator(".unsure")).to_have_text(["canto", "canto"])
    assert shown.locator(".unsure").first.get_attribute("title") == "probability 10 %"
    before = shown.locator(".unsure").first.evaluate("one => one.previousSibling.textContent")
    assert before == "Yo canto "  # the second `canto`, not the first
    expect(shown.locator(".doubtful")).to_have_text(["Yo canto canto.", "Yo canto canto"])
    expect(shown.locator(".from-memory")).to_have_text("Del archivo")
    expect(page.locator("#warnings li")).to_have_text(["repetition: canto", "sentence 2 has a confidence of only 35 %"])
    expect(page.locator("#unsure-note")).to_be_visible()
    page.unroute("**/look")
    page.fill("#source", "")
    expect(page.locator("#unsure-note")).to_be_hidden()
