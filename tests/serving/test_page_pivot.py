"""The page of a server with a pair that two models translate together: it names the pivot and shows both steps."""

import pytest
from playwright.sync_api import expect

from translucid import PivotTranslator, Translator

from .test_clients import serving
from .test_page import watched

TEXT = "I like soccer."


@pytest.fixture(scope="module")
def names(pivot_runs):
    return [str(pivot_runs / name) for name in ("es-en", "en-fr")]


@pytest.fixture(scope="module")
def pivot_address(names):
    with serving(*names) as server_url:
        yield server_url


@pytest.fixture
def page(context, pivot_address):
    with watched(context, pivot_address) as opened:
        yield opened


@pytest.fixture(scope="module")
def translation(names):
    return PivotTranslator(*[Translator.load(name, "cpu") for name in names]).translate(TEXT)


def choose(page, source, target):
    page.get_by_label("From", exact=True).select_option(source)
    page.get_by_label("To", exact=True).select_option(target)


def test_languages_choose_the_models(page):
    expect(page.get_by_label("From", exact=True).locator("option")).to_have_text(
        ["Detect language", "English", "Spanish"]
    )
    choose(page, "Spanish", "French")
    expect(page.locator("#model-name")).to_have_text("es-en + en-fr")
    expect(page.locator("#swap")).to_be_disabled()
    models = page.locator("#model option").all_text_contents()
    assert models[2] == "es-en + en-fr (es → en → fr)"
    choose(page, "Spanish", "English")  # a direct model takes precedence
    expect(page.locator("#model-name")).to_have_text("es-en")


def test_both_steps_are_shown(page, translation):
    choose(page, "Spanish", "French")
    page.get_by_label("Spanish").fill(TEXT)
    expect(page.locator("#translation")).to_have_text(translation.text)
    expect(page.locator("#pivot-note")).to_have_text(f"Translated through English: {translation.first.text}")
    headings = page.locator("#inspection h3").all_inner_texts()
    assert headings == ["Spanish → English (es-en)", "English → French (en-fr)"]
    for selector, text in (("#attention", translation.first.text), ("#compared-attention", translation.text)):
        expect(page.locator(f"{selector} .below .word").first).to_be_visible()
        assert "".join(page.locator(f"{selector} .below .word").all_inner_texts()).startswith(text.split()[0])
    choose(page, "Spanish", "English")
    expect(page.locator("#pivot-note")).to_be_hidden()


def test_the_second_step_follows_another_choice_in_the_first(page, translation):
    choose(page, "Spanish", "French")
    page.get_by_label("Spanish").fill(TEXT)
    expect(page.locator("#translation")).to_have_text(translation.text)
    page.locator("#attention .below .word").first.click()
    page.locator("#attention .continuations button").nth(3).click()
    expect(page.locator("#pivot-note")).not_to_have_text(f"Translated through English: {translation.first.text}")
    expect(page.locator("#translation")).not_to_have_text(translation.text)
    with page.expect_response("**/look"):
        page.locator("#compared-attention .below .word").first.click()
        page.locator("#compared-attention .continuations button").nth(2).click()
    assert page.inner_text("#problem") == ""


def test_the_source_is_detected(page):
    page.get_by_label("To", exact=True).select_option("French")
    page.get_by_label("From", exact=True).select_option("Detect language")
    page.locator("#source").fill("Ayer por la tarde fuimos a la playa con nuestros amigos.")
    expect(page.locator("#detected-language")).to_have_text("detected: Spanish")
    expect(page.locator("#pivot-note")).to_contain_text("Translated through English")
