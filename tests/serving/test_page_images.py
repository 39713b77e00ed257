"""The image section of the page in a real browser: uploading images, pointing at words, choosing other words."""

import base64
import re

import pytest
from PIL import Image
from playwright.sync_api import expect

from tests.probes.fonts import set_in_a_wide_font
from translucid.captions.captioner import Captioner
from translucid.captions.image_cases import image_case
from translucid.inspection.explain import explain

from .conftest import png
from .test_clients import serving
from .test_page import STARTS, fresh, made_by_code, saved, watched

CELLS = """([x, y]) => {
  const veil = document.querySelector("#image-overlay");
  return [...veil.getContext("2d").getImageData(x * veil.width, y * veil.height, 1, 1).data];
}"""
DARKEST = """() => {
  const veil = document.querySelector("#image-overlay");
  const pixels = veil.getContext("2d").getImageData(0, 0, veil.width, veil.height).data;
  return pixels.reduce((most, value, i) => (i % 4 === 3 ? Math.max(most, value) : most), 0);
}"""
GIVE = """([event, kind, base64, type]) => {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const data = new DataTransfer();
  data.items.add(new File([bytes], "one." + type.split("/")[1], { type }));
  const place = event === "drop" ? "dataTransfer" : "clipboardData";
  const what = { bubbles: true, cancelable: true, [place]: data };
  const target = document.querySelector(event === "drop" ? "#image-drop" : "body");
  target.dispatchEvent(event === "drop" ? new DragEvent("drop", what) : new ClipboardEvent("paste", what));
}"""

HEARD = """() => {
  const { dataset } = document.documentElement;
  dataset.heard = "";
  new MutationObserver(() => dataset.heard += document.querySelector("#caption-inspection .description").textContent)
    .observe(document.querySelector("#caption-inspection"), { childList: true, characterData: true, subtree: true });
}"""


@pytest.fixture(scope="module")
def address(captioner_run):
    """The address of a server that only has a captioner."""
    with serving(str(captioner_run)) as server_url:
        yield server_url


@pytest.fixture
def page(context, address):
    with watched(context, address, allowed=("data:", "blob:")) as opened:
        expect(opened.locator("#images")).to_be_visible()
        yield opened


def choose(page, image, name="scene.png", kind="image/png"):
    page.set_input_files("#image-file", {"name": name, "mimeType": kind, "buffer": image})


def seen(page, image):
    """Choose an image, wait for its caption, and return the words."""
    choose(page, image)
    expect(page.locator("#caption-inspection .word").first).to_be_visible()
    return page.locator("#caption-inspection .word").all_inner_texts()


def answer(*words):
    """Return a server's response with these words, each with its weights [2][2]."""
    rows = [{"word": word, "probability": 0.5, "pieces": 1, "weights": weights} for word, weights in words]
    about = {"caption": " ".join(word for word, _ in words), "score": -1.0, "alternatives": []}
    return {**about, "model": "eyes", "words": rows, "grid": [2, 2], "heads": 1, "size": 64}


def test_captioners_alone_open_on_images(page, scene):
    expect(page.locator("#images")).to_be_visible()
    expect(page.locator("#texts")).to_be_hidden()
    expect(page.locator("#section-nav")).to_be_hidden()
    words = seen(page, scene)
    expect(page.locator("#image-canvas")).to_have_attribute("aria-label", " ".join(words))
    expect(page.locator("#caption")).to_have_text(" ".join(words))
    expect(page.locator("#copy-caption")).to_be_enabled()
    expect(page.locator("#image-canvas")).to_be_visible()
    expect(page.locator("#image-problem")).to_be_empty()


