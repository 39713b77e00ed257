"""The states of the page that tests and screenshots look at, and the user actions that lead to each."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from playwright.sync_api import Page, Route, expect

TEXT = "I like soccer and also going to the beach"
SPANISH = "Me gusta el fútbol y también ir a la playa"
NOTES = "I like soccer.\nThey are going to the beach.\nShe reads 足球 in the park.\n"
SEEN = "#inspection:not([hidden]) .word"
TABS = {"Layers": ".heatmap button", "Heads": ".thumbnail", "Steps": ".tree .node", "Why": ".measure"}
"""Each tab with a selector of an element that is visible when the tab is complete."""


@dataclass(frozen=True)
class State:
    """A state of the page."""

    name: str
    needs: str
    """What the server must offer: texts, live translation, features, text models, images, two models, a reverse one."""
    reach: Callable[[Page], None]
    """Brings a page that was just opened into the state."""


def offers(page: Page) -> set[str]:
    """Return what the server offers, as in `State.needs`."""
    sections = {
        name for name in ("texts", "live", "images", "text-models") if page.locator(f"#show-{name}").is_visible()
    }
    models = page.locator("#model option").count()
    reverse = page.locator("#swap").is_enabled()
    tabs = page.evaluate("fetch('models').then((answer) => answer.json())")[0].get("tabs", [])
    if any(tab["name"] == "features" for tab in tabs):
        sections.add("features")
    return sections | {"two" for _ in range(models > 1)} | {"reverse" for _ in range(reverse)}


def opened(page: Page, address: str, link: str = "") -> None:
    """Open the page with empty storage, as a first-time visitor; `link` is added to the address."""
    page.unroute_all(behavior="ignoreErrors")
    if not page.url.startswith(address):
        page.goto(address)
    page.evaluate("localStorage.clear(); sessionStorage.clear()")
    if "#" in link:  # otherwise only the fragment would change, which does not load the page again
        page.goto("about:blank")
    page.goto(f"{address}/{link}")
    page.wait_for_selector("body.ready")


def shown(page: Page, text: str) -> str:
    """Return a text of the page in the language of the page."""
    return page.evaluate("(text) => globalThis.pageCatalog?.messages[text] ?? text", text)


def _typed(page: Page, text: str = TEXT) -> None:
    page.fill("#source", text)
    expect(page.locator(SEEN).first).to_have_text(text.split()[0])


def _held(page: Page, sign: str) -> None:
    """Leave the request without a response, and wait until the page shows `sign`."""
    page.route("**/look", lambda route: None)
    page.fill("#source", TEXT)
    page.wait_for_selector(sign)


def _answered_with(page: Page, answer: Callable[[Route], None]) -> None:
    page.route("**/look", answer)
    page.fill("#source", TEXT)
    expect(page.locator("#problem")).not_to_be_empty()


def _busy(page: Page) -> None:
    headers = {"Retry-After": "12"}
    error = {"error": "Slowdown: more than 60 requests a minute"}
    _answered_with(page, lambda route: route.fulfill(status=429, headers=headers, json=error))


def _refused(page: Page) -> None:
    _answered_with(page, lambda route: route.fulfill(status=403, json={"error": "Invalid API key"}))


def _too_long(page: Page) -> None:
    page.fill("#source", "word " * 1100)
    expect(page.locator("#problem")).not_to_be_empty()


def _long(page: Page) -> None:
    page.fill("#source", f"{TEXT}. " * 14)
    expect(page.locator("#status")).to_contain_text("up to", timeout=60_000)


def _looked(page: Page, tab: str) -> None:
    _typed(page)
    page.get_by_role("tab", name=shown(page, tab)).click()
    expect(page.locator(f"#inspection {TABS[tab]}").first).to_be_visible()


def _contributions(page: Page) -> None:
    _typed(page)
    page.get_by_label(shown(page, "what ribbons show")).select_option("contributions")
    page.wait_for_selector("#inspection .prefix .word")


def _switched(page: Page) -> None:
    _looked(page, "Heads")
    page.locator("#inspection .switch").first.click()
    page.wait_for_selector("#inspection .ablation strong")


def _patched(page: Page) -> None:
    _typed(page)
    page.get_by_role("tab", name=shown(page, "Patching")).click()
    page.get_by_label(shown(page, "Another sentence, which differs in a word")).fill(TEXT.replace("soccer", "music"))
    word = page.locator("#inspection .below .word").first.inner_text()
    page.get_by_label(shown(page, "Word of the translation")).fill(word)
    page.get_by_label(shown(page, "instead of it")).fill("la")
    page.get_by_role("button", name=shown(page, "Compare")).click()
    page.wait_for_selector("#inspection .sentence-pair")


def _features(page: Page) -> None:
    """Choose a feature, and switch it off."""
    _typed(page)
    page.get_by_role("tab", name=shown(page, "Features")).click()
    page.locator("#inspection .features button").last.click()
    page.get_by_label(shown(page, "Strength")).fill("0")
    expect(page.locator("#inspection .translations")).to_contain_text(shown(page, "off"))
    page.wait_for_selector("#inspection .feature-details table:not(.waiting)")


def _graph(page: Page) -> None:
    """Follow the edges of a feature, and ablate it."""
    _typed(page)
    page.get_by_role("tab", name=shown(page, "Graph")).click()
    page.locator("#inspection .graph .feature").last.press("Enter")
    page.get_by_role("button", name=shown(page, "Ablate it here")).click()
    page.wait_for_selector("#inspection .graph-view .actions + div p")


def _patching(page: Page) -> None:
    _typed(page)
    page.get_by_role("tab", name=shown(page, "Patching")).click()
    expect(page.locator("#inspection .panel")).not_to_contain_text("…")


def _word(page: Page) -> None:
    _typed(page)
    page.locator("#inspection .below .word").first.click()
    expect(page.locator("#inspection .continuations button").first).to_be_visible()


def _swapped(page: Page) -> None:
    _typed(page)
    before = page.inner_text("#translation")
    page.click("#swap")
    expect(page.locator("#translation")).not_to_have_text(before)


def _compared(page: Page) -> None:
    page.locator("#model-menu summary").click()
    page.get_by_label(shown(page, "Compare with")).select_option(index=2)
    page.keyboard.press("Escape")
    _typed(page)


def _detected(page: Page) -> None:
    page.select_option("#from", "auto")
    page.fill("#source", SPANISH)
    expect(page.locator("#detected-language")).not_to_be_empty()
    page.wait_for_selector(SEEN)


def _history(page: Page) -> None:
    for text in ("She sings in the garden", TEXT):
        _typed(page, text)
        page.locator("#open-history").click()
        page.keyboard.press("Escape")
    page.locator("#open-history").click()


def _dropping(page: Page) -> None:
    page.evaluate("""() => {
      const data = new DataTransfer();
      data.items.add(new File(["x"], "x.txt", { type: "text/plain" }));
      document.body.dispatchEvent(new DragEvent("dragover", { dataTransfer: data, bubbles: true, cancelable: true }));
    }""")


def _documents(page: Page) -> None:
    page.click("#show-documents")


def _document(page: Page) -> None:
    page.click("#show-documents")
    file = {"name": "notes.txt", "mimeType": "text/plain", "buffer": NOTES.encode()}
    page.set_input_files("#document-file", file)
    expect(page.locator("#document-download")).to_be_visible(timeout=60_000)
    expect(page.locator("#segments textarea").first).to_be_enabled()
    page.locator("#segments textarea").first.press("Enter")
    expect(page.locator("#segments li.accepted")).to_have_count(1)


def _typed_document(page: Page, button: str) -> None:
    """Type a translation without accepting it, and click a button that then opens a dialog."""
    _document(page)
    page.locator("#segments textarea").nth(1).fill("Typed, and not accepted.")
    page.locator(button).click()
    expect(page.locator("dialog[open]")).to_be_visible()


def _searching(page: Page) -> None:
    """Search all segments, with a preview of a replacement, beside a notice about a copied source."""
    _document(page)
    page.locator("#segments textarea").nth(1).focus()
    page.keyboard.press("Alt+c")
    page.keyboard.press("Alt+m")
    expect(page.locator("#editor-notice")).not_to_be_empty()
    page.get_by_role("button", name=shown(page, "Search"), exact=True).click()
    page.get_by_label(shown(page, "The source contains")).fill("a")
    expect(page.locator("#search-hits li").first).to_be_visible()


def _key(page: Page) -> None:
    """Let the server require an API key and reject the one that is typed."""
    settings = page.evaluate("fetch('frontend/settings').then((answer) => answer.json())")
    page.route("**/frontend/settings", lambda route: route.fulfill(json=settings | {"keyRequired": True}))
    page.route("**/frontend/key", lambda route: route.fulfill(status=403, json={"error": "Invalid API key"}))
    page.reload()
    page.wait_for_selector("body.ready")
    page.fill("#api-key", "wrong")
    page.locator("#api-key").press("Enter")
    expect(page.locator("#api-key-problem")).not_to_be_empty()


def _remembered(page: Page) -> None:
    """Translate two sentences: the first is from the memory, the second has low confidence and a retrieved word."""
    settings = page.evaluate("fetch('frontend/settings').then((answer) => answer.json())")
    page.route("**/frontend/settings", lambda route: route.fulfill(json=settings | {"suggestions": True}))

    def look(route: Route) -> None:
        answer = route.fetch().json()
        first, second = answer["sentences"]
        first["origin"], second["confidence"] = "memory", 0.3
        second["pieces"][0]["probabilities"][0] = 0.1
        entry = {"source": "They are going to a beach.", "target": "Ellos van a una playa."}
        last = second["text"].split()[-1]
        position = len(second["text"].split()) - 1
        second["retrieved"] = [{"word": last, "position": position, "share": 0.9, "changed": True, **entry}]
        entry |= {"who": "Ana", "when": "2026-01-15T09:30:00Z"}
        page.route("**/memory/entry", lambda route: route.fulfill(json=entry))
        route.fulfill(json=answer)

    page.route("**/look", look)
    page.reload()
    page.wait_for_selector("body.ready")
    _typed(page, "I like soccer. They are going to the beach.")


def _improving(page: Page) -> None:
    _remembered(page)
    page.click("#improve")


def _entry(page: Page) -> None:
    """Open the entry of the retrieved word, and begin to delete it."""
    _remembered(page)
    page.click("#output .retrieved")
    page.click("#delete-entry")


def _wrong_document(page: Page) -> None:
    page.click("#show-documents")
    page.set_input_files("#document-file", {"name": "a.exe", "mimeType": "x/y", "buffer": b"x"})
    expect(page.locator("#document-problem")).not_to_be_empty()


def _image(page: Page) -> None:
    page.click("#show-images")
    page.set_input_files("#image-file", {"name": "scene.png", "mimeType": "image/png", "buffer": _scene()})
    page.wait_for_selector("#caption-inspection .word")
    page.locator("#caption-inspection .word").nth(1).click()
    page.wait_for_selector("#caption-inspection .continuations button")


def _image_steps(page: Page) -> None:
    _image(page)
    page.locator("#caption-inspection").get_by_role("tab", name=shown(page, "Steps")).click()
    page.wait_for_selector("#caption-inspection .tree .node")


@cache
def _scene() -> bytes:
    import io

    from translucid.captions.demonstration import SHAPES
    from translucid.captions.scenes import generate
    from translucid.captions.scenes.painting import paint
    from translucid.captions.scenes.writing import spread_shapes

    file = io.BytesIO()
    # The captioner of the demo knows these shapes.
    scene = next(generate(1, split="test", seed=5, shapes=spread_shapes(SHAPES)))
    paint(scene, 480).save(file, "PNG")
    return file.getvalue()


def _classified(page: Page) -> None:
    page.click("#show-text-models")
    page.fill("#input-text", "the film was good and warm")
    if page.locator("#classification").is_visible():
        page.wait_for_selector("#labels li")
    if page.locator("#generation").is_visible():
        page.click("#generate")
        page.wait_for_selector("#generated-text .word")
        page.locator("#generated-text .word").first.focus()


def _live(page: Page) -> None:
    """Hear a sentence and the beginning of another one, and show the words that waited before a word."""
    page.click("#show-live")
    page.fill("#live-text", f"{TEXT}. She sings in the ")
    place = shown(page, "Sentence {number} of {total}").format(number=2, total=2)
    expect(page.locator("#live .place")).to_have_text(place)
    page.get_by_role("button", name=shown(page, "previous sentence")).click()
    page.locator("#live .staircase [aria-expanded]").last.click()


STATES = [
    State("empty", "texts", lambda page: None),
    State("text", "texts", _typed),
    State("long", "texts", _long),
    State("working", "texts", lambda page: _held(page, "#texts.loading")),
    State("slow", "texts", lambda page: _held(page, "#status:not(:empty)")),
    State("gone", "texts", lambda page: _answered_with(page, lambda route: route.abort())),
    State("busy", "texts", _busy),
    State("refused", "texts", _refused),
    State("too-long", "texts", _too_long),
    State("doubtful", "texts", lambda page: _typed(page, "She reads 足球 in the park")),
    State("word", "texts", _word),
    State("contributions", "texts", _contributions),
    State("layers", "texts", lambda page: _looked(page, "Layers")),
    State("heads", "texts", _switched),
    State("steps", "texts", lambda page: _looked(page, "Steps")),
    State("why", "texts", lambda page: _looked(page, "Why")),
    State("features", "features", _features),
    State("graph", "features", _graph),
    State("patching", "texts", _patched),
    State("patching-opened", "texts", _patching),
    State("models", "two", lambda page: page.locator("#model-menu summary").click()),
    State("compared", "two", _compared),
    State("detected", "reverse", _detected),
    State("swapped", "reverse", _swapped),
    State("history", "texts", _history),
    State("shortcuts", "texts", lambda page: page.click("#open-shortcuts")),
    State("dropping", "texts", _dropping),
    State("documents", "texts", _documents),
    State("document", "texts", _document),
    State("remembered", "texts", _remembered),
    State("improving", "texts", _improving),
    State("entry", "texts", _entry),
    State("key", "texts", _key),
    State("unaccepted", "texts", lambda page: _typed_document(page, "#document-download")),
    State("accepting", "texts", lambda page: _typed_document(page, "#accept-all")),
    State("searching", "texts", _searching),
    State("document-wrong", "texts", _wrong_document),
    State("live-empty", "live", lambda page: page.click("#show-live")),
    State("live", "live", _live),
    State("images", "images", lambda page: page.click("#show-images")),
    State("image", "images", _image),
    State("image-steps", "images", _image_steps),
    State("text-models", "text-models", lambda page: page.click("#show-text-models")),
    State("classification", "text-models", _classified),
]


def states(
    page: Page, address: str, *, names: Sequence[str] = (), without: Sequence[str] = (), link: str = ""
) -> Iterator[State]:
    """Bring the page into one state after another, except states that need more than the server offers."""
    opened(page, address, link)
    offered = offers(page)
    for state in STATES:
        if state.needs in offered and state.name not in without and (state.name in names or not names):
            opened(page, address, link)
            state.reach(page)
            yield state
