"""The document editor in a real browser: upload, correction, acceptance and download; a reload loses nothing."""

import csv
import re
import time

import pytest
from playwright.sync_api import expect

from tests.probes.fonts import set_in_a_wide_font
from translucid.serving import documents

from .test_clients import address, serving  # noqa: F401
from .test_page import fresh, watched

TEXT = "I like soccer.\nYou sing.\nI like 足球.\n"


@pytest.fixture
def page(context, address):  # noqa: F811
    with watched(context, address) as opened:
        yield opened


def choose(page, content=TEXT, name="notes.txt", kind="text/plain"):
    page.get_by_role("button", name="Documents").click()
    page.set_input_files("#document-file", {"name": name, "mimeType": kind, "buffer": content.encode()})
    expect(page.locator("#document-download")).to_be_visible(timeout=30_000)
    expect(page.locator("#segments textarea").first).to_be_enabled()


def downloaded(page):
    with page.expect_download() as download:
        page.locator("#document-download").click()
    return download.value.suggested_filename, download.value.path().read_text()


def texts(page):
    return page.locator("#segments textarea").evaluate_all("areas => areas.map(area => area.value)")


def test_source_and_target_segments_are_side_by_side(page):
    choose(page)
    assert page.inner_text("#document-name") == "notes.txt (text)"
    assert page.locator("#segments .output").all_inner_texts() == TEXT.splitlines()
    name, text = downloaded(page)
    assert (name, text.splitlines()) == ("notes_es.txt", texts(page))
    assert page.locator("#document-drop").bounding_box()["height"] < 60  # there is room for the document
    doubtful = page.locator("#segments li.doubtful")
    assert "unknown characters: 足 球" in doubtful.last.inner_text()
    page.get_by_label("Segments to show").select_option("doubtful")
    expect(page.locator("#segments li:not(.doubtful)")).to_have_count(0)
    count = page.locator("#segments li.doubtful").count()
    assert count >= 1
    expect(page.locator("#segment-range")).to_have_text(f"1 to {count} of {count}")
    expect(page.get_by_label("Next segments")).to_be_disabled()


def test_messages_of_the_server_are_in_the_language_of_the_page(page):
    page.goto(f"{page.url.partition('#')[0]}?lang=de")
    page.get_by_role("button", name="Dokumente").click()
    expect(page.locator("#document-kinds")).to_contain_text("SubRip-Untertitel.srt")
    page.set_input_files("#document-file", {"name": "notes.txt", "mimeType": "text/plain", "buffer": TEXT.encode()})
    expect(page.locator("#document-name")).to_have_text("notes.txt (Text)")
    last = page.locator("#segments li").last
    expect(last).to_contain_text("3 · Zeile 3")
    expect(last).to_contain_text("unbekannte Zeichen: 足 球")
    page.set_input_files("#document-file", {"name": "old.doc", "mimeType": "text/plain", "buffer": b"I sing."})
    problem = "'old.doc' ist von keiner Art, die hier übersetzt wird. Speichern Sie die Datei als .docx"
    expect(page.locator("#document-problem")).to_contain_text(problem)
    page.get_by_role("button", name="Text", exact=True).click()
    page.fill("#source", "I like 足球")
    expect(page.locator("#warnings")).to_contain_text("unbekannte Zeichen: 足 球")


def test_all_segments_are_accepted_at_once_except_doubtful_ones(page):
    choose(page)
    doubtful = page.locator("#segments li.doubtful").count()
    expect(page.locator("#document-status")).to_have_text("0 of 3 segments accepted")
    page.locator("#segments textarea").first.fill("Typed.")
    page.get_by_role("button", name="Accept all").click()
    expect(page.locator("#accept-doubtful-text")).to_have_text(f"also those to check ({doubtful})")
    page.locator("#accept-doubtful").uncheck()
    page.locator("#confirm-accept-all").click()
    expect(page.locator("#segments li").first).to_have_class("accepted")
    accepted = 3 - page.locator("#segments li.doubtful").count()
    expect(page.locator("#document-status")).to_have_text(f"{accepted} of 3 segments accepted")
    assert downloaded(page)[1].startswith("Typed.\n")
    page.get_by_role("button", name="Accept all").click()
    expect(page.locator("#accept-all-dialog")).to_be_visible()
    page.locator("#accept-doubtful").check()
    page.locator("#confirm-accept-all").click()
    expect(page.locator("#segments li.accepted")).to_have_count(3)
    expect(page.locator("#accept-all")).to_be_hidden()
    expect(page.locator("#document-progress")).to_have_js_property("value", 1)
    for count in (accepted, 0):
        page.keyboard.press("Control+z")
        expect(page.locator("#document-status")).to_contain_text(f"{count} of 3")
    expect(page.locator("#segments li").first).to_have_class(re.compile("draft"))
    page.keyboard.press("Control+Shift+z")
    expect(page.locator("#document-status")).to_contain_text(f"{accepted} of 3")
    expect(page.locator("#segments li").first).to_have_class("accepted")


