"""The part of the page for images, in a real browser: give one, point at words, choose others."""

import base64

import pytest
from PIL import Image
from playwright.sync_api import expect

from .conftest import png
from .test_clients import serving
from .test_page import browser, watched  # noqa: F401

CELLS = """([x, y]) => {
  const veil = document.querySelector("#veil");
  return [...veil.getContext("2d").getImageData(x * veil.width, y * veil.height, 1, 1).data];
}"""
GIVE = """([event, kind, base64, type]) => {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const data = new DataTransfer();
  data.items.add(new File([bytes], "one." + type.split("/")[1], { type }));
  const place = event === "drop" ? "dataTransfer" : "clipboardData";
  const what = { bubbles: true, cancelable: true, [place]: data };
  const target = document.querySelector(event === "drop" ? "#drop" : "body");
  target.dispatchEvent(event === "drop" ? new DragEvent("drop", what) : new ClipboardEvent("paste", what));
}"""


@pytest.fixture(scope="module")
def address(eyes):
    """Of a server with nothing but a captioner."""
    with serving(str(eyes)) as place:
        yield place


@pytest.fixture
def page(browser, address):  # noqa: F811
    with watched(browser, address, own=("data:", "blob:")) as opened:
        expect(opened.locator("#images")).to_be_visible()
        yield opened


def choose(page, image, name="scene.png", kind="image/png"):
    page.set_input_files("#file", {"name": name, "mimeType": kind, "buffer": image})


def seen(page, image):
    """Give an image, wait for its caption, and return the words."""
    choose(page, image)
    expect(page.locator("#caption .word").first).to_be_visible()
    return page.locator("#caption .word").all_inner_texts()


def answer(*words):
    """What a server may say: words, each with its own weights [2][2]."""
    rows = [{"word": word, "probability": 0.5, "weights": weights} for word, weights in words]
    text = " ".join(word for word, _ in words)
    return {"caption": text, "score": -1.0, "alternatives": [], "words": rows, "grid": [2, 2], "size": 64}


def test_captioners_alone_open_on_images(page, scene):
    expect(page.locator("#images")).to_be_visible()
    expect(page.locator("#texts")).to_be_hidden()
    expect(page.locator("#kinds")).to_be_hidden()
    words = seen(page, scene)
    assert page.get_attribute("#picture", "aria-label") == " ".join(words)
    assert page.locator("#nbest li").count() == 4
    assert page.locator("#nbest .rest").first.inner_text() == " ".join(words)
    expect(page.locator("#picture")).to_be_visible()
    assert page.inner_text("#image-problem") == ""


def test_pointing_at_a_word_lights_up_where_the_model_looked(page, scene):
    """With weights that are known; by mouse and by keyboard."""
    page.route(
        "**/caption",
        lambda route: route.fulfill(json=answer(("red", [[0.9, 0.1], [0, 0]]), ("circle", [[0, 0], [0, 1]]))),
    )
    seen(page, scene)
    dark = [page.evaluate(CELLS, at)[3] for at in ([0.2, 0.2], [0.8, 0.8])]
    assert dark == [0, 0]
    page.locator("#caption .word").nth(0).hover()
    assert page.evaluate(CELLS, [0.1, 0.1])[0] > 200  # light
    assert page.evaluate(CELLS, [0.9, 0.9])[:3] == [0, 0, 0]
    assert page.evaluate(CELLS, [0.9, 0.9])[3] > 170
    shades = [page.evaluate(CELLS, [x / 20, 0.1])[3] for x in range(7, 14)]
    assert len(set(shades)) > 4, "from cell to cell it is smooth"
    assert (
        page.inner_text("#seen")
        == "“red” was written with probability 50.0 %; it looked most at the upper left (90 %)."
    )
    page.mouse.move(0, 0)
    assert page.evaluate(CELLS, [0.9, 0.9])[3] == 0
    page.locator("#caption .word").nth(1).focus()
    assert page.evaluate(CELLS, [0.9, 0.9])[0] > 200
    assert "lower right (100 %)" in page.inner_text("#seen")


def test_the_servers_own_weights_light_up(page, scene):
    seen(page, scene)
    page.locator("#caption .word").first.hover()
    shades = [page.evaluate(CELLS, [x / 16, y / 16])[3] for x in range(1, 16) for y in range(1, 16)]
    assert max(shades) - min(shades) > 40
    assert "was written with probability" in page.inner_text("#seen")


