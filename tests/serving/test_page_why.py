"""Explanations in a real browser: their importance, their faithfulness, contrasts, and saved pages."""

import numpy as np
from playwright.sync_api import expect

from translucid.api.translator import Translator
from translucid.inspection.explain import Case, explain, explanation_record
from translucid.inspection.rendering.saving import save

from .test_page import made_by_code, saved, type_in, watched
from .test_page_seeing import GIVEN, RIBBONS, TEXT, address, inspected, page  # noqa: F401


def test_an_explanation_has_the_same_words_and_shows_its_faithfulness(page):  # noqa: F811
    type_in(page, TEXT)
    requests = []
    page.on("request", lambda request: requests.append(request.url) if request.url.endswith("/look") else None)
    page.get_by_role("tab", name="Why").click()
    expect(page.locator(".measure")).to_have_count(4)
    assert len(requests) == 1
    assert page.locator("#attention .above .word").all_inner_texts() == ["I", "like", "soccer", "</s>"]
    assert "nats" in page.inner_text(".faithfulness")
    page.route("**/look", lambda route: route.fulfill(status=400, json={"error": "no"}))
    page.get_by_label("method").select_option("gradients")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".measure")).to_have_count(0)
    page.unroute("**/look")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".measure")).to_have_count(4)
    expect(page.get_by_role("button", name="Try again")).to_have_count(0)
    assert len(requests) == 4


def test_of_two_requested_explanations_the_last_is_shown(page):  # noqa: F811
    type_in(page, TEXT)
    page.get_by_role("tab", name="Why").click()
    expect(page.locator(".measure")).to_have_count(4)
    routes = []
    page.route("**/look", lambda route: routes.append(route))
    page.get_by_label("method").select_option("gradients")
    page.get_by_label("method").select_option("erasure")
    expect(page.locator(".faithfulness")).to_have_text("…")
    while len(routes) < 2:
        page.wait_for_timeout(20)
    routes[1].continue_()
    expect(page.locator(".measure")).to_have_count(4)
    shown = page.inner_text(".faithfulness")
    with page.expect_response("**/look"):
        routes[0].continue_()
    page.wait_for_timeout(100)
    assert page.inner_text(".faithfulness") == shown


def test_a_word_is_contrasted_with_another(page, run, tmp_path, monkeypatch):  # noqa: F811
    type_in(page, TEXT)
    page.get_by_role("tab", name="Why").click()
    expect(page.locator(".measure")).to_have_count(4)
    plain = page.inner_text(".faithfulness")
    first_word = page.locator("#attention .below .word").first.inner_text()
    page.locator("#attention .below .word").first.press("Enter")
    expect(page.get_by_label("word to explain")).to_have_value("0")
    with page.expect_response("**/look") as requests:
        page.locator(".suggestions button").first.click()
    found = requests.value.json()["sentences"][0]["explanation"]
    expect(page.locator(".suggestions [aria-pressed=true]")).to_have_text(found["contrast"]["instead_of"])
    expect(page.locator("#attention .details .note")).to_contain_text("times as probable as")
    expect(page.locator(".faithfulness")).to_contain_text("log-odds of the two words")
    expect(page.locator(".description")).to_contain_text(f"{first_word} ", use_inner_text=True)
    drawn = {t for t, _, _ in page.locator(".ribbon").evaluate_all(RIBBONS)}
    assert drawn == {0}
    monkeypatch.chdir(tmp_path)
    assert saved(page, ("SVG", "JSON")) and [file[:4] for file in made_by_code(page, "runs/tiny", run)] == [b"%PDF"]
    page.get_by_label("another word").fill("gato")
    page.get_by_label("another word").press("Enter")
    expect(page.locator("#attention .details .note")).to_contain_text("gato")
    page.get_by_label("another word").fill(first_word)
    page.get_by_role("button", name="Why not?").click()
    expect(page.locator("#problem")).to_contain_text("is the word itself")
    page.get_by_label("word to explain").select_option("all words")
    expect(page.locator(".faithfulness")).to_have_text(plain, use_inner_text=True)
    expect(page.get_by_label("another word")).to_be_hidden()


def test_saved_explanations_are_shown(context, run, inspected, tmp_path):  # noqa: F811
    translator = Translator.load(run)
    case = Case(translator.model, translator.pipeline, TEXT, GIVEN)
    save(
        [inspected],
        tmp_path / "a.html",
        TEXT,
        GIVEN,
        details=[{"explanations": {"erasure": explanation_record(case, "erasure")}}],
    )
    why = explain(case, "erasure").importance.numpy()
    with watched(context, f"file://{tmp_path}/a.html") as page:  # noqa: F811
        page.get_by_role("tab", name="Why").click()
        expect(page.locator(".measure")).to_have_count(4)
        expect(page.get_by_label("method").locator("option")).to_have_count(1)
        expect(page.get_by_label("word to explain")).to_have_count(0)
        found = np.zeros_like(why)
        for t, s, weight in page.locator(".ribbon").evaluate_all(RIBBONS):
            found[t, s] = weight
        shares = np.abs(why) / np.abs(why).max()
        np.testing.assert_allclose(found, np.where(shares >= 0.02, shares, 0), atol=2e-3)