def test_segments_are_edited_by_keyboard_alone(page):
    choose(page)
    areas = page.locator("#segments textarea")
    before = texts(page)
    warning = page.locator("#segments li").nth(2).locator(".doubts").inner_text()
    areas.first.focus()
    page.keyboard.press("Control+a")
    page.keyboard.type("Me encanta")
    expect(page.locator("#segments li").first).to_have_class(re.compile("draft"))
    page.keyboard.press("Escape")
    assert texts(page) == before
    page.keyboard.press("Control+a")
    page.keyboard.type("Me encanta.")
    page.keyboard.press("Enter")
    expect(areas.nth(1)).to_be_focused()
    expect(page.locator("#segments li").first).to_have_class("accepted")
    page.keyboard.press("ArrowDown")
    expect(areas.nth(2)).to_be_focused()
    page.keyboard.press("Control+Home")
    page.keyboard.press("ArrowUp")
    expect(areas.nth(1)).to_be_focused()
    page.keyboard.press("Control+Enter")  # accepts the segment unchanged
    expect(page.locator("#segments li").nth(1)).to_have_class("accepted")
    expect(areas.nth(2)).to_be_focused()
    page.keyboard.press("Enter")
    third = page.locator("#segments li").nth(2)
    expect(third).to_have_class("accepted")
    assert third.locator(".doubts").inner_text() == warning != ""
    assert "edited" not in third.inner_text() and third.locator("p.hint").inner_text().endswith("accepted")
    assert "edited by a person" in page.locator("#segments li").first.inner_text()
    assert downloaded(page)[1].splitlines() == ["Me encanta.", *before[1:]]


def test_an_accepted_translation_fills_repetitions_and_all_steps_are_undone_and_redone(page):
    choose(page, "You sing.\nI like soccer.\nYou sing.\nThey sing.\nYou sing.\n")
    areas, notice = page.locator("#segments textarea"), page.locator("#editor-notice")
    items = page.locator("#segments li")
    before = texts(page)
    areas.nth(4).fill("Mine.")  # an edit is not replaced
    areas.first.fill("Cantas.")
    areas.first.press("Control+Enter")
    expect(areas.nth(1)).to_be_focused()
    expect(notice).to_contain_text("3")
    assert texts(page) == ["Cantas.", before[1], "Cantas.", before[3], "Mine."]
    expect(items.nth(2).locator(".state")).to_contain_text("edited, not accepted")
    expect(page.locator("#document-status")).to_contain_text("1 of 5")
    page.keyboard.press("Alt+c")
    page.keyboard.press("Alt+m")  # there is no memory
    expect(notice).to_contain_text("no match")
    assert texts(page)[1] == "I like soccer."
    page.keyboard.press("Control+z")
    expect(areas.nth(1)).to_have_value(before[1])
    assert texts(page) == ["Cantas.", before[1], "Cantas.", before[3], "Mine."]
    page.keyboard.press("Control+z")
    expect(areas.nth(2)).to_have_value(before[2])
    assert texts(page) == ["Cantas.", *before[1:4], "Mine."]
    expect(items.nth(2).locator(".state")).to_contain_text("machine translation")
    page.keyboard.press("Control+z")
    expect(areas.first).to_be_focused()
    expect(items.first.locator(".state")).to_contain_text("edited, not accepted")
    expect(page.locator("#document-status")).to_contain_text("0 of 5")
    expect(notice).to_contain_text("Undone: acceptance of segment 1")
    page.keyboard.press("Control+z")
    expect(items.first.locator(".state")).to_contain_text("machine translation")
    page.keyboard.press("Control+z")
    expect(areas.nth(4)).to_be_focused()
    assert texts(page) == before
    page.keyboard.press("Control+z")
    expect(notice).to_contain_text("nothing to undo")
    page.reload()
    expect(areas.nth(4)).to_be_focused()
    for _ in range(4):
        page.keyboard.press("Control+Shift+z")
    expect(notice).to_contain_text("Redone: filling of 1 repetition")
    assert texts(page) == ["Cantas.", before[1], "Cantas.", before[3], "Mine."]
    expect(page.locator("#document-status")).to_contain_text("1 of 5")
    areas.nth(3).focus()
    page.keyboard.type("x")
    page.keyboard.press("Control+z")  # the browser undoes what was typed
    expect(areas.nth(3)).to_have_value(before[3])
    page.keyboard.press("Alt+j")
    expect(areas.nth(4)).to_be_focused()


