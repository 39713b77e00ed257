"""What users expect of a translator's page: languages, swapping, links, history, files, shortcuts, loading states."""

import json
import shutil

import pytest
from playwright.sync_api import expect

from .test_clients import serving
from .test_page import fresh, watched

SPANISH = "Los niños leen un libro en el jardín"
LOOK = {"sentences": [], "model": "tiny"}
DROP = """([name, type, text]) => {
  const data = new DataTransfer();
  data.items.add(new File([text], name, { type }));
  for (const kind of ["dragover", "drop"])
    document.body.dispatchEvent(new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true }));
}"""


@pytest.fixture(scope="module")
def address(run, tmp_path_factory):
    """The address of a server with a model for each direction (actually the same model twice)."""
    folder = tmp_path_factory.mktemp("habits") / "forth"
    shutil.copytree(run, folder)
    (folder / "examples.txt").write_text("I like soccer\nYou sing\n")
    with serving(str(folder), f"es-en={run}") as server_url:
        yield server_url


@pytest.fixture
def page(context, address):
    with watched(context, address) as opened:
        opened.wait_for_selector("body.ready")
        yield opened


def type_in(page, text="I like soccer"):
    of_it = lambda answer: answer.url.endswith("/look") and answer.request.post_data_json["q"] == text  # noqa: E731
    with page.expect_response(of_it) as response:
        page.fill("#source", text)
    expect(page.locator("#translation")).to_have_text(response.value.json()["translation"])
    return page.inner_text("#translation")


def asked(page, path="look"):
    """Return a list to which the fields of each later request to `path` are added."""
    requests = []
    page.on(
        "request", lambda request: requests.append(request.post_data_json) if request.url.endswith(f"/{path}") else None
    )
    return requests


def test_sections_can_be_opened_as_soon_as_they_are_ready(context, address):
    with fresh(context) as page:
        waiting = []
        page.route("**/frontend/settings", lambda route: waiting.append(route))
        page.goto(address)
        documents = page.get_by_role("button", name="Documents")
        expect(documents).to_be_disabled()
        page.wait_for_timeout(50)
        waiting[0].continue_()
        documents.click()
        expect(page.locator("#documents")).to_be_visible()


def test_an_empty_page_offers_examples_and_no_empty_panels(page):
    expect(page.locator("#example-list button")).to_have_text(["I like soccer", "You sing"])
    expect(page.locator("#inspection")).to_be_hidden()
    page.get_by_role("button", name="You sing").click()
    expect(page.locator("#translation")).not_to_be_empty()
    expect(page.locator("#inspection")).to_be_visible()
    expect(page.locator("#examples")).to_be_hidden()
    expect(page.locator("#source")).to_be_focused()
    page.get_by_role("button", name="Clear the text").click()
    expect(page.locator("#examples")).to_be_visible()
    expect(page.locator("#inspection")).to_be_hidden()
    expect(page.locator("#source")).to_be_focused()
    assert page.inner_text("#translation") == ""


def test_swapping_exchanges_languages_and_texts(page):
    translation, questions = type_in(page), asked(page)
    page.get_by_role("button", name="Swap").click()
    expect(page.locator("#source")).to_have_value(translation)
    expect(page.locator("#source-language")).to_have_text("Spanish")
    expect(page.locator("#target-language")).to_have_text("English")
    expect(page.locator("#model-name")).to_have_text("tiny")
    expect(page.locator("#translation")).not_to_have_text(translation)
    assert [(question["source"], question["target"], question["model"], question["q"]) for question in questions] == [
        ("es", "en", "tiny", translation)
    ]
    expect(page.locator("#swap")).to_be_enabled()


def test_a_model_alone_cannot_be_swapped(context, run):
    with serving(str(run)) as server_url, watched(context, server_url) as page:
        page.wait_for_selector("body.ready")
        expect(page.locator("#swap")).to_be_disabled()
        for choice in ("#from", "#to", "#model-menu"):
            expect(page.locator(choice)).to_be_hidden()
        page.wait_for_load_state("networkidle")
        expect(page.locator("#example-list button")).to_have_count(0)


def test_the_language_is_detected(page):
    page.select_option("#from", "auto")
    questions = asked(page)
    page.fill("#source", SPANISH)
    expect(page.locator("#detected-language")).to_have_text("detected: Spanish")
    expect(page.locator("#translation")).not_to_be_empty()
    expect(page.locator("#target-language")).to_have_text("English")
    expect(page.locator("#model-name")).to_have_text("tiny")
    # A single request detects the language and translates.
    assert [(question["source"], question["target"]) for question in questions] == [("auto", "es")]


