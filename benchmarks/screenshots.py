"""The pictures of the docs, and a contact sheet of every view of the page, the lessons and the web folder.

    python -m benchmarks.screenshots runs/demo [--out docs/pictures] [--sheet build/contact-sheet]
    python -m benchmarks.screenshots runs/demo --only sheet [--views steps word] [--looks light forced]

The contact sheet shows each view in light and dark, 1280 and 390 pixels wide: a picture for each view and look, and
sheets of several views. Models for images and for texts are made for it, barely trained, beside the sheets. Needs
Chromium and the extra `dev`. With `--looks rtl` or `mirrored`, one of the runs must translate into Arabic.

`translucid draw caption` says which command made a picture that a command has drawn. Others in the folder have other
sources: growth.png is `python -m benchmarks.growth`; looked.png is `look --save` and scenes.png a sheet of scenes, with
the captioner of `translucid demo --captions`; romanization.png and transliteration.png need the published models that
the docs name. The plots of docs/claims belong to their benchmarks.
"""

import argparse
import shutil
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from PIL import Image, ImageDraw
from playwright.sync_api import Browser, Page, expect

from benchmarks.moving_picture import film
from benchmarks.page_server import chromium, served
from tests.probes.page_states import TABS, TEXT, offers, opened, states
from tests.serving.conftest import write_captioner
from tests.serving.test_text_models import train_models
from translucid.api.translator import Translator
from translucid.cli.main import run as translucid
from translucid.ground.atomic import write_output
from translucid.lessons.lessons import LESSONS
from translucid.live import recording_page

DESKTOP, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
TOUCH = {"viewport": PHONE, "has_touch": True, "is_mobile": True}
LOOKS = {
    "light": {"viewport": DESKTOP, "color_scheme": "light"},
    "dark": {"viewport": DESKTOP, "color_scheme": "dark"},
    "phone": {**TOUCH, "color_scheme": "light", "device_scale_factor": 2},
    "phone-dark": {**TOUCH, "color_scheme": "dark", "device_scale_factor": 2},
    "contrast": {"viewport": DESKTOP, "contrast": "more"},
    "forced": {"viewport": DESKTOP, "forced_colors": "active"},
    "zoomed": {"viewport": {"width": 640, "height": 400}},  # a window of 1280 pixels at 200 %
    "rtl": {"viewport": DESKTOP},  # the texts run from right to left
    "mirrored": {"viewport": DESKTOP},  # the texts and the page run from right to left
}
SHEET_LOOKS = ("light", "dark", "phone", "phone-dark")
WINDOW_ONLY = ("dropping", "history", "shortcuts", "unaccepted", "accepting")
"""States with something above the page, whose screenshots show the window and not the full page."""
LARGEST = 1600
"""The maximum height in pixels of a sheet, and of what it shows of a long page."""
GAP, LABEL = 16, 20
"""Pixels between the pictures of a sheet, and of the line with their name."""


class Shot(NamedTuple):
    """A screenshot for the contact sheet."""

    view: str
    look: str
    path: Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--out", type=Path, default=Path("docs/pictures"), help="folder of the docs' pictures")
    parser.add_argument("--sheet", type=Path, default=Path("build/contact-sheet"), help="folder of the contact sheet")
    parser.add_argument("--only", choices=["docs", "sheet"], help="only the pictures of the docs, or the contact sheet")
    parser.add_argument("--views", nargs="+", default=[], help="only these views on the contact sheet")
    parser.add_argument("--looks", nargs="+", default=SHEET_LOOKS, choices=LOOKS, help="other looks on it")
    arguments = parser.parse_args()
    with chromium() as browser:
        if arguments.only != "sheet":
            arguments.out.mkdir(parents=True, exist_ok=True)
            draw(arguments.runs, arguments.out)
            draw_staircase(browser, arguments.runs[0], arguments.out / "staircase.png")
            with served(arguments.runs) as address:
                save_for_docs(browser, address, arguments.out)
        if arguments.only != "docs":
            save_contact_sheet(browser, arguments.runs, arguments.sheet, arguments.views, arguments.looks)