def test_pointing_at_a_word_shows_its_attention_on_the_image(page, scene):
    """With given weights, by mouse and by keyboard."""
    page.route(
        "**/caption",
        lambda route: route.fulfill(json=answer(("red", [[0.9, 0.1], [0, 0]]), ("circle", [[0, 0], [0, 1]]))),
    )
    seen(page, scene)
    dark = [page.evaluate(CELLS, at)[3] for at in ([0.2, 0.2], [0.8, 0.8])]
    assert dark == [0, 0]
    page.locator("#caption-inspection .word").nth(0).hover()
    assert page.evaluate(CELLS, [0.1, 0.1])[0] > 200  # light
    assert max(page.evaluate(CELLS, [0.9, 0.9])[:3]) < 40
    assert page.evaluate(CELLS, [0.9, 0.9])[3] > 170
    shades = [page.evaluate(CELLS, [x / 20, 0.1])[3] for x in range(7, 14)]
    assert len(set(shades)) > 4, "from cell to cell it is smooth"
    description = page.locator("#caption-inspection .description")
    expect(description).to_have_text("red (probability 50 %) attends to top left 90 %, top right 10 %")
    page.mouse.move(0, 0)
    assert page.evaluate(CELLS, [0.9, 0.9])[3] == 0
    page.locator("#caption-inspection .word").nth(1).focus()
    assert page.evaluate(CELLS, [0.9, 0.9])[0] > 200
    expect(description).to_contain_text("bottom right 100 %")
    page.set_viewport_size({"width": 360, "height": 740})
    page.locator("#copy-caption").focus()
    expect(description).to_contain_text("the image shows")
    before = description.bounding_box()["height"]
    page.locator("#caption-inspection .word").nth(1).focus()
    expect(description).to_contain_text("bottom right 100 %")
    assert description.bounding_box()["height"] == before  # otherwise the page would move under the pointer


def test_weights_of_the_server_are_shown_on_the_image(page, scene):
    seen(page, scene)
    page.locator("#caption-inspection .word").first.hover()
    shades = [page.evaluate(CELLS, [x / 16, y / 16])[3] for x in range(1, 16) for y in range(1, 16)]
    assert max(shades) - min(shades) > 40
    expect(page.locator("#caption-inspection .description")).to_contain_text("(probability")


def test_choosing_a_word_offers_continuations(page, scene):
    words = seen(page, scene)
    page.locator("#caption-inspection .word").nth(1).click()
    continuations = page.locator("#caption-inspection .continuations button")
    expect(continuations).to_have_count(8)
    expect(page.locator("#caption-inspection .continuations .title")).to_have_text(f"Continuations after “{words[0]}”")
    assert all(text.startswith(words[0]) for text in continuations.locator(".rest").all_inner_texts())
    text = continuations.nth(3).locator(".rest").inner_text()
    assert text.split() != words
    continuations.nth(3).click()
    expect(page.locator("#caption")).to_have_text(text)
    expect(page.locator("#caption-inspection .word")).to_have_text(text.split())
    expect(continuations).to_have_count(0)


def test_the_playback_of_the_search_and_its_tree(page, captioner_run, scene):
    """Words appear one by one, the overlay shows the last one, and the tree has the nodes of the library's trace."""
    words = seen(page, scene)
    page.get_by_role("tab", name="Steps").click()
    expect(page.locator("#caption-inspection .word.upcoming")).to_have_count(len(words) - 1)
    nodes = page.locator("#caption-inspection .tree .node")
    captioner = Captioner.load(captioner_run)
    trace = captioner.trace(captioner.picture(scene), captioner.configuration.decoding.beam)
    expect(nodes).to_have_count(len(trace.nodes))
    assert page.locator("#caption-inspection .tree .node:not(.upcoming)").count() < len(trace.nodes)
    assert page.evaluate(DARKEST) > 150
    page.get_by_label("decoding step").press("End")
    expect(page.locator("#caption-inspection .tree .node.upcoming")).to_have_count(0)
    expect(page.locator("#caption-inspection .finished .best td").first).to_have_text(" ".join(words))
    page.locator("#caption-inspection .tree .node[role=button]").first.click()
    expect(page.locator("#caption-inspection .continuations button").first).to_be_visible()