def test_a_link_contains_text_and_model_and_is_never_sent(page, context, address):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    type_in(page, "I like soccer & more #1")
    page.get_by_role("button", name="Link").click()
    expect(page.locator("#action-status")).to_have_text("Link copied")
    link = page.evaluate("navigator.clipboard.readText()")
    assert link.startswith(f"{address}/#text=")
    with fresh(context) as other:
        urls = []
        other.on("request", lambda request: urls.append(request.url))
        other.goto(link)
        expect(other.locator("#source")).to_have_value("I like soccer & more #1")
        expect(other.locator("#translation")).not_to_be_empty()
        assert not any("soccer" in url.partition("#")[0] for url in urls)
        other.fill("#source", "You sing")  # the link's text leaves the address when the text changes
        expect(other).to_have_url(f"{address}/")


def test_links_and_the_history_keep_the_form_of_address(page, address):
    models = page.evaluate("fetch('models').then(answer => answer.json())")
    page.route("**/models", lambda route: route.fulfill(json=[model | {"formality": ["es"]} for model in models]))
    page.route("**/look", lambda route: route.fulfill(json=LOOK | {"translation": "Canta"}))
    page.reload()
    menu, questions = page.locator("#formality"), asked(page)
    expect(menu).to_be_visible()
    menu.select_option("formal")
    page.fill("#source", "You sing")
    expect(page.locator("#translation")).to_have_text("Canta")
    page.click("#open-history")  # this stores the translation, which would otherwise wait for another one
    page.keyboard.press("Escape")
    menu.select_option("")
    page.click("#open-history")
    entry = page.locator("#history-list button").filter(has_text="(formal)")
    expect(entry).to_be_visible()
    entry.click()
    expect(menu).to_have_value("formal")
    for form in ("informal", ""):
        page.goto(f"{address}/#text=We+sing&from=en&to=es&formality={form}")
        expect(menu).to_have_value(form)
    expect(page.locator("#source")).to_have_value("We sing")
    forms = [question.get("formality", "") for question in questions]
    assert forms == ["formal", "", "formal", "informal", ""]


def test_a_reload_keeps_the_text_and_the_languages(page):
    page.select_option("#from", "es")
    type_in(page, SPANISH)
    page.reload()
    expect(page.locator("#source")).to_have_value(SPANISH)
    expect(page.locator("#from")).to_have_value("es")
    expect(page.locator("#source-language")).to_have_text("Spanish")
    expect(page.locator("#translation")).not_to_be_empty()


def test_copying_is_confirmed(page):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    expect(page.locator("#copy-translation")).to_be_disabled()
    translation = type_in(page)
    page.get_by_role("button", name="Copy", exact=True).click()
    expect(page.locator("#action-status")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == translation
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('no TLS')); }")
    expect(page.locator("#action-status")).to_be_empty()
    page.get_by_role("button", name="Copy", exact=True).click()
    expect(page.locator("#action-status")).to_have_text("Copied")
    expect(page.get_by_role("button", name="Copy", exact=True)).to_be_focused()


def test_the_history_is_local_bounded_cleared_and_disabled(page):
    type_in(page, "I like")
    type_in(page, "I like soccer")  # replaces the entry of its beginning
    page.click("#open-history")
    assert page.locator("#history-list .one-line:not(.muted)").all_inner_texts() == ["I like soccer"]
    page.keyboard.press("Escape")
    expect(page.locator("#open-history")).to_be_focused()
    type_in(page, "You sing")
    page.click("#open-history")
    assert page.locator("#history-list .one-line:not(.muted)").all_inner_texts() == ["You sing", "I like soccer"]
    page.get_by_role("button", name="I like soccer").last.click()
    expect(page.locator("#source")).to_have_value("I like soccer")
    expect(page.locator("#source")).to_be_focused()
    many = [{"text": f"{i} ", "translation": "x", "from": "en", "to": "es"} for i in range(80)]
    page.evaluate("past => localStorage.setItem('translucid.history', JSON.stringify(past))", many)
    type_in(page, "They sing")
    page.click("#open-history")
    expect(page.locator("#history-list li")).to_have_count(50)
    assert page.locator("#history-list .one-line:not(.muted)").first.inner_text() == "They sing"
    page.get_by_role("button", name="Clear", exact=True).click()
    expect(page.locator("#history-list li")).to_have_count(0)
    assert page.evaluate("localStorage.getItem('translucid.history')") is None
    page.get_by_label("Keep a history").uncheck()
    page.keyboard.press("Escape")
    type_in(page, "I sing")
    page.click("#open-history")
    expect(page.locator("#history-list li")).to_have_count(0)
    page.reload()
    page.click("#open-history")
    expect(page.get_by_label("Keep a history")).not_to_be_checked()