def test_search_and_replace_shows_what_changes_and_can_be_undone(page):
    choose(page, "I like soccer and soccer and soccer.\nYou sing.\nWe sing.\n")
    areas, hits, status = (
        page.locator(f"#{part}") for part in ("segments textarea", "search-hits li", "search-form p")
    )
    for i, text in enumerate(("Uno. Uno.", "Dos (uno).", "uno")):
        areas.nth(i).fill(text)
    areas.nth(1).press("Alt+r")
    page.get_by_label("The translation contains").fill("uno")
    page.get_by_label("Replace it with").fill("$1")
    expect(hits.locator("ins")).to_have_count(4)
    page.get_by_label("The source contains").fill("SING")
    expect(hits).to_have_count(2)
    page.get_by_label("replace in segment 3").uncheck()
    page.get_by_role("button", name="Replace in 1 segment").click()
    assert texts(page) == ["Uno. Uno.", "Dos ($1).", "uno"]
    page.keyboard.press("Control+z")
    expect(areas.nth(1)).to_have_value("Dos (uno).")
    assert texts(page) == ["Uno. Uno.", "Dos (uno).", "uno"]
    page.keyboard.press("Alt+r")
    page.get_by_label("regular expressions").check()
    page.get_by_label("The source contains").fill("")
    page.get_by_label("The translation contains").fill("(")
    expect(status).to_contain_text("no regular expression")
    page.get_by_label("The translation contains").fill(r"(?<first>\p{L})(no)")
    page.get_by_label("Replace it with").fill("$2$<first>$$")
    page.get_by_label("match case").check()
    expect(hits.locator("ins").last).to_have_text("nou$")
    page.get_by_role("button", name="Replace in 3 segments").click()
    assert texts(page) == ["noU$. noU$.", "Dos (nou$).", "nou$"]
    page.keyboard.press("Alt+r")
    page.get_by_label("The source contains").fill("([a-z. ]+)+#")  # exponential
    page.get_by_label("The translation contains").fill("")
    expect(status).to_contain_text("takes too long")
    page.get_by_label("The source contains").fill("sing")
    page.get_by_role("button", name="List these segments").click()
    expect(page.locator("#segment-range")).to_have_text("1 to 2 of 2")
    expect(areas.first).to_be_focused()
    page.keyboard.press("Alt+l")
    expect(page.get_by_label("Segments to show")).to_be_focused()
    page.keyboard.press("Escape")
    expect(areas.first).to_be_focused()
    page.keyboard.press("Control+s")
    expect(page.locator("#unaccepted-dialog")).to_be_visible()


