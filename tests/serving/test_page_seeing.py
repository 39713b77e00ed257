"""The views of a translation in a real browser: ribbons, heads, steps and explanations, and how they are saved."""

import json
import re
from io import BytesIO

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect

from tests.probes.fonts import set_in_a_wide_font
from translucid.api.translator import Translator
from translucid.inspection.rendering.saving import save

from .test_clients import serving
from .test_page import STARTS, fresh, made_by_code, saved, type_in, watched

TEXT, GIVEN = "I like soccer", "Me gusta el fútbol"
RIBBONS = (
    "paths => paths.map(p => [Number(p.dataset.t), Number(p.dataset.s), Number(p.style.getPropertyValue('--weight'))])"
)


@pytest.fixture(scope="module")
def address(run):
    """The address of a server with the same model twice, so that two models can be compared."""
    with serving(str(run), f"en-fr={run}") as server_url:
        yield server_url


@pytest.fixture
def page(context, address):
    """The page; for TEXT it shows the translation GIVEN, because the model is barely trained."""

    def look(route):
        fields = route.request.post_data_json
        if fields["q"] == TEXT:
            fields.setdefault("translations", [GIVEN])
        route.continue_(post_data=json.dumps(fields))

    with watched(context, address, allowed=("data:", "blob:")) as opened:
        opened.route("**/look", look)
        yield opened


@pytest.fixture
def inspected(run):
    """The library's inspection of TEXT with the translation GIVEN."""
    (sentence,) = Translator.load(run).inspector.inspect([(TEXT, GIVEN)])
    return sentence


CONTRAST = """() => {
  const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
  const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = (color) => color.slice(0, 3).map((v) => linear(v / 255))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const word = document.querySelector("#attention .word");
  const paper = numbers(getComputedStyle(document.body).backgroundColor);
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
"""Return the contrast of a word with its highlight, for weights from 0 to 1."""


def test_ribbons_show_the_attention_of_all_words_of_one_and_of_a_head(page, inspected):
    type_in(page, TEXT)
    words = inspected.words()
    assert page.locator("#attention .above .word").all_inner_texts() == words.source
    assert page.locator("#attention .below .word").all_inner_texts() == words.target
    found = np.zeros((len(words.target), len(words.source)))
    for t, s, weight in page.locator("#attention .ribbon").evaluate_all(RIBBONS):
        found[t, s] = weight
    weights = words.weights.numpy()
    np.testing.assert_allclose(found, np.where(weights >= 0.02, weights, 0), atol=6e-4)
    assert page.locator("#attention .ribbon").first.is_visible()
    page.locator("#attention .below .word").first.hover()
    shares = page.locator("#attention .above .share").all_inner_texts()
    for share, weight in zip(shares, words.weights[0].tolist(), strict=True):
        assert share == ("" if weight < 0.01 else f"{round(100 * weight)} %")
    assert {t for t, _, _ in page.locator("#attention .ribbon.highlighted").evaluate_all(RIBBONS)} == {0}
    probability = inspected.word_probabilities()[0][1]
    description = page.inner_text("#attention .description")
    assert "attends to" in description
    probability_shown = re.search(r"probability (< )?(\d+) %", description)
    assert abs(int(probability_shown[2]) - 100 * probability) <= 1
    page.mouse.move(0, 0)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        assert min(page.evaluate(CONTRAST)) >= 4.5, scheme
    page.get_by_text("Table of weights").click()
    before = page.locator("#attention .weight-table td").all_inner_texts()
    page.get_by_label("layer and head").select_option(label="layer 0, head 1")
    assert page.locator("#attention .weight-table td").all_inner_texts() != before


FOREIGN = """() => {
  const sheets = [...document.styleSheets].filter(({ href }) => /(page|sections)\\.css$/.test(href));
  const flat = (rules) => [...rules].flatMap((rule) => (rule.selectorText ? rule : flat(rule.cssRules ?? [])));
  const rules = sheets.flatMap(({ cssRules }) => flat(cssRules));
  const selectors = rules.flatMap(({ selectorText }) => selectorText.split(/,(?![^(]*\\))/));
  const withClass = selectors.map((one) => one.replace(/::\\w+/g, "")).filter((one) => one.includes("."));
  const parts = [...document.querySelectorAll(".inspector *")];
  return withClass.filter((selector) => parts.some((part) => part.matches(selector)));
}"""
"""Return the selectors with a class in the page's style sheets that match a part of the inspector."""