def draw(runs: list[str], out: Path) -> None:
    for command in (
        ["look", runs[0], TEXT, "--save", out / "attention.png"],
        ["draw", "attention", runs[0], TEXT, "--layer", 1, "--out", out / "heads.png"],
        ["draw", "attention", runs[0], TEXT, "--out", out / "layers.png"],
        ["draw", "mask", runs[0], "I like soccer", "--out", out / "mask.png"],
        ["draw", "positions", "--out", out / "positions.png"],
        ["draw", "beam", runs[0], "I like soccer", "--out", out / "beam.png"],
        ["draw", "curves", *runs, "--out", out / "curves.png"],
    ):
        assert translucid([*map(str, command), "--overwrite"]) == 0


def draw_staircase(browser: Browser, run: str, file: Path) -> None:
    """Save the decisions of a live translation, with the words that waited."""
    session = Translator.load(run).live("alignatt", lag=2)
    session.read(f"{TEXT}.")
    session.finish()
    page = browser.new_page(viewport=DESKTOP, device_scale_factor=2)
    page.set_content(recording_page(session.record))
    page.get_by_role("slider").press("End")
    page.get_by_label("Show all words that waited").check()
    page.add_style_tag(content=".scroll { width: max-content; }")
    page.mouse.move(0, 0)
    page.locator(".scroll").screenshot(path=file)
    page.close()


def save_for_docs(browser: Browser, address: str, out: Path) -> None:
    for name, look in (("page", "light"), ("page-dark", "dark"), ("page-phone", "phone")):
        page = browser.new_page(**LOOKS[look])
        opened(page, address)
        show_attention(page)
        page.screenshot(path=out / f"{name}.png", full_page=True)
        page.close()
    draw_graph(browser, address, out / "graph.png")
    write_output(out / "moving.gif", film(browser, address))


def draw_graph(browser: Browser, address: str, file: Path) -> None:
    """Save the attribution graph of a word, if the run has a dictionary of features."""
    page = browser.new_page(viewport=DESKTOP, device_scale_factor=2)
    opened(page, address)
    if "features" in offers(page):
        show_attention(page)
        page.get_by_role("tab", name="Graph").click()
        page.get_by_label("word to explain").select_option("playa")
        expect(page.locator(".graph [data-node=logit]")).to_contain_text("playa")
        page.mouse.move(0, 0)
        page.locator(".graph").screenshot(path=file)
    page.close()


def show_attention(page: Page) -> None:
    """Type a text, which shows its attention."""
    page.fill("#source", TEXT)
    page.wait_for_selector("#inspection:not([hidden]) .word")
    page.wait_for_timeout(500)


def save_contact_sheet(browser: Browser, runs: list[str], out: Path, views: list[str], looks: list[str]) -> None:
    """Save a screenshot of each view in each look, and sheets of them."""
    captioner, texts, web = out / "models" / "captioner", out / "models" / "texts", out / "models" / "web"
    for folder, make in ((captioner, write_captioner), (texts, train_models)):
        if not folder.exists():
            folder.parent.mkdir(parents=True, exist_ok=True)
            make(folder)
    assert translucid(["export", runs[0], str(web), "--to", "web", "--overwrite"]) == 0
    pictures = out / "views"
    shutil.rmtree(pictures, ignore_errors=True)
    pictures.mkdir(parents=True)
    shots = []
    # A second model of the same pair, and one for the opposite direction, show what the page has for several models.
    models = [*runs, runs[0], f"es-en={runs[0]}", str(captioner), str(texts / "mood"), str(texts / "language")]
    with served(models) as address:
        for _, same in groupby(looks, without_colors):
            shots += save_views(browser, address, web, list(same), pictures, views)
    for old in out.glob("sheet-*.png"):
        old.unlink()
    for number, sheet in enumerate(sheets(shots), 1):
        sheet.save(out / f"sheet-{number:02}.png")
    print(f"{len(shots)} pictures of {len({shot.view for shot in shots})} views, and {number} sheets: {out}")


def without_colors(look: str) -> dict[str, object]:
    """Return the settings of a look except its colors, which an open page can change."""
    return {name: value for name, value in LOOKS[look].items() if name != "color_scheme"}


def save_views(
    browser: Browser, address: str, web: Path, looks: list[str], out: Path, views: list[str]
) -> Iterator[Shot]:
    """Save screenshots of all views in looks that differ only in their colors."""
    page = browser.new_page(**LOOKS[looks[0]], reduced_motion="reduce")
    if "mirrored" in looks:
        page.add_init_script("addEventListener('DOMContentLoaded', () => { document.documentElement.dir = 'rtl'; })")
    link = right_to_left(page, address) if {"rtl", "mirrored"} & {*looks} else ""
    names = [view for view in views if not view.startswith(("lesson-", "web-"))]
    if names or not views:
        for state in states(page, address, names=names, link=link):
            yield from shots_of(page, state.name, looks, out)
    page.unroute_all(behavior="ignoreErrors")
    for view in other_views(page, address, web):
        if view in views or not views:
            yield from shots_of(page, view, looks, out)
    page.close()