def test_a_second_tab_and_a_reload_follow_and_time_is_counted(page):
    choose(page, "You sing.\nI like soccer.\nThey go.\n")
    areas = page.locator("#segments textarea")
    with page.context.new_page() as other:
        other.goto(f"{page.url.partition('#')[0]}#documents")
        others = other.locator("#segments textarea")
        expect(others.nth(2)).to_be_enabled()
        areas.nth(1).press("Control+a")
        page.keyboard.type("Otra.")
        expect(others.nth(1)).to_have_value("Otra.")
        expect(other.locator("#editor-notice")).to_contain_text("another tab")
        areas.nth(1).press("Enter")
        expect(other.locator("#segments li").nth(1)).to_have_class("accepted")
        expect(other.locator("#document-status")).to_contain_text("1 of 3")
        others.nth(0).press("Alt+c")
        expect(areas.nth(0)).to_have_value("You sing.")
    with page.expect_download() as download:
        page.get_by_role("button", name="Time and edits").click()
    assert download.value.suggested_filename == "notes.txt.edits.csv"
    rows = list(csv.DictReader(download.value.path().read_text("utf-8-sig").splitlines()))
    assert [row["state"] for row in rows] == ["edited", "accepted", "machine"]
    assert [row["keystrokes"] for row in rows] == ["1", "7", "0"] and float(rows[1]["seconds"]) > 0
    assert rows[1]["final_characters"] == "5"
    assert int(rows[1]["edit_distance"]) >= int(rows[1]["machine_characters"]) - 5
    assert rows[2]["edit_distance"] == "0"
    areas.nth(2).focus()
    page.keyboard.press("Alt+c")
    page.reload()
    expect(areas.nth(2)).to_be_focused()
    expect(areas.nth(2)).to_have_value("They go.")
    page.keyboard.press("Control+z")
    expect(page.locator("#segments li").nth(2).locator(".state")).to_contain_text("machine translation")
    page.keyboard.type("Mine.")
    page.evaluate("() => addEventListener('storage', ({ key }) => { document.title = key.split('.')[1]; })")
    with page.context.new_page() as other:
        other.goto(page.url)
        expect(other.locator("#segments textarea").nth(2)).to_be_enabled()
        other.get_by_role("button", name="Delete").click()
        expect(page).to_have_title("place")  # the last to be removed, after the drafts
    assert "Mine." in areas.nth(2).input_value(), "edits stay on a page that still shows the document"


