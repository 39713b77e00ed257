"""The tab *Pass* of the page, which computes in the browser with the weights that the server sends."""

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from axe_playwright_python.sync_playwright import DEFAULT_OPTIONS
from playwright.sync_api import expect

from tests.probes.page_states import opened as opened_page
from tests.probes.pass_figure import compare_boxes, points_to_open, wait_until_drawn
from translucid.api.translator import Translator
from translucid.interop.web.export import rounded
from translucid.serving.routes import inspection

from .test_clients import serving
from .test_page import watched

TEXT = "I like soccer"
RESTORED = f"""addEventListener("DOMContentLoaded", () => {{
  for (const one of document.querySelectorAll("#source")) one.value = "{TEXT}";
}});
globalThis.replaced = [];
const replace = history.replaceState.bind(history);
history.replaceState = (...all) => {{ replaced.push(all.at(-1)); replace(...all); }};"""
"""Restores the text as Firefox does when it reloads a page, and notes each change of the page's address."""
FIELDS = {"source": "en", "target": "es"}


@pytest.fixture(scope="module")
def address(run):
    with serving(str(run), share_models=True) as server_url:
        yield server_url


def test_the_numbers_are_those_of_pytorch_and_a_link_opens_them(context, address, run):
    translator = Translator.load(run, "cpu", "torch")
    model, row, head = rounded(translator.model), 1, 1
    opened = ",".join(points_to_open(model, head))
    link = f"#text={TEXT.replace(' ', '+')}&from=en&to=es&tab=pass&step={row}&point={opened}"
    with watched(context, address) as page:
        page.add_init_script(RESTORED)
        page.reload()
        expect(page.locator("#translation")).not_to_be_empty()
        assert page.evaluate("replaced") == []  # a link that is followed while the page is loaded would be lost
        with page.expect_response("**/look") as response:
            opened_page(page, address, link)
        wait_until_drawn(page)
        page.locator("[data-point='source.pieces'] .chip").nth(row).press("Enter")
        wait_until_drawn(page)
        (words,) = response.value.json()["sentences"][0]["pieces"]
        target = [token for word in words["tokens"] for token in word]
        ids = translator.pipeline.encode(TEXT).ids
        compare_boxes(page, model, translator.tokenizer, ids, target, row, head)
        stub = "(text) => { globalThis.copied = text; }"
        page.evaluate(f"Object.defineProperty(navigator, 'clipboard', {{ value: {{ writeText: async {stub} }} }})")

        def link():
            page.evaluate("globalThis.copied = ''")
            page.locator("#copy-link").click()
            page.wait_for_function("globalThis.copied")
            return page.evaluate("Object.fromEntries(new URLSearchParams(new URL(copied).hash.slice(1)))")

        copied = link()
        assert {copied["tab"], copied["step"]} == {"pass", str(row)} and copied["point"] == opened
        page.set_viewport_size({"width": 390, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.evaluate(AXE_SCRIPT)
        assert page.evaluate("(all) => axe.run(...all)", ["#inspection", DEFAULT_OPTIONS])["violations"] == []
        page.get_by_role("tab", name="Attention").click()
        page.get_by_label("layer and head").select_option(label="layer 0, head 1")
        page.get_by_role("tab", name="Steps").click()
        page.get_by_role("slider").press("End")
        copied = link()
        step = page.get_by_role("slider").input_value()
        assert (copied["tab"], copied["map"], copied["step"]) == ("steps", "layer 0, head 1", step)


def test_firefox_computes_the_figure_too(firefox, address):
    firefox.open(f"{address}/#text=I+like+soccer&from=en&to=es&tab=pass&point=decoder.0.cross.head.1")
    firefox.wait("document.querySelector('.pass')?.ariaBusy === 'false'")
    assert firefox.wait("document.querySelectorAll('.pass-box.open .scores tr').length") > 3
    assert firefox.errors == []


def test_weights_are_sent_only_where_they_are_shared_and_can_be_computed_with(client, serve, m2m, monkeypatch):
    assert client.post("/weights", json=FIELDS).status_code == 403
    assert "tabs" not in client.get("/models").json()[0]
    sharing = serve(share_models=True, api_keys={"key": None})
    assert sharing.post("/weights", json=FIELDS).status_code in (400, 401)
    with_key = FIELDS | {"api_key": "key"}
    assert sharing.post("/weights", json=with_key).json()["options"]["kind"] == "transformer"
    many = serve(str(m2m), share_models=True)
    assert "does not run in the browser" in many.post("/weights", json=FIELDS).json()["error"]
    monkeypatch.setattr(inspection, "MAX_SHARED", 1000)
    assert "at most 1,000" in sharing.post("/weights", json=with_key).json()["error"]