def other_views(page: Page, address: str, web: Path) -> Iterator[str]:
    """Open the documentation of the API, the lessons and the views of the web folder; yield the name of each."""
    page.goto(f"{address}/docs")
    page.wait_for_load_state("networkidle")
    yield "docs"
    for name in ("index", *(lesson.name for lesson in LESSONS)):
        page.goto(f"{address}/lessons/{name}.html")
        page.wait_for_load_state("networkidle")
        page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true;")
        yield f"lesson-{name}"
    page.goto((web / "index.html").absolute().as_uri())
    page.get_by_role("textbox").first.fill(TEXT)
    page.wait_for_selector(".ribbons .word")
    yield "web-attention"
    for tab, sign in TABS.items():
        button = page.get_by_role("tab", name=tab)
        if button.count():
            button.click()
            expect(page.locator(sign).first).to_be_visible()
            yield f"web-{tab.lower()}"


def shots_of(page: Page, view: str, looks: list[str], out: Path) -> Iterator[Shot]:
    """Save a screenshot of the page as it is, in each look."""
    size = page.viewport_size
    assert size is not None
    page.wait_for_timeout(300)
    for look in looks:
        path = out / f"{view}-{look}.png"
        page.emulate_media(color_scheme=LOOKS[look].get("color_scheme"))
        if view in WINDOW_ONLY:
            page.screenshot(path=path)
        elif "is_mobile" in LOOKS[look]:  # full_page=True would emulate a mouse
            page.set_viewport_size(size | {"height": page.evaluate("document.documentElement.scrollHeight")})
            page.screenshot(path=path)
            page.set_viewport_size(size)
        else:
            page.screenshot(path=path, full_page=True)
        yield Shot(view, look, path)


def right_to_left(page: Page, address: str) -> str:
    """Return a link to a model that translates into a language that runs from right to left."""
    opened(page, address)
    for model in page.evaluate("fetch('models').then(answer => answer.json())"):
        if "ar" in model.get("targets", []):
            return f"#text=&from={model['sources'][0]}&to=ar&model={model['name']}"
    return ""


def sheets(shots: list[Shot]) -> Iterator[Image.Image]:
    """Yield sheets whose rows are views and whose columns are looks, at half of their size."""
    order = {view: i for i, view in enumerate(dict.fromkeys(shot.view for shot in shots))}
    rows = []
    for view, row in groupby(sorted(shots, key=lambda shot: order[shot.view]), lambda shot: shot.view):
        rows.append(row_of(view, list(row)))
    pending: list[Image.Image] = []
    for row_picture in rows:
        if pending and sum(other.height for other in pending) + row_picture.height > LARGEST:
            yield stacked(pending)
            pending = []
        pending.append(row_picture)
    if pending:
        yield stacked(pending)


def row_of(view: str, shots: list[Shot]) -> Image.Image:
    """Return the pictures of a view side by side."""
    pictures = []
    for _, look, path in shots:
        with Image.open(path) as file:
            scale = 2 * LOOKS[look].get("device_scale_factor", 1)
            picture = file.convert("RGB").resize((file.width // scale, file.height // scale), Image.Resampling.LANCZOS)
        pictures.append(picture.crop((0, 0, picture.width, min(picture.height, LARGEST - LABEL))))
    width = sum(picture.width + GAP for picture in pictures) + GAP
    row = Image.new("RGB", (width, LABEL + max(picture.height for picture in pictures) + GAP), "gray")
    x = GAP
    for (_, look, _), picture in zip(shots, pictures, strict=True):
        ImageDraw.Draw(row).text((x, 4), f"{view}, {look}", fill="white")
        row.paste(picture, (x, LABEL))
        x += picture.width + GAP
    return row


def stacked(rows: list[Image.Image]) -> Image.Image:
    """Return rows below each other."""
    sheet = Image.new("RGB", (max(row.width for row in rows), sum(row.height for row in rows)), "gray")
    y = 0
    for row in rows:
        sheet.paste(row, (0, y))
        y += row.height
    return sheet


if __name__ == "__main__":
    main()
