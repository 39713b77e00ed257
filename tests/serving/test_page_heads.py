"""Ablated heads, through the API and in a real browser: the translation is that of the model without these heads."""

import re

import pytest
from playwright.sync_api import expect

from translucid.api.translator import Translator
from translucid.inspection.inspected import attention_shares
from translucid.serving.routes.inspection_fields import HEADS

from .test_page import type_in
from .test_page_seeing import address, page  # noqa: F401

TEXT = "I like music"
OFF = ["decoder.0.self.head.1", "decoder.1.self.head.0"]
"""Heads to switch off. Without most heads the barely trained model writes the same, but not without the first of these.
"""
ASKED = {"q": TEXT, "source": "en", "target": "es", "maps": "all"}


@pytest.fixture(scope="module")
def translator(run):
    return Translator.load(run, engine="torch")


def test_the_api_translates_without_heads(serve_for_all, translator):
    client = serve_for_all()
    answer = client.post("/look", json={**ASKED, "ablate": OFF}).json()
    without = translator.ablated(*OFF).translate(TEXT)
    assert answer["translation"] == without.text != translator.translate(TEXT).text
    (piece,) = answer["sentences"][0]["pieces"]
    assert piece["maps"][0]["weights"] == pytest.approx(without.inspected[0].words().weights.numpy(), abs=1e-4)
    for wrong in ("x", [3], ["x"], OFF * (HEADS // 2 + 1)):
        assert client.post("/look", json={**ASKED, "ablate": wrong}).status_code == 400


def test_a_head_that_is_switched_off_changes_the_translation(page, translator):  # noqa: F811
    type_in(page, TEXT)
    page.get_by_role("tab", name="Heads").click()
    expect(page.get_by_role("switch")).to_have_count(2 * (1 + 2 + 2))  # maps of means have no switch
    page.get_by_title("layer 1, head 1", exact=True).first.click()
    (inspected,) = translator.inspector.inspect([(TEXT, page.inner_text("#translation"))])
    shares = attention_shares([inspected])
    head, uniform = shares["decoder.1.cross.head.1"], shares["decoder.cross"]
    described = page.locator("#inspection .note").filter(has_text="entropy").inner_text()
    figures = list(map(float, re.findall(r"[\d.]+(?= %| nats|\))", described)))
    expected = [100 * head.ends, 100 * uniform.ends, head.entropy, uniform.entropy]
    assert [figures[0], figures[1], *figures[-2:]] == pytest.approx(expected, abs=0.6)
    first, second = (page.locator(f"[data-head='{head}']") for head in OFF)
    first.press("Space")
    expect(first).to_have_attribute("aria-checked", "false")
    expect(page.locator(".ablation strong")).to_have_text("1 head is off. ")
    expect(first).to_be_focused()  # the element is a new one after the response
    second.press("Enter")
    expect(second).to_have_attribute("aria-checked", "false")
    expect(page.locator(".ablation strong")).to_have_text("2 heads are off. ")
    written = translator.ablated(*OFF).translate(TEXT).text
    expect(page.locator(".ablation td").first).to_have_text(written)
    assert " ".join(page.locator("#attention .below .word").all_inner_texts()[:-1]) == written
    page.get_by_role("tab", name="Steps").click()
    words = page.locator("#attention .below .word")
    assert " ".join(words.all_inner_texts()[:-1]) == page.inner_text("#translation")
    page.get_by_role("tab", name="Heads").click()
    page.get_by_text("As code").click()
    expect(page.locator(".code pre")).to_contain_text('translator.ablated("{}", "{}")'.format(*OFF))
    page.get_by_role("button", name="Switch all on").click()
    expect(page.locator("[aria-checked='false']")).to_have_count(0)
    assert " ".join(words.all_inner_texts()[:-1]) == page.inner_text("#translation")


def test_a_link_leads_to_the_map_that_is_shown(page, address):  # noqa: F811
    stub = "(text) => { globalThis.copied = text; }"
    page.add_init_script(f"Object.defineProperty(navigator, 'clipboard', {{ value: {{ writeText: async {stub} }} }})")

    def follow_link():
        page.locator("#copy-link").click()
        page.wait_for_function("globalThis.copied")
        page.goto(page.evaluate("copied"))
        page.reload()

    page.goto(f"{address}/#text=I+like+music&from=en&to=es&lang=es&tab=heads&map=encoder%2C+layer+0%2C+head+1")
    page.reload()
    chosen = page.get_by_role("button", name="codificador, capa 0, cabeza 1", pressed=True)
    expect(chosen).to_be_visible()
    page.get_by_role("button", name="decodificador, capa 1, cabeza 0", exact=True).click()
    follow_link()
    expect(page.get_by_role("button", name="decodificador, capa 1, cabeza 0", pressed=True)).to_be_visible()
    page.get_by_role("tab", name="Atención").click()
    method, layer = page.get_by_label("qué muestran las cintas"), page.get_by_label("capa y cabeza")
    for value, chosen in (("content", "capa 1, cabeza 0"), ("norms", "normas, capa 1, todas las cabezas")):
        method.select_option(value)
        expect(layer.locator("option", has_text=chosen)).to_be_attached()
        layer.select_option(label=chosen)
        follow_link()
        expect(method).to_have_value(value)
        expect(layer.locator("option:checked")).to_have_text(chosen)


@pytest.mark.parametrize("elsewhere", [f"[data-head='{OFF[1]}']", "#source"])
def test_the_focus_stays_where_the_user_moves_it_before_the_answer(page, elsewhere):  # noqa: F811
    type_in(page, TEXT)
    page.get_by_role("tab", name="Heads").click()
    expect(page.get_by_role("switch").first).to_be_visible()
    held = []
    page.route("**/look", lambda route: held.append(route))
    with page.expect_request("**/look"):
        page.locator(f"[data-head='{OFF[0]}']").press("Space")
    page.locator(elsewhere).focus()
    held[0].continue_()
    expect(page.locator(".ablation strong")).to_have_text("1 head is off. ")
    expect(page.locator(elsewhere)).to_be_focused()