def test_segments_are_edited_by_touch_alone(context, address):  # noqa: F811
    phone = {"has_touch": True, "is_mobile": True, "viewport": {"width": 390, "height": 800}}
    with fresh(context.browser, **phone) as page:
        page.goto(address)
        page.wait_for_selector("body.ready")
        page.get_by_role("button", name="Documents").tap()
        page.get_by_text("All file types").tap()
        expect(page.locator("#document-kinds li").filter(has_text="Markdown")).to_have_text(
            "Markdown.md .markdown .mdx"
        )
        choose(page, "<p>You sing.</p><p>I like soccer.</p><pre>We sing.\nThey go.</pre>", "a.html", "text/html")
        items, areas = page.locator("#segments li"), page.locator("#segments textarea")
        hints = areas.evaluate_all("areas => areas.map(area => area.enterKeyHint)")
        assert hints == [
            "enter" if "\n" in text else "next" for text in page.locator("#segments .output").all_inner_texts()
        ]
        before = texts(page)
        accept, undo = (page.get_by_role("button", name=re.compile(f"^{name} the")) for name in ("accept", "undo"))
        assert min(accept.first.bounding_box()[side] for side in ("width", "height")) >= 44
        expect(undo.first).to_be_hidden()
        areas.first.fill("Otra cosa.")
        undo.first.tap()
        assert texts(page) == before
        areas.first.fill("Cantas.")
        areas.first.focus()
        accept.first.tap()
        expect(items.first).to_have_class("accepted")
        expect(areas.nth(1)).to_be_focused()
        page.evaluate("document.activeElement.blur()")
        items.nth(1).get_by_role("button", name=re.compile("^accept")).tap()
        expect(items.nth(1)).to_have_class("accepted")
        assert page.evaluate("document.activeElement.tagName") != "TEXTAREA"  # no on-screen keyboard opens
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_refused_download_leads_to_its_segment(page):
    lines = "".join(f"<p>You <b>sing</b> {i}.</p>\n" for i in range(60))
    choose(page, lines, "a.html", "text/html")
    page.get_by_label("Next segments").click()
    expect(page.locator("#segment-range")).to_have_text("51 to 60 of 60")
    page.locator("#segments textarea").nth(3).fill("Sin marcas")
    page.get_by_label("Previous segments").click()
    expect(page.locator("#segment-range")).to_have_text("1 to 50 of 60")
    page.locator("#document-download").click()
    page.get_by_role("button", name="Accept and download").click()
    edited = page.locator("#segments li").nth(3)
    expect(edited.locator(".problem")).to_contain_text("⟨1⟩ is missing")
    expect(edited.locator("textarea")).to_be_focused()
    expect(page.locator("#segment-range")).to_have_text("51 to 60 of 60")
    expect(page.locator("#document-problem")).to_contain_text("Segment 54: ⟨1⟩ is missing")
    page.get_by_label("Previous segments").click()
    expect(page.locator("#segment-range")).to_have_text("1 to 50 of 60")
    page.locator("#document-download").click()
    expect(page.locator("#unaccepted-dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(edited.locator("textarea")).to_be_focused()
    expect(page.locator("#segment-range")).to_have_text("51 to 60 of 60")


def test_edits_are_kept_although_the_browser_stores_nothing(page):
    page.evaluate("() => { Storage.prototype.setItem = () => { throw new Error('full'); }; }")
    choose(page, "You sing.\n" * 60)
    page.locator("#segments textarea").nth(1).fill("Cantas.")
    page.get_by_label("Next segments").click()
    expect(page.locator("#segment-range")).to_have_text("51 to 60 of 60")
    page.get_by_label("Previous segments").click()
    expect(page.locator("#segments textarea").nth(1)).to_have_value("Cantas.")


def test_nothing_is_lost_on_reload(page):
    choose(page)
    areas = page.locator("#segments textarea")
    areas.nth(0).fill("Accepted.")
    areas.nth(0).press("Enter")
    expect(page.locator("#segments li").first).to_have_class("accepted")
    areas.nth(1).fill("Only typed.")
    # The documents of a browser outlive an update of the server.
    assert page.evaluate("localStorage.getItem('translucid.documents')")
    page.reload()
    expect(page.locator("#documents")).to_be_visible()
    expect(areas.nth(1)).to_have_value("Only typed.")
    assert texts(page)[0] == "Accepted."
    expect(page.locator("#segments li").nth(1)).to_have_class(re.compile("draft"))
    page.locator("#document-download").click()
    expect(page.locator("#unaccepted-text")).to_contain_text("1 of your edits is not accepted yet")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download without").click()
    text = download.value.path().read_text()
    assert text.startswith("Accepted.\n") and "Only typed" not in text
    page.locator("#document-download").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Accept and download").click()
    assert download.value.path().read_text().splitlines()[:2] == ["Accepted.", "Only typed."]
    expect(page.locator("#segments li").nth(1)).to_have_class("accepted")
    assert downloaded(page)[1].splitlines()[1] == "Only typed."
    page.get_by_role("button", name="Delete").click()
    expect(page.locator("#document")).to_be_hidden()
    page.reload()
    expect(page.locator("#document-list li")).to_have_count(0)


def test_tags_are_moved_and_never_lost(page):
    choose(page, "<p>I <b>like</b> soccer<br>and music</p>", "page.html", "text/html")
    assert page.locator("#segments .tag").all_inner_texts() == ["⟨1⟩", "⟨/1⟩", "⟨2/⟩"]
    assert page.locator("#segments .tag").nth(2).get_attribute("title") == "<br>"
    area = page.locator("#segments textarea")
    area.fill("Me ⟨1⟩gusta⟨/1⟩ el fútbol")
    area.press("Enter")
    expect(page.locator("#segments .problem")).to_contain_text("⟨2/⟩ is missing")
    area.fill("Me ⟨1⟩gusta⟨/1⟩ el fútbol⟨2/⟩y la música")
    area.press("Enter")
    expect(page.locator("#segments li")).to_have_class("accepted")
    assert downloaded(page) == ("page_es.html", "<p>Me <b>gusta</b> el fútbol<br>y la música</p>")


def test_the_length_and_the_limit_of_a_segment_are_shown(page):
    choose(page, '#, max-length:6\nmsgid "Save"\nmsgstr ""\n\nmsgid "Open"\nmsgstr ""\n', "a.po", "text/plain")
    first, area = page.locator("#segments li").first.locator(".length"), page.locator("#segments textarea").first
    before = first.inner_text()
    for text, length, is_long in (("Guardé", "6 / 6", False), ("Guardé ya", "9 / 6", True), ("", "0 / 6", False)):
        area.fill(text)
        expect(first).to_have_text(length)
        expect(first).to_have_class("length too-long" if is_long else "length")
    area.press("Escape")
    expect(first).to_have_text(before)
    expect(page.locator("#segments .length")).to_have_count(1)


def test_a_file_is_dropped(page):
    drop = """() => {
      const data = new DataTransfer();
      data.items.add(new File(["I sing.\\n"], "dropped.txt", { type: "text/plain" }));
      for (const kind of ["dragover", "drop"])
        document.body.dispatchEvent(new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true }));
    }"""
    page.get_by_role("button", name="Documents").click()
    page.evaluate(drop)
    expect(page.locator("#document-name")).to_contain_text("dropped.txt")
    expect(page.locator("#segments textarea")).to_be_enabled(timeout=30_000)


def test_late_responses_with_segments_are_ignored(page):
    choose(page, "You sing.\n" * 120)
    page.get_by_label("Next segments").click()
    expect(page.locator("#segment-range")).to_have_text("51 to 100 of 120")
    routes = []
    page.route("**/segments?first=100*", lambda route: routes.append(route))
    page.get_by_label("Next segments").click()
    page.get_by_label("Previous segments").click()
    expect(page.locator("#segment-range")).to_have_text("1 to 50 of 120")
    with page.expect_response("**/segments?first=100*") as answer:
        routes[0].continue_()
    answer.value.finished()
    page.wait_for_timeout(50)
    assert page.inner_text("#segment-range") == "1 to 50 of 120"


def test_many_segments_come_page_by_page(page):
    choose(page, "You sing.\n" * 120)
    expect(page.locator("#segments li")).to_have_count(50)
    assert page.inner_text("#segment-range") == "1 to 50 of 120"
    page.get_by_label("Next segments").click()
    expect(page.locator("#segment-range")).to_have_text("51 to 100 of 120")
    page.locator("#segments textarea").last.press("Enter")
    expect(page.locator("#segment-range")).to_have_text("101 to 120 of 120")
    assert page.get_by_label("Next segments").is_disabled()
    page.get_by_label("Previous segments").click()
    expect(page.locator("#segments li").last).to_have_class("accepted")


def test_errors_are_reported(page):
    page.get_by_role("button", name="Documents").click()
    held = []
    page.route("**/documents", lambda route: held.append(route), times=1)
    page.set_input_files("#document-file", {"name": "a.exe", "mimeType": "x/y", "buffer": b"x"})
    expect(page.locator("#document-problem")).to_contain_text("Still working")
    held[0].continue_()
    expect(page.locator("#document-problem")).to_contain_text("no kind")
    page.set_input_files("#document-file", {"name": "a.txt", "mimeType": "text/plain", "buffer": b"\xff"})
    expect(page.locator("#document-status")).to_contain_text("UTF-8")
    assert page.locator("#document-download").is_hidden()
    for part in ("#editor", "#segments", "#accept-all", "#document-progress"):
        expect(page.locator(part)).to_be_hidden()
    expect(page.locator("#document-list li")).to_have_count(0)  # documents that failed are not listed
    page.set_input_files("#document-file", {"name": "b.txt", "mimeType": "text/plain", "buffer": b"You sing.\n"})
    expect(page.locator("#segments textarea")).to_be_enabled(timeout=30_000)
    assert "problem" not in page.get_attribute("#document-status", "class")


def test_a_long_translation_shows_its_progress_and_can_be_cancelled(context, address, monkeypatch):  # noqa: F811
    stream = documents.translated

    def slow(*given, **more):
        for translated_segment in stream(*given, **more):
            for _ in range(20):
                documents.between_steps()
                time.sleep(0.01)
            yield translated_segment

    monkeypatch.setattr(documents, "translated", slow)
    with fresh(context) as page:  # a request for the progress may be on its way when the document is deleted
        page.goto(address)
        page.get_by_role("button", name="Documents").click()
        content = "".join(f"You sing {i}.\n" for i in range(400)).encode()
        page.set_input_files("#document-file", {"name": "long.txt", "mimeType": "text/plain", "buffer": content})
        expect(page.locator("#document-status")).to_contain_text("of 400 segments", timeout=30_000)
        page.get_by_role("button", name="Cancel").click()
        expect(page.locator("#document")).to_be_hidden()


def test_the_layout_fits_on_a_phone(page):
    set_in_a_wide_font(page)
    page.set_viewport_size({"width": 360, "height": 740})
    choose(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
