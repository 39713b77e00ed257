"""The page of a server with API keys or rate limits: it asks for a key, and stays within the limits."""

import json
from contextlib import ExitStack

import pytest
from playwright.sync_api import expect

from translucid.serving.server_options import Quota

from .test_clients import serving
from .test_page import fresh

WORDS = "They like soccer and music and the dogs of the teacher"


@pytest.fixture
def opened(context):
    """Open a page: opened(address). The page must report no script error."""
    problems = []
    with ExitStack() as pages:

        def start(url, opener=context):
            page = pages.enter_context(fresh(opener))
            page.emulate_media(reduced_motion="reduce")
            page.on("pageerror", lambda error: problems.append(str(error)))
            page.goto(url)
            page.wait_for_selector("body.ready")
            return page

        yield start
    assert problems == []


def test_the_page_asks_for_a_key_and_stores_it_for_the_session(opened, run):
    with serving(str(run), api_keys={"secret": None}) as server_url:
        page = opened(server_url)
        field, problem = page.get_by_label("API key", exact=True), page.locator("#api-key-problem")
        expect(field).to_be_visible()
        field.fill("wrong")
        field.press("Enter")
        expect(problem).to_have_text("Invalid API key.")
        expect(field).to_have_attribute("aria-invalid", "true")
        expect(field).to_be_focused()
        field.fill("secret")
        page.get_by_role("button", name="Save", exact=True).click()
        expect(field).to_be_hidden()
        page.fill("#source", "You sing")
        expect(page.locator("#translation")).not_to_be_empty()
        page.reload()
        expect(page.locator("#translation")).not_to_be_empty()
        expect(field).to_be_hidden()
        assert "secret" not in json.dumps(page.evaluate("({ ...localStorage })"))
        # As if the keys of the server had changed.
        page.evaluate("sessionStorage.setItem('translucid.key', JSON.stringify('old'))")
        page.reload()
        page.fill("#source", "They sing")
        expect(field).to_be_visible()
        expect(problem).to_have_text("Invalid API key.")
        expect(page.locator("#problem")).to_contain_text("requires an API key")


def test_typing_and_viewing_stay_within_the_rate_limit(opened, context, run):
    """Typing a letter every 0.4 s and then opening every view takes less than 30 requests a minute."""
    with serving(str(run), quota=Quota(per_minute=30)) as server_url:
        page = opened(server_url, context.browser)
        refused, looks = [], []
        page.on("response", lambda response: refused.append(response.url) if response.status == 429 else None)
        page.on("request", lambda request: looks.append(request) if request.url.endswith("/look") else None)
        page.clock.install()
        for i in range(len(WORDS)):
            page.fill("#source", WORDS[: i + 1])
            page.clock.run_for(400)
        words = page.locator("#attention .above .word")
        for _ in range(30):  # the clock of the page runs ahead of the server, whose answers take real time
            page.clock.run_for(1_000)
            page.wait_for_timeout(200)
            if words.all_inner_texts() == [*WORDS.split(), "</s>"]:
                break
        expect(words).to_have_text([*WORDS.split(), "</s>"])
        assert len(looks) < 30
        for name, shown in (("Heads", ".thumbnail"), ("Steps", ".tree .node"), ("Why", ".measure")):
            page.get_by_role("tab", name=name).click()
            expect(page.locator(shown).first).to_be_visible(timeout=30_000)
        assert refused == [] and page.inner_text("#problem") == ""


@pytest.mark.parametrize("api_keys", [{}, {"secret": None}])
def test_typing_stays_within_the_rate_limit_if_the_server_never_answers(opened, context, run, api_keys):
    with serving(str(run), quota=Quota(per_minute=30), api_keys=api_keys) as server_url:
        page = opened(server_url, context.browser)
        if api_keys:
            page.get_by_label("API key", exact=True).fill("secret")
            page.get_by_role("button", name="Save", exact=True).click()
            expect(page.locator("#api-key-form")).to_be_hidden()
            with page.expect_response("**/frontend/key"):
                page.reload()
            page.wait_for_selector("body.ready")
        looks = []
        page.route("**/look", lambda route: looks.append(route))
        page.clock.install()
        for i in range(len(WORDS)):
            page.fill("#source", WORDS[: i + 1])
            page.clock.run_for(400)
        assert 10 < len(looks) <= 20


def test_a_trailing_space_sends_no_request_and_without_keys_there_is_no_key_field(opened, run):
    with serving(str(run)) as server_url:
        page = opened(server_url)
        for part in ("#api-key-form", "#open-api-key"):
            expect(page.locator(part)).to_be_hidden()
        looks = []
        page.on(
            "request",
            lambda request: looks.append(request.post_data_json["q"]) if request.url.endswith("/look") else None,
        )
        page.fill("#source", "You sing")
        expect(page.locator("#translation")).not_to_be_empty()
        page.locator("#source").press("End")
        page.keyboard.type(" ")
        page.wait_for_timeout(600)
        assert looks == ["You sing"]


def test_a_long_text_takes_few_requests_and_its_doubts_are_shown(opened, run):
    with serving(str(run)) as server_url:
        page = opened(server_url)
        requests = []
        page.on(
            "request",
            lambda request: requests.append(request.post_data_json) if request.url.endswith("/translate") else None,
        )

        def translate(route):
            count = len(route.request.post_data_json["q"])
            route.fulfill(json={"translatedText": ["Cantas."] * count, "confidence": [0.2, *[0.9] * (count - 1)]})

        page.route("**/translate", translate)
        page.fill("#source", "You sing.\n\n" * 200)
        expect(page.locator("#translation")).to_have_text("Cantas.\n\n" * 200)
        assert len(requests) <= 4 and sum(len(fields["q"]) for fields in requests) == 200
        assert page.locator("#translation .doubtful").count() == len(requests)