@pytest.mark.parametrize(
    ("name", "kind", "text", "part"),
    [
        ("a.txt", "text/plain", "I like soccer", "texts"),
        ("long.txt", "text/plain", "I like soccer. " * 400, "documents"),
        ("a.html", "text/html", "<p>I like soccer</p>", "documents"),
    ],
)
def test_a_dropped_file_opens_in_the_right_section(page, name, kind, text, part):
    page.evaluate(DROP, [name, kind, text])
    expect(page.locator(f"#{part}")).to_be_visible()
    expect(page.locator("#drop-overlay")).to_be_hidden()
    if part == "texts":
        expect(page.locator("#source")).to_have_value(text)
        expect(page.locator("#translation")).not_to_be_empty()
    else:
        expect(page.locator("#document-name")).to_contain_text(name)
        page.evaluate("localStorage.clear()")


def test_shortcuts(page):
    type_in(page)
    page.locator("#source").press("?")
    expect(page.locator("#shortcuts-dialog")).to_be_hidden()
    page.locator("#source").press("Control+Shift+S")
    expect(page.locator("#source-language")).to_have_text("Spanish")
    page.locator("#swap").focus()
    page.keyboard.press("?")
    expect(page.locator("#shortcuts-dialog")).to_be_visible()
    assert "swap languages and texts" in page.inner_text("#shortcut-list")
    page.get_by_label("Single-key shortcuts").uncheck()
    page.keyboard.press("Escape")
    expect(page.locator("#swap")).to_be_focused()
    page.keyboard.press("s")
    expect(page.locator("#source-language")).to_have_text("Spanish")
    page.locator("#open-shortcuts").click()
    page.get_by_label("Single-key shortcuts").check()
    page.keyboard.press("Escape")
    page.keyboard.press("s")
    expect(page.locator("#source-language")).to_have_text("English")
    expect(page.locator("#source")).to_be_focused()
    page.locator("#swap").focus()
    page.keyboard.press("2")
    expect(page.locator("#documents")).to_be_visible()


def test_a_better_translation_goes_into_the_memory_of_a_server_that_has_one(page, address):
    expect(page.locator("#improve")).to_be_hidden()
    settings = page.evaluate("fetch('frontend/settings').then(answer => answer.json())")
    page.route("**/frontend/settings", lambda route: route.fulfill(json=settings | {"suggestions": True}))
    suggestions = asked(page, "suggest")
    page.route("**/suggest", lambda route: route.fulfill(json={"success": True}))
    page.reload()
    translation = type_in(page)
    page.get_by_role("button", name="Improve").click()
    better = page.get_by_label("a better translation")
    expect(better).to_be_focused()
    expect(better).to_have_value(translation)
    page.keyboard.press("Escape")
    expect(better).to_have_count(0)
    expect(page.locator("#improve")).to_be_focused()
    page.keyboard.press("Enter")
    better.fill("Me gusta el fútbol")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("#action-status")).to_have_text("Saved in the memory")
    expect(better).to_have_count(0)
    assert suggestions == [{"q": "I like soccer", "s": "Me gusta el fútbol", "source": "en", "target": "es"}]


@pytest.fixture
def timed(context, address):
    """A page whose clock the test controls; in a separate context, as a context has one clock for all its pages."""
    with fresh(context.browser) as page:
        page.goto(address)
        page.wait_for_selector("body.ready")
        page.clock.install(time=0)
        page.clock.pause_at(3_600)  # otherwise real time passes too
        yield page