def test_explanations_are_shown_on_the_image(page, captioner_run, scene):
    """The overlay is lighter at the most important cell of a word, and the faithfulness figures are below the image."""
    words = seen(page, scene)
    page.get_by_role("tab", name="Why").click()
    expect(page.locator("#caption-inspection .faithfulness .measure")).to_have_count(4)
    expect(page.locator("#caption-inspection .faithfulness")).to_contain_text("the most important 10 % of the image")
    page.locator("#caption-inspection .word").first.hover()
    expect(page.locator("#caption-inspection .description")).to_contain_text("depends on")
    captioner = Captioner.load(captioner_run)
    picture = captioner.picture(scene)
    case = image_case("erasure", captioner.model, captioner.tokenizer, picture.pixels, " ".join(words), captioner.grid)
    rows, columns = captioner.grid
    best = int(explain(case, "erasure").importance[0].argmax())
    middle = [(best % columns + 0.5) / columns, (best // columns + 0.5) / rows]
    assert page.evaluate(CELLS, middle)[3] < page.evaluate(DARKEST)
    page.get_by_label("word to explain").select_option(index=1)
    page.get_by_label("another word").fill("red" if words[0] != "red" else "blue")
    page.get_by_role("button", name="Why not?").click()
    expect(page.locator("#caption-inspection .details .note")).to_contain_text("times as probable as")
    expect(page.locator("#caption-inspection .description")).to_contain_text("instead of")
    assert page.evaluate(DARKEST) > 150  # the overlay of the word appears without the pointer
    page.get_by_role("tab", name="Attention").click()
    page.locator("#caption-inspection .word").first.hover()
    expect(page.locator("#caption-inspection .description")).to_contain_text("attends to")


def test_every_view_is_saved_and_reproduced_by_its_code(page, captioner_run, scene, tmp_path, monkeypatch):
    seen(page, scene)
    for view, sign in {"Attention": ".word", "Steps": ".tree", "Why": ".measure"}.items():
        page.get_by_role("tab", name=view).click()
        expect(page.locator(f"#caption-inspection {sign}").first).to_be_visible()
        picture = saved(page, STARTS if view == "Attention" else ("SVG", "JSON"))["SVG"]
        if view == "Attention":
            assert picture.count(b"data:image/jpeg;base64,") == page.locator("#caption-inspection .word").count() + 1
        folder = tmp_path / view
        folder.mkdir()
        (folder / "scene.png").write_bytes(scene)
        monkeypatch.chdir(folder)
        assert [file[:4] for file in made_by_code(page, "runs/eyes", captioner_run)] == [b"%PDF"], view


def test_heads_are_thumbnails_of_the_grid_and_can_be_opened(page, scene):
    """With the given weights of two heads, there are thumbnails of the mean and of each head."""
    head_maps = [("all layers and heads", None, None, [[0.5, 0], [0.5, 0]])]
    head_maps += [("layer 0, head 0", 0, 0, [[1, 0], [0, 0]]), ("layer 0, head 1", 0, 1, [[0, 0], [1, 0]])]
    maps = [{"name": name, "layer": layer, "head": head, "weights": [cells]} for name, layer, head, cells in head_maps]
    response = {**answer(("red", head_maps[0][3])), "heads": 3, "maps": maps}
    page.route("**/caption", lambda route: route.fulfill(json=response))
    seen(page, scene)
    page.get_by_role("tab", name="Heads").click()
    thumbnails = page.locator("#caption-inspection .thumbnail")
    expect(thumbnails).to_have_count(3)
    assert thumbnails.locator("canvas").first.evaluate("canvas => [canvas.width, canvas.height]") == [2, 2]
    page.get_by_role("button", name="layer 0, head 1").click()
    page.locator("#caption-inspection .word").first.hover()
    expect(page.locator("#caption-inspection .description")).to_contain_text("attends to bottom left 100 %")


@pytest.mark.parametrize("event", ["drop", "paste"])
def test_an_image_may_be_dropped_or_pasted(page, scene, event):
    page.evaluate(GIVE, [event, "file", base64.b64encode(scene).decode(), "image/png"])
    expect(page.locator("#caption-inspection .word").first).to_be_visible()


def test_a_large_image_is_made_smaller_before_it_is_sent(page):
    page.evaluate(
        "() => { const asked = fetch; fetch = (...all) => { globalThis.sent = all[1].body; return asked(...all); }; }"
    )
    seen(page, png(Image.new("L", (3000, 1500), 128)))
    sent = (
        "async () => { const { width, height } = await createImageBitmap(sent.get('file')); return [width, height]; }"
    )
    assert page.evaluate(sent) == [1024, 512]
    assert page.evaluate("() => sent.get('file').type") == "image/jpeg"


def test_errors_are_reported_in_one_line(page, scene):
    choose(page, b"I am no picture", "holiday.jpg", "image/jpeg")
    expect(page.locator("#image-problem")).to_contain_text("cannot display this file as an image")
    expect(page.locator("#image")).to_be_hidden()
    seen(page, scene)
    expect(page.locator("#image-problem")).to_be_empty()
    page.route("**/caption", lambda route: route.fulfill(status=400, json={"error": "image: has too many pixels."}))
    choose(page, scene)
    expect(page.locator("#image-problem")).to_have_text("Image: has too many pixels.")
    expect(page.locator("#caption-inspection .word")).to_have_count(0)
    expect(page.locator("#caption")).to_be_empty()


def test_an_unreachable_server_is_reported_and_retried(context, address, scene):
    with fresh(context) as page:
        page.goto(address)
        page.wait_for_selector("body.ready")
        page.route("**/caption", lambda route: route.abort())
        choose(page, scene)
        expect(page.locator("#image-problem")).to_contain_text("does not respond")
        page.unroute("**/caption")
        expect(page.locator("#caption-inspection .word").first).to_be_visible(timeout=10_000)
        expect(page.locator("#image-problem")).to_be_empty()


def test_a_model_without_attention_says_so(page, scene):
    blind = {**answer(("red", None)), "grid": None, "heads": 0}
    del blind["words"][0]["weights"]
    page.route("**/caption", lambda route: route.fulfill(json=blind))
    seen(page, scene)
    description = page.locator("#caption-inspection .description")
    expect(description).to_contain_text("no attention")
    page.locator("#caption-inspection .word").first.hover()
    expect(description).to_have_text("red (probability 50 %)")
    expect(page.get_by_role("button", name="save as PNG")).to_be_visible()
    expect(page.get_by_role("button", name="save as PDF")).to_have_count(0)


def test_texts_and_images_are_two_sections_of_the_page(context, run, captioner_run, scene):
    with serving(str(run), str(captioner_run), str(captioner_run)) as server_url, fresh(context) as page:
        page.goto(server_url)
        expect(page.get_by_label("English")).to_be_visible()
        expect(page.locator("#images")).to_be_hidden()
        page.get_by_label("English").fill("I like soccer")
        page.wait_for_selector("#attention .word")
        page.get_by_role("button", name="Images").click()
        expect(page.locator("#texts")).to_be_hidden()
        expect(page.locator("#model")).to_be_hidden()
        assert page.locator("#captioner option").all_inner_texts() == ["eyes", "eyes 2"]
        seen(page, scene)
        page.reload()
        expect(page.locator("#images")).to_be_visible()
        page.get_by_role("button", name="Text").click()
        expect(page.get_by_label("English")).to_be_visible()
        page.evaluate(GIVE, ["paste", "file", base64.b64encode(scene).decode(), "image/png"])
        expect(page.locator("#caption-inspection .word").first).to_be_visible()


def test_on_a_phone_a_photograph_can_be_taken_and_words_tapped(context, address, scene):
    phone = {"has_touch": True, "is_mobile": True, "viewport": {"width": 360, "height": 740}}
    with fresh(context.browser, **phone) as page:
        page.goto(address)
        set_in_a_wide_font(page)
        expect(page.get_by_text("take a photograph")).to_be_visible()
        assert page.get_attribute("#camera-file", "capture") == "environment"
        page.set_input_files("#camera-file", {"name": "p.png", "mimeType": "image/png", "buffer": scene})
        expect(page.locator("#caption-inspection .word").first).to_be_visible()
        expect(page.locator("#caption-inspection .description")).to_contain_text("Tap a word")
        page.evaluate(HEARD)  # records the texts, as headless Chromium soon moves its virtual mouse off the word
        page.locator("#caption-inspection .word").first.tap()
        expect(page.locator("html")).to_have_attribute("data-heard", re.compile(r"\(probability"))
        expect(page.locator("#caption-inspection .continuations button")).to_have_count(8)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_without_a_touch_screen_no_camera_is_offered(page):
    expect(page.locator("#images").get_by_text("Choose an image")).to_be_visible()
    expect(page.get_by_text("take a photograph")).to_be_hidden()
    assert page.get_attribute("#image-file", "accept") == page.get_attribute("#camera-file", "accept") == "image/*"
