"""The page in a real browser: type, hover, choose a head, pick another way."""

import shutil
import warnings

import pytest
from playwright.sync_api import expect, sync_playwright

from .test_clients import address  # noqa: F401

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
if CHROMIUM is None:
    warnings.warn("THE PAGE IS NOT TESTED: no Chromium (apt-get install chromium)", stacklevel=1)
    pytest.skip("no Chromium here", allow_module_level=True)


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as p:
        one = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield one
        one.close()


@pytest.fixture
def page(browser, address):  # noqa: F811
    opened = browser.new_page()
    problems, requests = [], []
    opened.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on("request", lambda request: requests.append(request.url))
    opened.goto(address)
    yield opened
    assert [one for one in problems if "status of 400" not in one] == []
    assert all(url.startswith((address, "data:")) for url in requests), "something came from elsewhere"
    opened.close()


def type_in(page, text):
    page.get_by_label("English").fill(text)
    page.wait_for_selector("#attention .word")


def test_typing_translates(page):
    type_in(page, "I like soccer")
    assert page.inner_text("#translation").strip()
    assert page.locator("#source-language").inner_text() == "English"
    assert page.locator("#target-language").inner_text() == "Spanish"


def test_pointing_at_a_word_lights_up_what_it_looked_at(page):
    type_in(page, "I like soccer")
    lines = page.locator("#attention .words")
    lit = "els => els.filter(e => Number(e.style.getPropertyValue('--weight')) > 0).length"
    assert lines.nth(0).locator(".word").evaluate_all(lit) == 0
    lines.nth(1).locator(".word").first.hover()
    assert lines.nth(0).locator(".word").evaluate_all(lit) > 0
    assert "looked at" in page.inner_text("#attention .said")
    lines.nth(0).locator(".word").first.focus()  # and by keyboard, the other way round
    assert lines.nth(1).locator(".word").evaluate_all(lit) > 0


def test_choosing_a_head_changes_the_map(page):
    type_in(page, "I like soccer")
    page.locator("#attention summary").click()
    cells = "els => els.map(e => e.style.getPropertyValue('--weight')).join()"
    before = page.locator("#attention td").evaluate_all(cells)
    page.get_by_label("layer and head").select_option(label="layer 0, head 1")
    assert page.locator("#attention td").evaluate_all(cells) != before


def test_another_way_to_go_on(page):
    type_in(page, "I like soccer")
    page.locator("#words .word").first.click()
    page.wait_for_selector("#ways button")
    ways = page.locator("#ways button")
    assert ways.count() == 8
    wanted = ways.nth(2).locator(".rest").inner_text()
    ways.nth(2).click()
    assert page.inner_text("#translation").strip() == wanted.strip()


def test_the_beam_search(page):
    type_in(page, "I like soccer")
    page.locator("#search summary").click()
    picture = page.locator("#trees img")
    expect(picture).to_have_count(1, timeout=30_000)
    page.wait_for_function("document.querySelector('#trees img').naturalWidth > 100")
    type_in(page, "I sing")
    expect(page.locator("#trees img")).to_have_count(0)


def test_an_explanation(page):
    type_in(page, "I like soccer")
    page.get_by_role("button", name="Explain").click()
    page.wait_for_selector("#explanation .hint")
    assert "nats" in page.inner_text("#explanation .hint")


def test_long_texts_and_errors_are_told(page):
    page.get_by_label("English").fill("I sing.\n" * 80)
    expect(page.locator("#problem")).to_contain_text("more than 500", timeout=30_000)
    assert page.inner_text("#translation").count("\n") >= 79
    page.get_by_label("English").fill("x" * 6000)
    expect(page.locator("#problem")).to_contain_text("limit of 5000")


def test_it_fits_on_a_phone_and_into_the_dark(page):
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": 360, "height": 740})
    type_in(page, "I like soccer and also going to the beach")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark != "rgb(255, 255, 255)"


def test_the_documentation_needs_no_other_host(browser, address):  # noqa: F811
    page = browser.new_page()
    requests = []
    page.route(
        "**/*",
        lambda route: (
            requests.append(route.request.url)
            or (route.continue_() if route.request.url.startswith((address, "data:")) else route.abort())
        ),
    )
    page.goto(f"{address}/docs")
    expect(page.locator(".opblock-summary-path").first).to_be_visible()
    assert "/translate" in page.inner_text("#docs")
    assert [url for url in requests if not url.startswith((address, "data:"))] == []
    page.close()
