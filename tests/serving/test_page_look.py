"""The layout of the page: no text is cut off, nothing moves, selections are visible, and the lessons are linked."""

import json

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.probes.fonts import set_in_a_wide_font

from .test_clients import serving
from .test_page import fresh

PHONE = {"width": 390, "height": 844}
CUT = """(id) => { // returns by how many pixels the text of a select element is wider than the element
  const shown = document.getElementById(id), free = shown.cloneNode(true);
  free.value = shown.value;
  Object.assign(free.style, { position: "absolute", maxWidth: "none" });
  shown.after(free);
  const cut = free.offsetWidth - shown.offsetWidth;
  free.remove();
  return cut;
}"""
MARKED = """() => [...document.querySelectorAll("nav button:not([hidden])")]
  .map((one) => getComputedStyle(one).backgroundColor)"""

FILLS = """([faithfulness, random]) => import("./explanations.js").then(({ showFaithfulness }) => {
  const root = document.createElement("div");
  root.className = "inspector";
  document.body.append(root);
  showFaithfulness(root, { faithfulness, random });
  const parts = [...root.querySelectorAll(".bar-fill")].map((fill) => {
    const [own, room] = [fill, fill.parentElement].map((one) => one.getBoundingClientRect());
    return [(own.left - room.left) / room.width, (own.right - room.left) / room.width];
  });
  return { parts, lines: root.querySelectorAll(".zero-line").length, text: root.innerText };
})"""  # where bars begin and end, as shares of their track


@pytest.fixture(scope="module")
def address(run):
    """The address of a server with two source languages, so that it offers language detection."""
    with serving(str(run), f"pt-es={run}") as server_url:
        yield server_url


@pytest.fixture
def page(context, address):
    with fresh(context) as new_page:
        new_page.set_viewport_size(PHONE)
        new_page.goto(address)
        new_page.wait_for_selector("body.ready")
        yield new_page


def test_a_detected_language_is_readable_on_a_phone(page):

    def look(route):
        answer = route.fetch().json() | {"source": "pt", "detectedLanguage": {"language": "pt", "confidence": 90}}
        route.fulfill(json=answer)

    set_in_a_wide_font(page)
    page.route("**/look", look)
    page.select_option("#from", "auto")
    assert page.evaluate(CUT, "from") <= 0
    page.fill("#source", "Você canta")
    expect(page.locator("#from option:checked")).to_have_text("Portuguese (detected)")
    assert page.evaluate(CUT, "from") <= 0
    for width in (360, 320):
        page.set_viewport_size({"width": width, "height": 600})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(CUT, "from") <= 0


def test_the_chosen_section_is_marked_with_forced_colors(page):
    page.emulate_media(forced_colors="active")
    for chosen in (0, 1):
        page.locator("nav button").nth(chosen).click()
        colors = page.evaluate(MARKED)
        assert colors.count(colors[chosen]) == 1


def test_sections_do_not_move_and_the_chosen_one_stays_marked_under_the_mouse(page):
    page.set_viewport_size({"width": 1200, "height": 800})
    position = lambda: page.locator("#show-documents").bounding_box()  # noqa: E731
    shadow = lambda: page.locator("#show-documents").evaluate("(one) => getComputedStyle(one).boxShadow")  # noqa: E731
    before = position()
    page.locator("#show-documents").click()
    under = shadow()
    page.mouse.move(0, 0)
    assert shadow() == under
    assert position() == before


def test_an_error_is_a_sentence(page):
    page.route("**/look", lambda route: route.fulfill(status=400, json={"error": "Invalid request: missing text (q)"}))
    page.fill("#source", "You sing")
    expect(page.locator("#problem")).to_have_text("Missing text.")


def test_a_tree_on_a_phone_starts_at_its_root_and_unknown_characters_are_named(page):

    def look(route):  # fixes the translation, as the barely trained model writes words of a hundred pieces
        route.continue_(post_data=json.dumps(route.request.post_data_json | {"translations": ["Me gusta"]}))

    page.route("**/look", look)
    page.emulate_media(reduced_motion="reduce")
    page.fill("#source", "She reads 足球 in the park")
    unknown = page.get_by_role("button", name="unknown characters")
    expect(unknown).to_have_text("足球")
    unknown.focus()
    expect(page.locator("#inspection .description").first).to_contain_text("足球 (unknown characters)")
    page.get_by_role("tab", name="Steps").click()
    expect(page.locator(".tree .node").first).to_be_visible()
    left = "() => document.querySelector('.beam .scroll').scrollLeft"
    assert page.evaluate(left) == 0
    page.get_by_label("decoding step").press("End")
    assert page.evaluate(left) > 0


def test_equation_code_picture_and_controls_of_a_lesson_are_two_clicks_away(page):
    page.get_by_role("link", name="sixteen lessons").click()
    expect(page.get_by_role("link", name="Queries, keys and values")).to_be_visible()
    assert Axe().run(page).response["violations"] == []
    page.get_by_role("link", name="Queries, keys and values").click()
    for part in ("math", "pre", "#figure .memory", "#figure input[type=range]"):
        expect(page.locator(part).first).to_be_visible()
    page.get_by_role("link", name="Back to the models").click()
    expect(page.locator("#source")).to_be_visible()


def test_without_lessons_there_is_no_link_to_them(page):
    settings = page.evaluate("fetch('frontend/settings').then(answer => answer.json())")
    page.route("**/frontend/settings", lambda route: route.fulfill(json=settings | {"lessons": False}))
    page.reload()
    page.wait_for_selector("body.ready")
    expect(page.get_by_role("link", name="API")).to_be_visible()
    expect(page.get_by_role("link", name="sixteen lessons")).to_have_count(0)


def test_a_word_of_the_other_direction_is_isolated(page):
    isolated = "(words) => import('./elements.js').then(({ isolateText }) => words.map(isolateText))"
    assert page.evaluate(isolated, ["park", "حديقة"]) == ["park", "\u2068حديقة\u2069"]


def test_bars_of_negative_values_are_on_the_other_side_of_zero(page):
    measures = ("comprehensiveness", "sufficiency")
    given = [dict(zip(measures, values, strict=True)) for values in ((3, -1), (0.5, 0))]
    shown = page.evaluate(FILLS, given)
    assert shown["parts"] == [
        pytest.approx(span, abs=0.01) for span in ([0.25, 1], [0.25, 0.375], [0, 0.25], [0.25, 0.25])
    ]
    assert shown["lines"] == 4 and "Below zero" in shown["text"] and "−1.00 nats" in shown["text"]
    given[0]["sufficiency"] = 1.5
    shown = page.evaluate(FILLS, given)
    assert shown["parts"] == [pytest.approx(span, abs=0.01) for span in ([0, 1], [0, 1 / 6], [0, 0.5], [0, 0])]
    assert shown["lines"] == 0 and "Below zero" not in shown["text"]
