"""Activation patching in a real browser: two sentences side by side, and the share that each state carries."""

from playwright.sync_api import expect

from translucid.api.inspector import Inspector
from translucid.api.translator import Translator

from .test_page import made_by_code, saved, type_in
from .test_page_seeing import GIVEN, TEXT, address, page  # noqa: F401

OTHER = "I like music"


def test_each_cell_is_the_share_that_a_state_carries(page, run, tmp_path, monkeypatch):  # noqa: F811
    patching = Translator.load(run, engine="torch").inspector.patch(TEXT, OTHER, ("el", "la"), target=GIVEN)
    type_in(page, TEXT)
    page.get_by_role("tab", name="Patching").click()
    expect(page.locator("#attention .panel")).to_contain_text("No similar sentence")  # for this barely trained model
    assert page.inner_text("#problem") == ""
    page.get_by_label("Another sentence, which").fill(TEXT)
    page.get_by_label("Word of the translation").fill("el")
    page.get_by_label("instead of it").fill("la")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("#attention .panel")).to_contain_text("are the same for both sentences")
    page.get_by_label("Another sentence, which").fill(OTHER)
    page.keyboard.press("Enter")
    expect(page.locator(".sentence-pair mark")).to_have_text(["soccer", "music"])
    shares = [f"{round(100 * share)}" for part in patching.parts for row in part.carried.tolist() for share in row]
    cells = page.locator("#attention .heatmap button").all_inner_texts()
    assert [cell.replace("\u2212", "-") for cell in cells] == shares
    page.get_by_label("Word of the translation").fill("gusta")  # and not compared yet
    page.get_by_role("tab", name="Steps").click()
    page.get_by_role("tab", name="Patching").click()
    expect(page.locator(".sentence-pair")).to_be_visible()
    expect(page.get_by_label("Word of the translation")).to_have_value("gusta")
    saved(page)
    monkeypatch.chdir(tmp_path)
    assert [file[:4] for file in made_by_code(page, "runs/tiny", run)] == [b"%PDF"]


def test_the_tab_opens_with_a_comparison(page, monkeypatch):  # noqa: F811
    monkeypatch.setattr(Inspector, "contrasting_sentence", lambda self, clean, target: OTHER)
    patch = Inspector.patch

    def patch_these_words(self, clean, other, words, *, target):
        return patch(self, clean, other, ("el", "la"), target=target)

    monkeypatch.setattr(Inspector, "patch", patch_these_words)
    type_in(page, TEXT)
    page.get_by_role("tab", name="Patching").click()
    expect(page.locator(".sentence-pair mark")).to_have_text(["soccer", "music"])
    expect(page.get_by_label("Another sentence, which")).to_have_value(OTHER)
    assert page.locator("#attention .heatmap button").count() > 4
    saved(page)
