"""Why a translation is what it is, in a real browser: explanations, their test of faithfulness, and saved ones."""

import numpy as np
from playwright.sync_api import expect

from translucid.api.translator import Translator
from translucid.inspection.explain import explain
from translucid.inspection.explain.case import Case
from translucid.inspection.explain.faithfulness import why_record
from translucid.inspection.saving import save

from .test_page import made_by_code, saved, type_in, watched
from .test_page_seeing import GIVEN, RIBBONS, TEXT, address, page, seen  # noqa: F401


def test_an_explanation_is_of_the_same_words_and_has_its_test_beside_it(page):  # noqa: F811
    type_in(page, TEXT)
    asked = []
    page.on("request", lambda request: asked.append(request.url) if request.url.endswith("/look") else None)
    page.get_by_role("tab", name="Why").click()
    expect(page.locator(".measure")).to_have_count(4)
    assert len(asked) == 1
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
    assert len(asked) == 4


def test_of_two_explanations_the_one_that_is_chosen_last_is_shown(page):  # noqa: F811
    type_in(page, TEXT)
    page.get_by_role("tab", name="Why").click()
    expect(page.locator(".measure")).to_have_count(4)
    held = []
    page.route("**/look", lambda route: held.append(route))
    page.get_by_label("method").select_option("gradients")
    page.get_by_label("method").select_option("erasure")
    expect(page.locator(".faithfulness")).to_have_text("…")
    while len(held) < 2:
        page.wait_for_timeout(20)
    held[1].continue_()
    expect(page.locator(".measure")).to_have_count(4)
    shown = page.inner_text(".faithfulness")
    with page.expect_response("**/look"):
        held[0].continue_()
    page.wait_for_timeout(100)
    assert page.inner_text(".faithfulness") == shown


def test_one_asks_why_a_word_is_there_and_not_another(page, run, tmp_path, monkeypatch):  # noqa: F811
    type_in(page, TEXT)
    page.get_by_role("tab", name="Why").click()
    expect(page.locator(".measure")).to_have_count(4)
    plain = page.inner_text(".faithfulness")
    own = page.locator("#attention .below .word").first.inner_text()
    page.locator("#attention .below .word").first.press("Enter")
    expect(page.get_by_label("word to explain")).to_have_value("0")
    with page.expect_response("**/look") as asked:
        page.locator(".suggestions button").first.click()
    found = asked.value.json()["sentences"][0]["explanation"]
    expect(page.locator(".suggestions [aria-pressed=true]")).to_have_text(found["contrast"]["instead_of"])
    expect(page.locator("#attention .details .note")).to_contain_text("times as probable as")
    expect(page.locator(".faithfulness")).to_contain_text("log-odds of the two words")
    expect(page.locator(".description")).to_contain_text(f"{own} ", use_inner_text=True)
    drawn = {t for t, _, _ in page.locator(".ribbon").evaluate_all(RIBBONS)}
    assert drawn == {0}
    monkeypatch.chdir(tmp_path)
    assert saved(page)["JSON"] and [file[:4] for file in made_by_code(page, "runs/tiny", run)] == [b"%PDF"]
    page.get_by_label("another word").fill("gato")
    page.get_by_label("another word").press("Enter")
    expect(page.locator("#attention .details .note")).to_contain_text("gato")
    page.get_by_label("another word").fill(own)
    page.get_by_role("button", name="Why not?").click()
    expect(page.locator("#problem")).to_contain_text("is the word itself")
    page.get_by_label("word to explain").select_option("all words")
    expect(page.locator(".faithfulness")).to_have_text(plain, use_inner_text=True)
    expect(page.get_by_label("another word")).to_be_hidden()


def test_explanations_that_are_saved_along_are_shown(context, run, seen, tmp_path):  # noqa: F811
    translator = Translator.load(run)
    case = Case(translator.model, translator.pipeline, TEXT, GIVEN)
    save([seen], tmp_path / "a.html", TEXT, GIVEN, details=[{"explanations": {"erasure": why_record(case, "erasure")}}])
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