def test_waiting_is_shown_after_a_while_and_superseded_requests_are_cancelled(timed):
    page = timed
    routes, cancelled = [], []
    page.on("requestfailed", lambda request: cancelled.append(request.post_data_json["q"]))
    page.route("**/look", lambda route: routes.append(route))
    page.fill("#source", "I like soccer")
    page.clock.run_for(260)
    assert not page.evaluate("document.querySelector('#texts').classList.contains('loading')")
    page.clock.run_for(350)
    assert page.evaluate("document.querySelector('#texts').classList.contains('loading')")
    page.clock.run_for(3000)
    expect(page.locator("#status")).to_contain_text("Still working")
    with page.expect_event("requestfailed"):
        page.fill("#source", "You sing")
        page.clock.run_for(300)
    assert cancelled == ["I like soccer"]
    page.unroute("**/look")
    page.route("**/look", lambda route: route.fulfill(json=LOOK | {"translation": "Cantas"}))
    page.fill("#source", "They sing")
    page.clock.run_for(300)
    expect(page.locator("#translation")).to_have_text("Cantas")
    assert not page.evaluate("document.querySelector('#texts').classList.contains('loading')")
    assert page.inner_text("#status") == ""


def test_the_page_waits_as_long_as_the_rate_limit_requires(timed):
    page = timed
    tries = asked(page)
    body = json.dumps({"error": "Slowdown: more than 60 requests a minute"})
    page.route("**/look", lambda route: route.fulfill(status=429, headers={"Retry-After": "30"}, body=body))
    page.fill("#source", "I like soccer")
    page.clock.run_for(300)
    expect(page.locator("#problem")).to_have_text("More than 60 requests a minute. The page tries again in 30 s.")
    page.unroute("**/look")
    page.clock.run_for(20_000)
    assert len(tries) == 1
    page.clock.run_for(11_000)
    expect(page.locator("#translation")).not_to_be_empty()
    assert page.inner_text("#problem") == ""


def test_the_layout_does_not_shift(context, wordy_run):
    """Chromium measures almost no layout shift between the empty page and the translation."""
    with serving(str(wordy_run)) as server_url, watched(context, server_url) as page:
        page.wait_for_selector("body.ready")
        page.evaluate("""() => {
          globalThis.shifts = [];
          new PerformanceObserver((list) => shifts.push(...list.getEntries().map(({ value }) => value)))
            .observe({ type: "layout-shift", buffered: true });
        }""")
        heights = "() => [...document.querySelectorAll('.pane')].map((one) => one.offsetHeight)"
        before = page.evaluate(heights)[:2]
        type_in(page)
        assert page.evaluate(heights)[:2] == before and before[0] == before[1]
        page.wait_for_timeout(300)
        assert sum(page.evaluate("shifts")) < 0.02


def test_right_to_left(context, run):
    with serving(f"en-ar={run}", f"he-en={run}") as server_url, watched(context, server_url) as page:
        page.wait_for_selector("body.ready")
        directions = (
            "() => ['source-pane', 'source', 'target-pane', 'translation'].map((id) => document.getElementById(id).dir)"
        )
        assert page.evaluate(directions) == ["ltr", "ltr", "rtl", "rtl"]
        between = "getComputedStyle(document.getElementById('target-pane')).borderWidth"
        assert page.evaluate(between) == "0px 0px 0px 1px"  # the border between the panes
        page.evaluate("document.documentElement.dir = 'rtl'")
        assert page.evaluate(between) == "0px 1px 0px 0px"
        page.evaluate("document.documentElement.dir = 'ltr'")
        page.select_option("#from", "he")
        assert page.evaluate(directions) == ["rtl", "rtl", "rtl", "rtl"]  # through English
        page.select_option("#to", "en")
        assert page.evaluate(directions) == ["rtl", "rtl", "ltr", "ltr"]
        page.fill("#source", "שלום")
        expect(page.locator("#translation")).not_to_be_empty()
        assert page.evaluate(directions) == ["rtl", "auto", "ltr", "auto"]
        clear, area = page.locator("#clear").bounding_box(), page.locator("#source").bounding_box()
        assert clear["x"] < area["x"] + 60
        assert free_of_the_button(page)
        page.fill("#source", "This runs from left to right. " * 6)  # in a pane that runs the other way
        assert free_of_the_button(page)
        page.select_option("#from", "en")
        page.fill("#source", "שלום עולם " * 12)
        assert free_of_the_button(page)
        page.set_viewport_size({"width": 360, "height": 740})
        assert free_of_the_button(page)


def free_of_the_button(page):
    """Return whether the button that clears the text covers no text."""
    clear, area = page.locator("#clear").bounding_box(), page.locator("#source").bounding_box()
    sides = page.locator("#source").evaluate(
        "(one) => ['paddingLeft', 'paddingRight'].map((side) => parseFloat(getComputedStyle(one)[side]))"
    )
    left, right = area["x"] + sides[0], area["x"] + area["width"] - sides[1]
    return clear["x"] >= right or clear["x"] + clear["width"] <= left
