"""The page in a real browser: type, hover, choose a head, pick another way."""

import shutil
import warnings
from contextlib import contextmanager

import pytest
from playwright.sync_api import expect, sync_playwright

from tests.probes.foreign import many_languages_folder
from translucid.inspection.explain import explanation
from translucid.interop.importing import import_model

from .test_clients import address, serving  # noqa: F401

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


@contextmanager
def watched(browser, place, *, own=("data:",)):
    """Open a page that may report no error and fetch nothing but from its server, and what begins like `own`."""
    opened = browser.new_page()
    problems, requests = [], []
    opened.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on("request", lambda request: requests.append(request.url))
    opened.goto(place)
    yield opened
    assert [one for one in problems if "status of 400" not in one] == []
    assert all(url.startswith((place, *own)) for url in requests), "something came from elsewhere"
    opened.close()


@pytest.fixture
def page(browser, address):  # noqa: F811
    with watched(browser, address) as opened:
        yield opened


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
    expect(page.locator("#translation")).to_have_text(wanted.strip())


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
    expect(page.locator("#status")).to_contain_text("more than 500", timeout=30_000)
    for _ in range(300):
        if page.inner_text("#translation").count("\n") >= 79:
            break
        page.wait_for_timeout(100)
    assert page.inner_text("#translation").count("\n") >= 79
    page.get_by_label("English").fill("x" * 6000)
    expect(page.locator("#problem")).to_contain_text("1,000 characters over the limit of 5,000")


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


def test_a_server_that_is_gone_is_said_and_nothing_old_stays(browser, address):  # noqa: F811
    page = browser.new_page()
    page.goto(address)
    type_in(page, "I like soccer")
    page.get_by_role("button", name="ways to go on at").first.click()
    expect(page.locator("#ways button").first).to_be_visible()
    page.route("**/look", lambda route: route.abort())
    page.get_by_label("English").fill("They are going to the beach")
    expect(page.locator("#problem")).to_contain_text("does not answer")
    for place in ("#translation", "#attention", "#words", "#ways", "#explanation"):
        assert page.inner_text(place).strip() == "", place
    page.unroute("**/look")
    expect(page.locator("#attention .word").first).to_be_visible(timeout=10_000)
    assert page.inner_text("#problem") == ""
    page.route("**/look", lambda route: route.fulfill(status=502, body="<html>bad gateway"))
    page.get_by_label("English").fill("You sing")
    expect(page.locator("#problem")).to_contain_text("does not answer")
    page.close()


def test_a_server_that_is_not_there_yet_is_said(browser, address):  # noqa: F811
    page = browser.new_page()
    page.route("**/models", lambda route: route.abort())
    page.goto(address)
    expect(page.locator("#problem")).to_contain_text("does not answer")
    page.unroute("**/models")
    expect(page.locator("#model option")).to_have_count(1, timeout=10_000)
    assert page.inner_text("#problem") == ""
    page.close()


def test_another_way_is_looked_into_in_every_panel(page):
    type_in(page, "I like soccer. You sing.")
    before = page.inner_text("#translation")
    page.get_by_role("button", name="ways to go on at").first.click()
    expect(page.locator("#ways button").nth(2)).to_be_visible()
    chosen = page.locator("#ways .rest").nth(2).inner_text()
    page.locator("#ways button").nth(2).click()
    expect(page.locator("#translation")).not_to_have_text(before)
    assert page.inner_text("#translation").startswith(chosen)
    assert " ".join(page.locator("#words p").first.inner_text().split()).startswith(chosen)
    shown = page.locator("#attention .words").nth(1).locator(".word").all_inner_texts()
    assert " ".join(shown[:-1]) == chosen
    assert page.inner_text("#ways") == ""


