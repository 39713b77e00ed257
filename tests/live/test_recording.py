"""The staircase, and saved sessions that play again, in a real browser."""

import copy

import pytest
from playwright.sync_api import expect

from translucid.live import latency
from translucid.live.saved_page import recording_page, section_files

PIECE = {"piece": "▁gus", "row": []}
SENTENCE = {
    "source": ["I", "like", "soccer."],
    "target": ["Me", "gusta", "fútbol."],
    "text": "Me gusta fútbol.",
    "delays": [2, 3, 3],
    "ended": True,
    "written": [
        {"words": [0], "text": "Me", "heard": 2, "row": [0.8, 0.2], "probability": 0.9, "pieces": []},
        {"words": [1], "text": "gusta", "heard": 3, "row": [0.1, 0.86, 0.04], "probability": 0.9, "pieces": []},
        {"words": [2], "text": "fútbol.", "heard": 3, "row": [0.0, 0.1, 0.9], "probability": 0.9, "pieces": []},
    ],
    "refused": [
        {
            "word": 0,
            "text": "Me",
            "heard": 1,
            "row": [0.9],
            "piece": PIECE,
            "evidence": {"argmax": 0, "frontier": 0, "mass": 0.9, "alpha": 0.3, "needs": 2, "agreeing": 0},
        },
        {
            "word": 1,
            "text": "gus",
            "heard": 2,
            "row": [0.1, 0.9],
            "piece": PIECE,
            "evidence": {"argmax": 2, "frontier": 1, "mass": 0.9, "alpha": 0.3, "needs": 3, "agreeing": 0},
        },
    ],
    # The words of the pieces: the second has two.
    "heard": {
        "1": {"pieces": ["▁I"], "words": [0]},
        "2": {"pieces": ["▁I", "▁li", "ke"], "words": [0, 1, 1]},
        "3": {"pieces": ["▁I", "▁li", "ke", "▁soccer."], "words": [0, 1, 1, 2]},
    },
}
RECORD = {
    "model": "runs/demo",
    "languages": ["en", "es"],
    "policy": "alignatt",
    "lag": 1,
    "attention": "decoder.1.cross",
    "sentences": [SENTENCE],
}
REASONS = {
    "alignatt": "it attends most to like, the last word heard.",
    "edatt": "90 % of its attention is on the last word heard; from 30 % on, it waits.",
    "wait-k": "it needs 3 source words.",
    "agreement": "0 of 3 earlier hypotheses begin with it.",
    "whole": "this policy waits for the end of the sentence.",
}


@pytest.fixture
def page(context):
    opened = context.new_page()
    problems = []
    opened.on("console", lambda message: problems.append(message.text))
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on("request", lambda request: problems.append(request.url))
    yield opened
    opened.close()
    assert problems == []


def rows(page):
    """Return the words of the visible rows, and for each the signs of its cells."""
    signs = {"unheard": "-", "forbidden": "!", "step": "s", "frontier": "f"}
    found = []
    for row in page.locator(".staircase tbody tr:visible").all():
        cells = row.locator("td").evaluate_all("cells => cells.map(cell => [cell.textContent, ...cell.classList])")
        marked = [text + "".join(sorted(signs[name] for name in names)) for text, *names in cells]
        found.append((row.locator("th").inner_text(), marked))
    return found


def to_step(page, step):
    page.get_by_role("slider").evaluate(
        "(slider, step) => { slider.value = step; slider.dispatchEvent(new Event('input')); }", step
    )


def test_a_recording_plays_and_shows_what_was_heard_and_what_waited(page):
    page.set_content(recording_page(RECORD))
    assert rows(page) == []
    lagging = latency(SENTENCE["delays"], 3).al
    assert f"average lagging {lagging:.1f} words" in page.inner_text("main")
    to_step(page, 1)
    assert page.inner_text(".step-description") == "heard: like; written: Me"
    assert page.locator(".source .upcoming").all_inner_texts() == [" soccer."]
    assert rows(page) == [("Me", ["80", "20!f", "-"])]
    page.get_by_role("button", name="Play").click()
    expect(page.locator(".step-description")).to_have_text("the sentence ends; written: gusta fútbol.")
    assert page.inner_text(".target") == "Me gusta fútbol."
    assert rows(page) == [("Me", ["80", "20!f", "-"]), ("gusta", ["10", "86", "fs"]), ("fútbol.", ["", "10", "90f"])]
    page.get_by_role("button", name="gusta", expanded=False).click()
    expect(page.get_by_role("button", name="gusta", expanded=True)).to_be_focused()
    assert [word for word, _ in rows(page)] == ["Me", "gus", "gusta", "fútbol."]
    assert rows(page)[1][1] == ["10", "90!f", "-"]
    page.keyboard.press("ArrowUp")
    assert page.inner_text(".description") == f"gus waited when 2 words had been heard: {REASONS['alignatt']}"
    page.keyboard.press("Home")
    expect(page.locator(".description")).to_have_text(
        "Me was written when 2 words had been heard. It attends to I 80 %, like 20 %."
    )
    page.get_by_label("Show all words that waited").check()
    assert [word for word, _ in rows(page)] == ["Me", "Me", "gus", "gusta", "fútbol."]