def strongly_colored(gap):
    """Return how many pixels between two lines of words have a strong color, as only highlighted ribbons do."""
    pixels = np.asarray(Image.open(BytesIO(gap.screenshot())).convert("RGB")).astype(int)
    return int((pixels.max(-1) - pixels.min(-1) > 60).sum())


def shown_steps(page):
    page.get_by_role("tab", name="Steps").click()
    page.wait_for_selector(".tree .node")


def shown_contributions(page):
    page.get_by_label("what ribbons show").select_option("contributions")
    page.wait_for_selector("#attention .prefix .word")


def test_the_ribbons_of_a_word_can_be_seen(page):
    """In pixels, by pointer and by keyboard: a style sheet may hide what has the right classes."""
    page.emulate_media(reduced_motion="reduce")
    type_in(page, TEXT)
    word = page.locator("#attention .below .word").nth(1)

    def leave():
        page.mouse.move(0, 0)
        page.evaluate("document.activeElement.blur()")

    for show in (lambda page: None, shown_contributions, shown_steps):
        show(page)
        gap = page.locator("#attention .gap").first
        word.scroll_into_view_if_needed()
        if show is shown_steps:
            page.get_by_label("decoding step").press("End")
        for reach in (word.hover, word.focus):
            leave()
            reach()
            assert strongly_colored(gap) > 400, (show, reach)
        assert gap.bounding_box()["height"] > 50
        assert page.evaluate(FOREIGN) == []
    leave()
    assert strongly_colored(gap) > 400  # those of the current step


def test_a_sentence_is_one_stop_of_the_tab_key_and_arrows_move(page):
    type_in(page, TEXT)
    words = page.locator("#attention .sentence-view .word")
    assert words.evaluate_all("all => all.filter(one => one.tabIndex === 0).length") == 1
    page.locator("#attention .above .word").first.focus()
    focused = "() => document.activeElement.textContent"
    assert page.evaluate(focused) == "I"
    page.keyboard.press("ArrowRight")
    assert page.evaluate(focused) == "like"
    page.keyboard.press("End")
    assert page.evaluate(focused) == "</s>"
    page.keyboard.press("ArrowDown")
    assert page.evaluate("() => document.activeElement.closest('.below') !== null")
    assert words.evaluate_all("all => all.filter(one => one.tabIndex === 0).length") == 1
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    expect(page.locator(".continuations button")).to_have_count(8)


