"""The lens view, which shows what each layer predicts: on the server's page, in saved pages and in notebooks."""

from playwright.sync_api import expect

from translucid.api.translator import Translator
from translucid.inspection.rendering.saving import save

from .test_page import type_in, watched
from .test_page_seeing import GIVEN, TEXT, address, inspected, page  # noqa: F401

MARKED = """buttons => buttons.map((one, i) => (one.classList.contains("marked") ? i : -1)).filter(i => i >= 0)"""


def test_each_cell_is_the_prediction_of_a_layer(page, run):  # noqa: F811
    (lens,) = Translator.load(run, engine="torch").inspector.lens(TEXT, GIVEN)
    type_in(page, TEXT)
    page.get_by_role("tab", name="Layers").click()
    cells = page.locator("#attention .heatmap button")
    expect(cells).to_have_count(3 * len(lens.words))
    assert cells.all_inner_texts() == [top for word in lens.words for top in word.top]
    framed = [3 * i + word.decided for i, word in enumerate(lens.words) if word.decided is not None]
    assert cells.evaluate_all(MARKED) == framed
    cells.first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    word = lens.words[1]
    description = page.inner_text("#attention .panel .description")
    assert description.startswith(f"{word.word}, layer 0: predicts “{word.top[1]}”")
    assert f"has rank {word.ranks[1]}" in description
    assert page.locator("#attention .below .word.active").all_inner_texts() == [word.word]


def test_a_saved_page_shows_the_layers(context, run, inspected, tmp_path):  # noqa: F811
    translator = Translator.load(run, engine="torch")
    details = translator.inspector.page_details(TEXT, GIVEN)
    save([inspected], tmp_path / "a.html", TEXT, GIVEN, details=[details])
    with watched(context, f"file://{tmp_path}/a.html") as page:  # noqa: F811
        page.get_by_role("tab", name="Layers").click()
        expect(page.locator(".heatmap button")).to_have_count(3 * len(details["layers"]["words"]))
        translations = page.locator(".translations td")
        expect(translations).to_have_text(translator.inspector.decoder_lens(TEXT).translations, use_inner_text=True)
        page.get_by_role("tab", name="Heads").click()
        expect(page.locator(".thumbnail").first).to_be_visible()
        expect(page.get_by_role("switch")).to_have_count(0)  # a saved page has no model, so heads have no switches


def test_a_notebook_has_layers_and_contributions(context, run, tmp_path):
    translation = Translator.load(run).translate(TEXT)
    (tmp_path / "a.html").write_text(f"<meta charset='utf-8'>{translation._repr_html_()}", encoding="utf-8")
    with watched(context, f"file://{tmp_path}/a.html") as page:  # noqa: F811
        page.get_by_label("what ribbons show").select_option("contributions")
        expect(page.locator(".prefix .word").first).to_be_visible()
        page.get_by_role("tab", name="Layers").click()
        expect(page.locator(".heatmap button").first).to_be_visible()