def test_a_sentence_that_was_saved_before_its_end_does_not_end(page):
    sentence = {**SENTENCE, "ended": False, "written": SENTENCE["written"][:1], "target": ["Me"], "delays": [2]}
    page.set_content(recording_page({**RECORD, "sentences": [sentence]}))
    page.get_by_role("button", name="Play").click()
    expect(page.locator(".step-description")).to_have_text("heard: soccer.; nothing written")
    expect(page.get_by_role("button", name="Play")).to_be_visible()


def test_each_policy_says_why_a_word_waited(page):
    for policy, reason in REASONS.items():
        page.set_content(recording_page({**RECORD, "policy": policy}))
        waited = page.locator(".staircase .waited button").nth(1)
        assert waited.get_attribute("aria-label") == f"gus waited when 2 words had been heard: {reason}"
        # Only attention can be in a forbidden zone.
        assert page.locator(".staircase .forbidden").count() == (3 if policy in ("alignatt", "edatt") else 0)


def test_the_end_token_a_sign_and_scripts_without_spaces(page):
    record = copy.deepcopy(RECORD)
    (sentence,) = record["sentences"]
    sentence.update(source=["爱", "你"], text="أحبك.", target=["أحبك."], delays=[2], refused=[])
    word = {"words": [0], "text": "أحبك", "heard": 1, "row": [0.9], "probability": 0.9, "pieces": []}
    sign = {"words": [0], "text": ".", "heard": 2, "row": [0.1, 0.9], "probability": 0.9, "pieces": []}
    end = {"word": 0, "text": "", "heard": 2, "row": [0.5, 0.1], "piece": {"piece": "</s>", "row": []}, "evidence": {}}
    sentence.update(written=[word, sign], refused=[end])
    page.set_content(recording_page(record))
    to_step(page, 2)
    assert page.inner_text(".source") == "爱你"
    assert page.inner_text(".target") == "أحبك."
    assert page.locator(".target").get_attribute("dir") == "rtl"
    page.get_by_label("Show all words that waited").check()
    assert [row for row, _ in rows(page)] == ["أحبك", "(end)", "."]
    label = page.locator(".waited button").get_attribute("aria-label")
    assert label.endswith("the end of the translation waits for the end of the sentence.")
    for text, order in (
        ("我", ["我", "(end)"]),
        ("yo", ["(end)", "yo"]),
    ):  # a word in letters is written when it is complete
        sentence.update(source=["I"], text=text, written=[{**word, "text": text}], refused=[{**end, "heard": 1}])
        page.set_content(recording_page(record))
        assert page.locator(".staircase tbody th").all_text_contents() == order


def test_a_refused_sign_follows_the_word_that_it_belongs_to(page):
    record = copy.deepcopy(RECORD)
    (sentence,) = record["sentences"]
    word = {"words": [0], "text": "Hola", "heard": 1, "row": [0.9], "probability": 0.9, "pieces": []}
    sign = {"words": [0], "text": "!", "heard": 1, "row": [0.9], "probability": 0.9, "pieces": []}
    refused = {**SENTENCE["refused"][0], "text": "!"}
    sentence.update(source=["Hi"], text="Hola!", target=["Hola!"], delays=[1], written=[word, sign], refused=[refused])
    page.set_content(recording_page(record))
    assert page.locator(".staircase tbody th").all_text_contents() == ["Hola", "!", "!"]
    assert page.locator(".staircase tbody tr").nth(1).get_attribute("class").split()[0] == "waited"
    assert page.locator(".recorded-text.target").text_content() == " Hola!"


def test_a_text_is_not_a_script(page):
    record = copy.deepcopy(RECORD)
    word = "</script><img src=http://elsewhere/>"
    record["sentences"][0]["source"][0] = word
    page.set_content(recording_page(record))
    assert page.locator(".staircase thead th").first.text_content() == word
    assert page.locator("img").count() == 0


def test_the_files_of_the_page():
    files = section_files()
    assert {"live_section.js", "live_connection.js", "staircase.js", "recording.js", "staircase.css"} <= set(files)
    assert '<script type="application/json" id="record">null</script>' in files["recording.html"]