CONTRAST = """() => {
  const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
  const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = (colour) => colour.slice(0, 3).map((v) => linear(v / 255))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const word = document.querySelector("#attention .word");
  const paper = numbers(getComputedStyle(document.querySelector("#attention .attention")).backgroundColor);
  const found = [];
  for (let weight = 0; weight <= 1.001; weight += 0.1) {
    word.style.setProperty("--weight", weight);
    const style = getComputedStyle(word);
    const [r, g, b, a = 1] = numbers(style.backgroundColor);
    const behind = [r, g, b].map((v, i) => a * v + (1 - a) * paper[i]);
    const [one, other] = [light(numbers(style.color)), light(behind)].sort((x, y) => y - x);
    found.push((one + 0.05) / (other + 0.05));
  }
  return found;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_highlighted_word_can_be_read(browser, address, scheme):  # noqa: F811
    page = browser.new_page(color_scheme=scheme)
    page.goto(address)
    type_in(page, "I like soccer")
    assert min(page.evaluate(CONTRAST)) >= 4.5
    page.locator("#search summary").click()
    page.wait_for_selector("#trees img")
    assert ("%2314181f" in page.get_attribute("#trees img", "src")) == (scheme == "dark")
    page.close()


def test_the_hint_is_for_fingers_where_there_are_fingers(browser, address):  # noqa: F811
    context = browser.new_context(has_touch=True, is_mobile=True, viewport={"width": 390, "height": 800})
    page = context.new_page()
    page.goto(address)
    type_in(page, "I like soccer")
    assert "Tap a word" in page.inner_text("#attention .said")
    page.locator("#attention .words").nth(1).locator(".word").first.tap()
    assert "looked at" in page.inner_text("#attention .said")
    context.close()


def test_a_long_text_is_no_error(page):
    page.get_by_label("English").fill("I like soccer. " * 40)
    expect(page.locator("#status")).to_contain_text("not looked into")
    assert page.inner_text("#problem") == ""
    expect(page.locator("#translation")).not_to_be_empty()


def test_sides_have_their_language_and_their_direction(page):
    type_in(page, "I like soccer")
    for place, language in (("#source", "en"), ("#translation", "es"), ("#words p", "es")):
        assert page.get_attribute(place, "lang") == language
        assert page.get_attribute(place, "dir") == "auto"
    assert [page.locator("#attention .words").nth(i).get_attribute("lang") for i in (0, 1)] == ["en", "es"]


def test_what_looks_wrong_is_shown(page):
    type_in(page, "I like 足球")
    assert "unknown characters: 足 球" in page.inner_text("#warnings")


def test_panels_say_whose_they_are_and_methods_are_those_that_are_there(browser, run, monkeypatch):
    known = explanation.find_spec
    monkeypatch.setattr(explanation, "find_spec", lambda name: None if name == "captum" else known(name))
    with serving(str(run), f"en-fr={run}") as place:
        page = browser.new_page()
        page.goto(place)
        expect(page.locator("#method option")).to_have_count(2)
        assert "gradients" not in page.inner_text("#method")
        page.locator("#tucked summary").click()
        page.get_by_label("Compare with").select_option(index=2)
        type_in(page, "I like soccer")
        assert page.inner_text("#attention-of") == "tiny"
        assert page.inner_text("#compared-of") == "tiny 2"
        assert "tiny 2" in page.inner_text("#compared-name")
        assert page.locator("#why .of").inner_text() == "tiny"
        page.close()


def test_the_languages_of_a_model_that_has_many_are_chosen_by_name(browser, run, tmp_path):
    many_languages_folder(tmp_path / "theirs", nllb=True, end=1.0)
    import_model(tmp_path / "theirs", tmp_path / "many")
    with serving(str(tmp_path / "many"), str(run)) as place, watched(browser, place) as page:
        expect(page.locator("#model option")).to_have_text(["many (2 languages → 2 languages)", "tiny (en → es)"])
        assert page.locator("#from option").all_inner_texts() == ["Detect language", "English", "Spanish"]
        page.fill("#source", "I like soccer")
        page.wait_for_selector("#attention .word")
        spanish = page.inner_text("#translation")
        page.select_option("#from", "es")
        expect(page.locator("#source-language")).to_have_text("Spanish")
        expect(page.locator("#target-language")).to_have_text("English")
        expect(page.locator("#translation")).not_to_have_text(spanish)
        page.locator("#tucked summary").click()
        page.select_option("#model", "1")
        expect(page.locator("#source-language")).to_have_text("English")
        expect(page.locator("#target-language")).to_have_text("Spanish")
