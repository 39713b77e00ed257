"""The section for live translation on the server's page, in a real browser."""

import json
from itertools import pairwise

import pytest
from playwright.sync_api import expect

from translucid.api.translator import Translator
from translucid.models import kinds

from .test_clients import address  # noqa: F401
from .test_page import fresh, watched

TEXT = "I like soccer and also going to the beach. She sings in the garden."
FILES = {"PNG": b"\x89PNG", "SVG": b"<svg", "JSON": b"{", "HTML": b"<!doctype html>"}
LOG = """() => {
  globalThis.log = [];
  const output = document.querySelector(".live-output");
  new MutationObserver(() => log.push(output.textContent)).observe(output, { childList: true, subtree: true });
}"""


@pytest.fixture(scope="module")
def translator(run):
    return Translator.load(run)


@pytest.fixture
def page(context, address):  # noqa: F811
    with watched(
        context, f"{address}/#live", allowed=(address, address.replace("http", "ws"), "data:", "blob:")
    ) as opened:
        opened.wait_for_selector("#live-text")
        opened.evaluate(LOG)
        yield opened


def ended(page):
    """Wait until the session has ended; return what is written."""
    expect(page.locator("#live .end")).to_contain_text("Average lagging")
    expect(page.locator("#live .staircase tbody tr.waited:visible")).to_have_count(0)
    return page.inner_text(".live-output")


def test_words_are_written_while_they_are_typed_as_by_the_session(page, translator):
    session = translator.live("alignatt", lag=2)
    written = session.read(TEXT) + session.finish()
    page.locator("#live-text").press_sequentially(TEXT)
    page.keyboard.press("Control+Enter")
    expect(page.locator(".live-output")).to_have_text(written)  # both sentences have ended
    assert ended(page) == written
    log = page.evaluate("log")
    assert log[-1] == written and all(later.startswith(earlier) for earlier, later in pairwise(log))
    record = json.loads(saved(page)["JSON"])
    expected = session.record
    assert record["sentences"] == expected["sentences"]
    assert [record[name] for name in ("model", "policy", "lag")] == ["tiny", "alignatt", 2]
    output = page.locator(".live-output")
    assert [output.get_attribute(name) for name in ("role", "aria-live", "lang")] == ["log", "polite", "es"]


def saved(page):
    """Save the staircase in each format; return the contents of the files."""
    contents = {}
    for kind, start in FILES.items():
        with page.expect_download() as download:
            page.get_by_role("button", name=f"save as {kind}").click()
        contents[kind] = download.value.path().read_bytes()
        assert contents[kind].startswith(start), kind
        assert download.value.suggested_filename == f"live-translation.{kind.lower()}"
    return contents


def test_a_saved_session_plays_again_without_a_network(page, context):
    page.fill("#live-text", "She sings in the garden.")
    page.keyboard.press("Control+Enter")
    written = ended(page)
    visible = page.locator("#live .staircase tbody tr:visible th").all_inner_texts()
    contents = saved(page)
    svg = contents["SVG"].decode()
    assert all(f">{word}<" in svg for word in [*visible, "She", "garden."])
    requests = []
    with fresh(context) as other:
        other.on("request", lambda request: requests.append(request.url))
        other.set_content(contents["HTML"].decode())
        assert other.title() == written
        other.get_by_role("button", name="Play").click()
        expect(other.locator(".step-description")).to_contain_text("the sentence ends")
        assert other.inner_text(".target") == written
        assert other.locator(".staircase tbody tr:visible th").all_inner_texts() == visible
        other.goto(page.url)  # `fresh` clears its storage
    assert [url for url in requests if not url.startswith(page.url.split("#")[0])] == []


def test_the_lag_the_policy_and_changed_words_begin_again(page, translator):
    page.fill("#live-text", "I like soccer ")
    expect(page.locator("#live .staircase thead th")).to_have_count(3)
    page.get_by_label("Lag").fill("0")
    session = translator.live("alignatt", lag=0)
    expect(page.locator(".live-output")).to_have_text(session.read("I like soccer "))
    page.get_by_label("Policy").select_option("whole")
    expect(page.locator(".live-output")).to_be_empty()
    expect(page.locator("#live .staircase thead th")).to_have_count(3)
    expect(page.locator("#live .staircase tbody tr.written")).to_have_count(0)
    page.get_by_role("button", name="End the sentence").click()
    session = translator.live("whole")
    expect(page.locator(".live-output")).to_have_text(session.read("I like soccer ") + session.finish())
    page.fill("#live-text", "She sings ")  # other words than those heard
    expect(page.locator("#live .staircase thead th")).to_have_text(["She", "sings"])
    expect(page.locator(".live-output")).to_be_empty()
    page.get_by_role("button", name="Clear").click()
    expect(page.locator("#live .staircase")).to_be_hidden()
    expect(page.locator("#live-text")).to_be_focused()