def test_choosing_a_word_offers_others_and_goes_on_from_there(page, scene):
    words = seen(page, scene)
    page.locator("#caption .word").nth(1).click()
    ways = page.locator("#caption-ways button")
    expect(ways).to_have_count(8)
    assert page.inner_text("#instead-name") == f"Instead of “{words[1]}”"
    assert all(text.startswith(words[0]) for text in page.locator("#caption-ways .rest").all_inner_texts())
    wanted = ways.nth(3).locator(".rest").inner_text()
    assert wanted.split() != words
    ways.nth(3).click()
    expect(page.locator("#caption")).to_have_text(wanted)
    assert page.locator("#caption .word").all_inner_texts() == wanted.split()
    expect(page.locator("#instead")).to_be_hidden()
    page.locator("#nbest button").nth(0).click()  # back to the best one
    expect(page.locator("#caption")).to_have_text(" ".join(words))


@pytest.mark.parametrize("event", ["drop", "paste"])
def test_an_image_may_be_dropped_or_pasted(page, scene, event):
    page.evaluate(GIVE, [event, "file", base64.b64encode(scene).decode(), "image/png"])
    expect(page.locator("#caption .word").first).to_be_visible()


def test_a_large_image_is_made_smaller_before_it_is_sent(page):
    page.evaluate(
        "() => { const asked = fetch; fetch = (...all) => { globalThis.sent = all[1].body; return asked(...all); }; }"
    )
    seen(page, png(Image.effect_noise((3000, 1500), 50)))
    sent = (
        "async () => { const { width, height } = await createImageBitmap(sent.get('file')); return [width, height]; }"
    )
    assert page.evaluate(sent) == [1024, 512]
    assert page.evaluate("() => sent.get('file').type") == "image/jpeg"


def test_what_is_wrong_is_said_in_one_line(page, scene):
    choose(page, b"I am no picture", "holiday.jpg", "image/jpeg")
    expect(page.locator("#image-problem")).to_contain_text("no image that the browser can show")
    expect(page.locator("#image")).to_be_hidden()
    seen(page, scene)
    assert page.inner_text("#image-problem") == ""
    page.route("**/caption", lambda route: route.fulfill(status=400, json={"error": "image: has too many pixels."}))
    choose(page, scene)
    expect(page.locator("#image-problem")).to_have_text("image: has too many pixels.")
    assert page.inner_text("#caption") == page.inner_text("#nbest") == ""


def test_a_server_that_is_gone_is_said_and_asked_again(browser, address, scene):  # noqa: F811
    page = browser.new_page()
    page.goto(address)
    page.route("**/caption", lambda route: route.abort())
    choose(page, scene)
    expect(page.locator("#image-problem")).to_contain_text("does not answer")
    page.unroute("**/caption")
    expect(page.locator("#caption .word").first).to_be_visible(timeout=10_000)
    assert page.inner_text("#image-problem") == ""
    page.close()


def test_a_model_without_attention_says_so(page, scene):
    blind = {**answer(("red", None)), "grid": None}
    del blind["words"][0]["weights"]
    page.route("**/caption", lambda route: route.fulfill(json=blind))
    seen(page, scene)
    assert "no attention" in page.inner_text("#seen")
    page.locator("#caption .word").first.hover()
    assert page.inner_text("#seen").endswith("probability 50.0 %.")


def test_texts_and_images_are_two_parts_of_the_page(browser, run, eyes, scene):  # noqa: F811
    with serving(str(run), str(eyes), str(eyes)) as place:
        page = browser.new_page()
        page.goto(place)
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
        expect(page.locator("#caption .word").first).to_be_visible()
        page.close()


def test_on_a_phone_a_photograph_can_be_taken_and_words_tapped(browser, address, scene):  # noqa: F811
    context = browser.new_context(has_touch=True, is_mobile=True, viewport={"width": 360, "height": 740})
    page = context.new_page()
    page.goto(address)
    expect(page.get_by_text("take a photograph")).to_be_visible()
    assert page.get_attribute("#camera", "capture") == "environment"
    page.set_input_files("#camera", {"name": "p.png", "mimeType": "image/png", "buffer": scene})
    expect(page.locator("#caption .word").first).to_be_visible()
    assert "Tap a word" in page.inner_text("#seen")
    page.locator("#caption .word").first.tap()
    expect(page.locator("#seen")).to_contain_text("was written with probability")
    expect(page.locator("#caption-ways button")).to_have_count(8)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    context.close()


def test_at_a_desk_no_camera_is_offered(page):
    expect(page.locator("#images").get_by_text("Choose an image")).to_be_visible()
    expect(page.get_by_text("take a photograph")).to_be_hidden()
    assert page.get_attribute("#file", "accept") == page.get_attribute("#camera", "accept") == "image/*"