def test_contributions_of_the_source_and_of_the_prefix(page, run):
    (inspected,) = Translator.load(run).inspector.inspect([(TEXT, GIVEN)], contributions=True)
    type_in(page, TEXT)
    page.get_by_label("what ribbons show").select_option("contributions")
    expect(page.locator("#attention .prefix .word")).to_have_text(inspected.prefix_words().source)
    expect(page.get_by_label("what ribbons show")).to_be_focused()
    of_source = inspected.words(inspected.cross(method="contributions")).weights
    for side, weights in (("above", of_source), ("prefix", inspected.prefix_words().weights)):
        found = np.zeros(weights.shape)
        for t, s, weight in page.locator(f"#attention .of-{side} .ribbon").evaluate_all(RIBBONS):
            found[t, s] = weight
        np.testing.assert_allclose(found, np.where(weights.numpy() >= 0.02, weights.numpy(), 0), atol=6e-4)
    parts = [f"{round(100 * part)} %" for part in inspected.source_contributions()]
    assert page.locator("#attention .below .share").all_inner_texts() == parts
    page.locator("#attention .below .word").first.focus()
    page.keyboard.press("ArrowDown")
    assert page.evaluate("() => document.activeElement.closest('.prefix') !== null")
    assert "contributes to" in page.inner_text("#attention .description")
    page.get_by_role("tab", name="Steps").click()
    expect(page.locator("#attention .prefix")).to_have_count(0)
    page.get_by_role("tab", name="Attention").click()
    expect(page.locator("#attention .prefix")).to_have_count(1)
    page.get_by_label("what ribbons show").select_option("norms")
    norms = inspected.words(inspected.cross(method="norms")).weights
    for t, s, weight in page.locator("#attention .ribbon").evaluate_all(RIBBONS):
        assert abs(weight - norms[t, s].item()) < 1e-3
    page.get_by_label("what ribbons show").select_option("content")
    content = inspected.cross_words(method="content")
    expect(page.locator("#attention .above .word")).to_have_text(content.source)
    for t, s, weight in page.locator("#attention .ribbon").evaluate_all(RIBBONS):
        assert abs(weight - content.weights[t, s].item()) < 1e-3
    page.get_by_text("Table of weights").click()
    expect(page.locator("#attention .weight-table thead th")).to_have_text(content.source)


def test_a_chosen_continuation_is_shown_everywhere_and_sentences_are_tabs_of_one_panel(page):
    type_in(page, "I like soccer. You sing.")
    before = page.inner_text("#translation")
    page.locator("#attention .below .word").first.click()
    continuations = page.locator(".continuations button")
    expect(continuations).to_have_count(8)
    text = continuations.nth(2).locator(".rest").inner_text()
    continuations.nth(2).click()
    expect(page.locator("#translation")).not_to_have_text(before)
    assert page.inner_text("#translation").startswith(text)
    expect(page.locator(".continuations button")).to_have_count(0)
    expect(page.locator("#attention .below .word:focus")).to_have_count(1)
    assert " ".join(page.locator("#attention .below .word").all_inner_texts()[:-1]) == text
    assert page.locator("#attention .sentence-view").count() == 1
    tabs = page.get_by_role("tablist", name="sentences").get_by_role("tab")
    expect(tabs).to_have_count(2)
    tabs.nth(0).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert page.locator("#attention .above .word").all_inner_texts() == ["You", "sing.", "</s>"]


def test_heads_are_thumbnails_and_can_be_opened(page, inspected):
    type_in(page, TEXT)
    page.get_by_role("tab", name="Heads").click()
    thumbs = page.locator("#attention .thumbnail")
    # Two maps of all layers; then two heads and their mean for 2 cross-attention layers, on all and on content words, 1
    # encoder and 2 decoder layers.
    expect(thumbs).to_have_count(2 + 3 * (2 + 2 + 1 + 2))
    page.get_by_role("button", name="encoder, layer 0, head 1").click()
    words = inspected.word_map("encoder.0.self", head=1)
    assert page.locator("#attention .below .word").all_inner_texts() == words.source
    weights = words.weights.numpy()
    for t, s, weight in page.locator("#attention .ribbon").evaluate_all(RIBBONS):
        assert abs(weight - weights[t, s]) < 1e-3


