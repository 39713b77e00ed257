"""The tabs *Features* and *Graph* and the scores of heads on the page, in a real browser."""

import json
import re

import pytest
from playwright.sync_api import expect

from .test_clients import serving
from .test_page import fresh, type_in, watched
from .test_page_seeing import FOREIGN, GIVEN, TEXT

EDGES = "paths => paths.filter((path) => path.classList.contains('on')).length"


@pytest.fixture(scope="module")
def address(run_with_features):
    with serving(str(run_with_features)) as server_url:
        yield server_url


def with_translation(page):
    """Show the translation GIVEN for TEXT, because the model is barely trained."""

    def look(route):
        fields = {**route.request.post_data_json, "translations": [GIVEN]}
        route.continue_(post_data=json.dumps(fields))

    page.route("**/look", look)


@pytest.fixture
def page(context, address):
    with watched(context, address, allowed=("data:", "blob:")) as opened:
        with_translation(opened)
        yield opened


def test_a_feature_has_a_card_and_a_slider(page):
    type_in(page, TEXT)
    page.get_by_role("tab", name="Features").click()
    first = page.locator("#inspection .features button").first
    first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    chosen = page.locator("#inspection .features button").nth(1)
    expect(chosen).to_have_attribute("aria-pressed", "true")
    name = chosen.get_attribute("aria-label").split()[0]
    expect(page.locator(".feature-details h3")).to_have_text(name)
    expect(page.locator(".feature-details .contexts li").first).to_contain_text(re.compile(r"^\d+\.\d\d"))
    assert page.evaluate(FOREIGN) == []
    sent = []
    page.on("request", lambda request: sent.append(request.post_data_json) if "steer" in request.url else None)
    page.route("**/features/steer", lambda route: route.fulfill(json={"text": "Me gusta la música"}))
    slider = page.get_by_label("Strength")
    slider.press("End")
    changed = page.locator(".feature-details .translations tr").last
    expect(changed.locator("mark")).to_have_text(["la", "música"])
    expect(changed.locator("th")).to_have_text("3 ×")
    assert sent[-1]["features"] == [f"{name}=3x"] and sent[-1]["q"] == TEXT
    slider.press("Home")
    expect(changed.locator("th")).to_have_text("off")
    slider.fill("1")
    expect(changed).to_have_text(f"unchanged{GIVEN}", use_inner_text=False)


def test_a_graph_is_followed_ablated_and_linked_to(page, context, address):
    type_in(page, TEXT)
    waiting = []
    page.route("**/graph_tab.js", lambda route: waiting.append(route))
    with page.expect_request("**/graph_tab.js"):
        page.get_by_role("tab", name="Graph").click()
    page.locator("#inspection .below .word").nth(2).click()  # before the tab's module is there
    page.wait_for_timeout(100)
    waiting[0].continue_()
    graph = page.locator("#inspection .graph")
    expect(graph.locator("[data-node=logit]")).to_contain_text("el")
    expect(page.get_by_label("word to explain")).to_have_value("2")
    expect(page.locator("#inspection .continuations")).to_be_empty()
    node = graph.locator(".node.feature").last
    node.press("Enter")
    assert page.locator("#inspection .graph .edge").evaluate_all(EDGES) > 0
    name = node.get_attribute("aria-label").split()[0]
    expect(page.locator("#inspection .details h3").first).to_contain_text(name)
    page.get_by_role("button", name="Ablate it here").click()
    expect(page.locator("#inspection .graph-view")).to_contain_text("the logit changes")
    page.get_by_role("button", name="Card").click()
    expect(page.locator("#inspection .contexts")).to_be_visible()
    assert page.evaluate(FOREIGN) == []
    page.get_by_label("another word").fill("la")
    page.get_by_role("button", name="Why not?").click()
    expect(graph.locator("[data-node=logit]")).to_contain_text("el instead of la")
    graph.locator(".node.feature").last.press("Enter")
    name = graph.locator(".node.feature").last.get_attribute("aria-label").split()[0]
    page.evaluate("navigator.clipboard.writeText = async (text) => { globalThis.copied = text; }")
    page.locator("#copy-link").click()
    page.wait_for_function("globalThis.copied")
    link = page.evaluate("copied")
    with fresh(context) as other:
        with_translation(other)
        other.goto(link)
        expect(other.get_by_role("tab", name="Graph")).to_have_attribute("aria-selected", "true")
        expect(other.locator("#inspection .graph [data-node=logit]")).to_contain_text("el instead of la")
        expect(other.locator("#inspection .details h3").first).to_contain_text(name)
        other.fill("#source", "She sings")
        expect(other).not_to_have_url(re.compile("#"))


def test_a_view_that_can_not_be_loaded_says_so(page):
    page.route("**/graph", lambda route: route.fulfill(status=400, json={"error": "Invalid request: no graph"}))
    type_in(page, TEXT)
    page.get_by_role("tab", name="Graph").click()
    expect(page.locator("#inspection .panel")).to_contain_text("No graph.")
    page.unroute("**/graph")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("#inspection .graph")).to_be_visible()


def test_a_head_says_why_it_looks_there(page):
    type_in(page, TEXT)
    page.get_by_role("tab", name="Heads").click()
    part = page.locator("#inspection .panel section")
    expect(part).to_contain_text("Choose a head")  # the first map is a mean
    sent = []
    page.on("request", lambda request: sent.append(request.post_data_json) if "score" in request.url else None)
    page.get_by_title("layer 1, head 1", exact=True).first.click()
    expect(part.locator(".pairs tr")).to_have_count(12)
    figures = [float(text.replace("\u2212", "-")) for text in part.locator("td.value").all_inner_texts()]
    assert sum(figures[:-1]) == pytest.approx(figures[-1], abs=0.06)  # each is rounded
    signs = part.locator(".bar-fill").evaluate_all("bars => bars.map((bar) => bar.classList.contains('negative'))")
    assert [figure for figure, sign in zip(figures[:-2], signs, strict=True) if (figure < 0) != sign and figure] == []
    part.get_by_role("combobox", name="query").select_option("fútbol")
    part.get_by_role("combobox", name="key").select_option("soccer")
    expect(part).to_contain_text(re.compile("“fútbol” looks at “soccer” with a score of"))
    expect(part.locator(".waiting")).to_have_count(0)  # the text may be that of the first of the two choices
    assert [sent[-1][name] for name in ("head", "query", "key")] == ["decoder.1.cross.head.1", 3, 2]
    part.locator(".pairs button").first.press("Enter")
    expect(part.locator(".feature-details")).to_contain_text(re.compile("active"))
    part.get_by_role("combobox", name="key").select_option("like")
    expect(part).to_contain_text(re.compile("“fútbol” looks at “like” with a score of"))
    expect(part.locator(".feature-details")).to_contain_text(re.compile("active"))  # the card stays
    assert page.evaluate(FOREIGN) == []
    page.get_by_title("decoder, layer 0, head 0", exact=True).click()
    part.get_by_role("combobox", name="query").select_option("Me")
    assert part.get_by_role("combobox", name="key").locator("option").all_inner_texts() == ["<s>"]
    page.get_by_role("switch").first.press("Space")
    expect(part).to_contain_text("with all heads on")