def test_a_text_is_played_word_by_word(page):
    text = "I like soccer and also going to the beach."
    page.fill("#live-text", text)
    page.get_by_role("button", name="Play").click()
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    assert ended(page)
    assert page.input_value("#live-text") == text
    heard = page.locator("#live .staircase tbody tr").count()
    assert heard > 5
    long_text = " ".join([text] * 12)
    page.fill("#live-text", long_text)
    page.get_by_role("button", name="Play").click()
    page.get_by_role("button", name="Stop").click()
    assert page.input_value("#live-text") == long_text  # what was not played is not lost
    assert page.locator("#live .staircase thead th").count() < 1 + len(long_text.split())


def test_errors_are_shown_and_the_next_text_begins_again(context, address):  # noqa: F811
    with fresh(context) as page:
        sockets = []
        page.route_web_socket("**/live", lambda socket: sockets.append(socket))
        page.goto(f"{address}/#live")
        page.fill("#live-text", "I like ")
        page.wait_for_timeout(100)
        sockets[0].send(json.dumps({"text": "Me", "delays": [1], "finished": False}))
        expect(page.locator(".live-output")).to_have_text("Me")
        sockets[0].send(json.dumps({"error": "Slowdown: more than 60 requests a minute", "status": 429}))
        expect(page.locator("#live .problem")).to_have_text("More than 60 requests a minute.")
        assert page.inner_text(".live-output") == "Me"
        page.locator("#live-text").press_sequentially("soccer")
        assert len(sockets) == 1
        page.keyboard.press("Space")
        expect(page.locator(".live-output")).to_be_empty()
        expect(page.locator("#live .problem")).to_be_empty()
        sockets[1].close()
        expect(page.locator("#live .problem")).to_contain_text("was closed")
        page.keyboard.type("a ")
        page.wait_for_timeout(100)
        sockets[2].send(json.dumps({"text": "", "delays": [], "messages": ["a sentence had no end"]}))
        expect(page.locator("#live .hint").last).to_have_text("A sentence had no end.")


def test_the_section_is_loaded_when_it_is_opened_and_only_if_there_is_one(context, address, monkeypatch):  # noqa: F811
    with fresh(context) as page:
        requests = []
        page.on("request", lambda request: requests.append(request.url.rpartition("/")[2]))
        page.goto(address)
        page.wait_for_selector("body.ready")
        assert "live_section.js" not in requests
        page.keyboard.press("Tab")
        page.click("#show-live")
        page.wait_for_selector("#live-text")
        assert requests.count("live_section.js") == 1
        page.click("#show-texts")
        page.click("#show-live")
        expect(page.locator("#live-text")).to_have_count(1)
        assert page.url.endswith("#live")
        settings = page.evaluate("fetch('frontend/settings').then((answer) => answer.json())")
        assert [section["name"] for section in settings["sections"]] == ["live"]
        page.route("**/frontend/settings", lambda route: route.fulfill(json={**settings, "sections": []}))
        page.goto(f"{address}/docs")
        page.goto(address)
        page.wait_for_selector("body.ready")
        assert page.locator("#show-live").count() == 0
    monkeypatch.setattr(kinds, "extensions", lambda: ())
    assert kinds.page_sections() == []


def test_without_websockets_messages_are_requests_and_events(context, address, translator):  # noqa: F811
    with fresh(context) as page:
        page.add_init_script(
            "globalThis.WebSocket = class extends WebSocket { constructor() { super(`ws://${location.host}/health`) } }"
        )
        page.goto(f"{address}/#live")
        page.fill("#live-text", TEXT)
        page.keyboard.press("Control+Enter")
        session = translator.live("alignatt", lag=2)
        written = session.read(TEXT) + session.finish()
        expect(page.locator(".live-output")).to_have_text(written)
        assert ended(page) == written
        for path, fields in (
            ("live", {"source": "en", "target": "es", "session": "stage"}),
            ("live/stage", {"text": TEXT}),
        ):
            assert page.request.post(f"{address}/{path}", data=fields).ok
        page.goto(f"{address}/live?overlay&session=stage")
        expect(page.locator("#lines")).to_contain_text(written.split()[2])