def test_the_playback_of_the_search_and_its_tree(page, run):
    type_in(page, TEXT)
    page.get_by_role("tab", name="Steps").click()
    page.wait_for_selector(".tree .node")
    for width, beside in ((700, False), (1280, True)):  # if there is room
        page.set_viewport_size({"width": width, "height": 800})
        film, tree = (page.locator(f"#attention .{name}").bounding_box() for name in ("playback", "beam"))
        assert (film["x"] + film["width"] <= tree["x"]) == beside
        assert (film["y"] + film["height"] <= tree["y"]) != beside
    words = page.locator("#attention .below .word")
    assert page.locator("#attention .below .word.upcoming").count() == words.count() - 1
    grown = "() => document.querySelectorAll('.tree .node:not(.upcoming)').length"
    before = page.evaluate(grown)
    page.get_by_label("decoding step").press("ArrowRight")
    assert page.locator("#attention .below .word.upcoming").count() == words.count() - 2
    assert page.evaluate(grown) > before
    page.get_by_label("decoding step").press("End")
    assert page.locator("#attention .below .word.upcoming").count() == 0
    best = page.locator(".finished .best td").first.inner_text()
    assert best == Translator.load(run, engine="torch").translate(TEXT).text
    # The text above is the given translation.
    expect(page.get_by_text(f"This search finds “{best}”, not the text above.")).to_be_visible()
    slider = page.get_by_label("decoding step")
    slider.press("Home")
    page.get_by_role("button", name="Play").click()
    expect(slider).to_have_value("1", timeout=5000)
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    page.locator(".tree .node[role=button]").first.click()
    expect(page.locator(".continuations button").first).to_be_visible()


def test_a_tree_with_a_narrower_beam_than_the_default_says_so(page):
    tree = {
        "beam": 6,
        "own": 12,
        "best": 1,
        "opening": 0,
        "finished": [{"node": 1, "text": GIVEN, "log_prob": -1, "score": -1}],
    }
    tree["nodes"] = [{"parent": None, "token": 2, "name": "<s>", "fate": "kept", "log_prob": 0}]
    tree["nodes"] += [{"parent": 0, "token": 3, "name": "</s>", "fate": "ended", "log_prob": -1}]
    page.route("**/beam", lambda route: route.fulfill(json={"trees": [tree]}))
    type_in(page, TEXT)
    page.get_by_role("tab", name="Steps").click()
    expect(page.get_by_text("at each step (this model's default is 12)")).to_be_visible()
    expect(page.get_by_text("This search finds")).to_be_hidden()


def test_two_models_are_side_by_side_differences_are_marked_and_both_offer_continuations(page):
    page.locator("#model-menu summary").click()
    page.get_by_label("Compare with").select_option(index=2)
    type_in(page, TEXT)
    differs = page.locator("#attention .word.differs, #compared-attention .word.differs")
    expect(page.locator("#compared-attention .word").first).to_be_visible()
    expect(differs).to_have_count(0)  # both models are the same
    page.locator("#compared-attention .sentence-view").evaluate("one => { one.style.minHeight = '50rem'; }")
    tops = "all => all.map(one => Math.round(one.getBoundingClientRect().top))"
    assert len(set(page.get_by_label("layer and head").evaluate_all(tops))) == 1
    page.locator("#attention .below .word").first.click()
    page.locator("#attention .continuations button").nth(3).click()
    expect(page.locator("#attention .word.differs").first).to_be_visible()
    words, other_words = (page.locator(f"#{name} .below .word") for name in ("attention", "compared-attention"))
    marked = [
        page.locator(f"#{name} .below .word.differs").all_inner_texts() for name in ("attention", "compared-attention")
    ]
    texts, other_texts = words.all_inner_texts(), other_words.all_inner_texts()
    assert not set(marked[0]) & set(other_texts) or len(texts) != len(other_texts)
    page.locator("#compared-attention .below .word").nth(1).click()
    continuations = page.locator("#compared-attention .continuations button")
    expect(continuations).to_have_count(8)
    text = continuations.nth(2).locator(".rest").inner_text()
    first = page.inner_text("#translation")
    continuations.nth(2).click()
    expect(page.locator("#compared-translation")).to_have_text(text)
    expect(page.locator("#translation")).to_have_text(first)
    expect(page.locator("#compared-attention .below .word:focus")).to_have_count(1)


VIEWS = {
    "Attention": "#attention .ribbon",
    "Layers": ".heatmap button",
    "Heads": ".thumbnail",
    "Steps": ".tree .node",
    "Why": ".measure",
}


