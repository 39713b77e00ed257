"""The animation of the README: a sentence is typed, and the page shows attention, steps, layers and patching.

    python -m benchmarks.moving_picture runs/demo [--out docs/pictures/moving.gif]

Needs Chromium and the extra `dev`.
"""

import argparse
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page

from benchmarks.page_server import chromium, served
from tests.probes.page_states import opened
from translucid.ground.atomic import write_output

TEXT = "They are going to the beach"
SIZE = {"width": 920, "height": 700}
WIDTH = 736
"""Pixels of the picture."""
COLORS = 48


class Film:
    """Frames, each with its duration in milliseconds."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.frames: list[Image.Image] = []
        self.times: list[int] = []

    def shoot(self, milliseconds: int) -> None:
        """Take a frame."""
        image = Image.open(BytesIO(self.page.screenshot())).convert("RGB")
        small = image.resize((WIDTH, WIDTH * image.height // image.width), Image.Resampling.LANCZOS)
        self.frames.append(small.quantize(COLORS, dither=Image.Dither.NONE))
        self.times.append(milliseconds)

    def content(self) -> bytes:
        """Return the frames as a looping GIF."""
        file = BytesIO()
        first, *rest = self.frames
        first.save(file, "GIF", save_all=True, append_images=rest, duration=self.times, loop=0, optimize=True)
        return file.getvalue()


def play(page: Page, film: Film) -> None:
    """Type, point at each word, go through the steps, and open Layers and Patching."""
    words = TEXT.split()
    film.shoot(700)
    for count in range(1, len(words) + 1):
        page.fill("#source", " ".join(words[:count]))
        film.shoot(140)
    page.wait_for_selector("#inspection:not([hidden]) .word")
    page.wait_for_timeout(800)
    film.shoot(1600)
    below = page.locator("#attention .sentence-view .word")
    for row in range(len(words) + 1, below.count() - 1):  # words of the translation, without the end token
        below.nth(row).hover()
        page.wait_for_timeout(200)
        film.shoot(1100)
    page.get_by_role("tab", name="Steps").click()
    page.wait_for_selector("#attention .beam svg")
    page.mouse.move(2, 2)
    page.evaluate("document.querySelector('#inspection').scrollIntoView()")
    steps = page.locator("#attention input[type=range]")
    for step in range(int(steps.get_attribute("max") or 0) + 1):
        steps.evaluate("(range, at) => { range.value = at; range.dispatchEvent(new Event('input')); }", step)
        page.wait_for_timeout(200)
        film.shoot(1300)
    film.times[-1] = 2500
    for tab in ("Layers", "Patching"):
        page.get_by_role("tab", name=tab).click()
        page.locator("#attention .heatmap button").first.wait_for()
        page.mouse.move(2, 2)
        page.evaluate("document.querySelector('#attention .panel').scrollIntoView()")
        page.wait_for_timeout(200)
        film.shoot(3500)


def film(browser: Browser, address: str) -> bytes:
    """Return the animation as a GIF."""
    page = browser.new_page(viewport=SIZE, color_scheme="light", reduced_motion="reduce")
    opened(page, address)
    frames = Film(page)
    play(page, frames)
    page.close()
    return frames.content()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run")
    parser.add_argument("--out", type=Path, default=Path("docs/pictures/moving.gif"))
    arguments = parser.parse_args()
    with served([arguments.run]) as address, chromium() as browser:
        write_output(arguments.out, film(browser, address))


if __name__ == "__main__":
    main()
