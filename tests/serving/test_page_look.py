"""How the page looks: nothing is cut off, nothing jumps, what is chosen is seen, and a student finds the lessons."""

import json

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.probes.fonts import FONTS, set_in

from .test_clients import serving
from .test_page import fresh

PHONE = {"width": 390, "height": 844}
CUT = """(id) => { // by how many pixels the text of a selector is longer than what is seen of it
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
})"""  # where bars begin and end, as parts of their rooms


@pytest.fixture(scope="module")
def address(run):
    """Of a server whose language can be detected."""
    with serving(str(run), f"pt-es={run}") as place:
        yield place


@pytest.fixture
def page(context, address):
    with fresh(context) as one:
        one.set_viewport_size(PHONE)
        one.goto(address)
        one.wait_for_selector("body.ready")
        yield one


@pytest.mark.parametrize("font", FONTS)
def test_a_language_that_was_detected_is_read_on_a_phone(page, font):

    def look(route):
        answer = route.fetch().json() | {"source": "pt", "detectedLanguage": {"language": "pt", "confidence": 90}}
        route.fulfill(json=answer)

    set_in(page, font)
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


def test_the_chosen_part_is_marked_in_colours_of_the_system(page):
    page.emulate_media(forced_colors="active")
    for chosen in (0, 1):
        page.locator("nav button").nth(chosen).click()
        colours = page.evaluate(MARKED)
        assert colours.count(colours[chosen]) == 1


def test_parts_stay_where_they_are_and_the_chosen_one_stays_marked_under_the_mouse(page):
    page.set_viewport_size({"width": 1200, "height": 800})
    place = lambda: page.locator("#show-documents").bounding_box()  # noqa: E731
    shadow = lambda: page.locator("#show-documents").evaluate("(one) => getComputedStyle(one).boxShadow")  # noqa: E731
    before = place()
    page.locator("#show-documents").click()
    under = shadow()
    page.mouse.move(0, 0)
    assert shadow() == under
    assert place() == before


def test_an_error_is_a_sentence(page):
    page.route("**/look", lambda route: route.fulfill(status=400, json={"error": "Invalid request: missing text (q)"}))
    page.fill("#source", "You sing")
    expect(page.locator("#problem")).to_have_text("Missing text.")


def test_a_tree_on_a_phone_begins_with_its_root_and_what_is_unknown_says_so(page):

    def look(route):  # the model has learned next to nothing, and writes words of a hundred pieces
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


def test_equation_code_picture_and_knob_are_two_clicks_away(page):
    page.get_by_role("link", name="thirteen lessons").click()
    assert Axe().run(page).response["violations"] == []
    page.get_by_role("link", name="Queries, keys and values").click()
    for part in ("math", "pre", "#figure .memory", "#figure input[type=range]"):
        expect(page.locator(part).first).to_be_visible()
    page.get_by_role("link", name="Back to the models").click()
    expect(page.locator("#source")).to_be_visible()


def test_without_lessons_nothing_leads_to_them(page):
    settings = page.evaluate("fetch('frontend/settings').then(answer => answer.json())")
    page.route("**/frontend/settings", lambda route: route.fulfill(json=settings | {"lessons": False}))
    page.reload()
    page.wait_for_selector("body.ready")
    expect(page.get_by_role("link", name="API")).to_be_visible()
    expect(page.get_by_role("link", name="thirteen lessons")).to_have_count(0)


def test_a_word_that_runs_the_other_way_does_not_turn_the_sentence_around(page):
    isolated = "(words) => import('./elements.js').then(({ isolateText }) => words.map(isolateText))"
    assert page.evaluate(isolated, ["park", "حديقة"]) == ["park", "\u2068حديقة\u2069"]


def test_bars_below_zero_stand_on_its_other_side(page):
    measures = ("comprehensiveness", "sufficiency")
    given = [dict(zip(measures, values, strict=True)) for values in ((3, -1), (0.5, 0))]
    shown = page.evaluate(FILLS, given)
    assert shown["parts"] == [
        pytest.approx(one, abs=0.01) for one in ([0.25, 1], [0.25, 0.375], [0, 0.25], [0.25, 0.25])
    ]
    assert shown["lines"] == 4 and "Below zero" in shown["text"] and "−1.00 nats" in shown["text"]
    given[0]["sufficiency"] = 1.5
    shown = page.evaluate(FILLS, given)
    assert shown["parts"] == [pytest.approx(one, abs=0.01) for one in ([0, 1], [0, 1 / 6], [0, 0.5], [0, 0])]
    assert shown["lines"] == 0 and "Below zero" not in shown["text"]