def test_every_view_is_saved_and_reproduced_by_its_code(page, run, tmp_path, monkeypatch):
    type_in(page, TEXT)
    for view, sign in VIEWS.items():
        page.get_by_role("tab", name=view).click()
        page.wait_for_selector(sign)
        saved(page, STARTS if view == "Attention" else ("SVG", "JSON"))  # the code saves it as PDF
        folder = tmp_path / view
        folder.mkdir()
        monkeypatch.chdir(folder)
        files = made_by_code(page, "runs/tiny", run)
        assert files and all(file.startswith(b"%PDF") for file in files), view


def test_on_a_phone_words_stand_upright_and_nothing_is_cut_off(page):
    set_in_a_wide_font(page)
    page.set_viewport_size({"width": 360, "height": 740})
    type_in(page, "I like soccer and also going to the beach")
    assert page.locator("#attention .ribbons.vertical").count() == 1
    for name in VIEWS:
        page.get_by_role("tab", name=name).click()
        page.wait_for_selector(VIEWS[name])
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name


def test_the_hint_on_a_touch_screen_is_to_tap(context, address):
    phone = {"has_touch": True, "is_mobile": True, "viewport": {"width": 390, "height": 800}}
    with fresh(context.browser, **phone) as page:
        page.goto(address)
        type_in(page, TEXT)
        assert "Tap a word" in page.inner_text("#attention .description")
        page.locator("#attention .below .word").first.tap()
        assert "attends to" in page.inner_text("#attention .description")


def test_right_to_left_texts(page):
    """With a made-up response of a model from Hebrew to Arabic."""
    weights = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
    maps = [{"name": "all layers and heads", "kind": "cross", "layer": None, "head": None, "weights": weights}]
    piece = {"source": ["אני", "שר", "</s>"], "target": ["أنا", "أغني", "</s>"], "opening": 0, "maps": maps}
    piece |= {"probabilities": [0.9, 0.2, 1], "sizes": [1, 1, 1], "tokens": [[5], [6], [3]]}
    sentence = {"source_text": "אני שר", "text": "أنا أغني", "pieces": [piece], "warnings": [], "confidence": 0.7}
    answer = {"model": "tiny", "translation": "أنا أغني", "sentences": [sentence]}
    page.route("**/look", lambda route: route.fulfill(json=answer))
    type_in(page, "אני שר")
    for side in ("above", "below"):
        words = page.locator(f"#attention .{side} .word")
        left = [words.nth(i).bounding_box()["x"] for i in range(3)]
        assert left == sorted(left, reverse=True)
    page.locator("#attention .above .word").first.focus()
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("() => document.activeElement.textContent") == "שר"
    assert "70 %" in page.inner_text("#attention .note")
    assert page.locator("#attention .word.low-probability").all_inner_texts() == ["أغني"]


def test_saved_pages_and_notebooks_show_the_same_and_fetch_nothing(context, run, inspected, tmp_path):
    """The notebook shows the translation twice, and the notebook's own styles do not apply to it."""
    save([inspected], tmp_path / "a.html", TEXT, GIVEN)
    style = "<meta charset='utf-8'><style>button { display: none }</style>"
    (tmp_path / "b.html").write_text(style + inspected._repr_html_() + inspected._repr_html_(), encoding="utf-8")
    words = inspected.words()
    for name, times in (("a.html", 1), ("b.html", 2)):
        with watched(context, f"file://{tmp_path}/{name}") as page:
            assert page.locator(".below .word").all_inner_texts() == times * words.target
            assert page.locator(".word").first.is_visible()
            for t, s, weight in page.locator(".ribbon").evaluate_all(RIBBONS):
                assert abs(weight - words.weights[t, s].item()) < 1e-3
            page.get_by_role("tab", name="Heads").first.click()
            expect(page.locator(".thumbnail")).to_have_count(17 + 6)
            expect(page.get_by_role("tab", name="Why")).to_have_count(0)  # saved pages have no server for explanations
            page.get_by_text("As code").first.click()
            expect(page.locator(".code pre").first).to_contain_text(f"Translator.load({json.dumps(str(run))})")
