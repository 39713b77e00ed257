"""The section of the page for classifiers and language models."""

from itertools import pairwise

import pytest
from playwright.sync_api import expect

from .test_clients import serving
from .test_page import watched
from .test_text_models import BAD, case_of, models  # noqa: F401


@pytest.fixture(scope="module")
def address(models):  # noqa: F811
    with serving(*models) as server_url:
        yield server_url


def test_the_page_shows_labels_words_and_considered_pieces(context, address, models):  # noqa: F811
    with watched(context, address) as page:
        expect(page.locator("#text-models")).to_be_visible()
        expect(page.locator("#section-nav")).to_be_hidden()
        page.fill("#input-text", BAD)
        expect(page.locator("#labels b").first).to_have_text("bad")
        words = page.locator("#classified-words span")
        assert words.all_inner_texts() == BAD.split()
        after = [0.5, *case_of(models[0], "bad").unfolding().tolist()]
        rises = [now - before for before, now in pairwise(after)]
        highest = words.nth(rises.index(max(rises)))
        assert "rgba(37, 99, 235" in highest.evaluate("one => getComputedStyle(one).backgroundColor")
        page.select_option("#explanation-method", "erasure")
        expect(page.locator("#classification-note")).to_contain_text("words support bad")
        page.fill("#input-text", "the film")
        page.click("#generate")
        expect(page.locator("#generated-text button").first).to_be_visible()
        page.locator("#generated-text button").first.hover()
        expect(page.locator("#alternatives li")).to_have_count(6)
        pieces = [{"piece": piece, "probability": 0.5, "considered": []} for piece in ("▁was", "▁good", "ness", "</s>")]
        page.route("**/generate", lambda route: route.fulfill(json={"pieces": pieces, "backwards": False}))
        page.click("#generate")
        expect(page.locator("#generated-text")).to_have_text("the film was goodness (end)", use_inner_text=True)


def test_the_page_of_several_kinds_of_models_has_sections(context, models, run):  # noqa: F811
    with serving(str(run), *models) as server_url, watched(context, server_url) as page:
        expect(page.locator("#texts")).to_be_visible()
        expect(page.locator("#show-images")).to_be_hidden()
        page.click("#show-text-models")
        expect(page.locator("#text-models")).to_be_visible()
        expect(page.locator("#texts")).to_be_hidden()
