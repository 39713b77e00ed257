"""Screenshots of the page and pictures of `translucid draw`, for the docs or for every state of the page.

    python -m benchmarks.screenshots runs/demo [runs/other] [--out docs/pictures]
    python -m benchmarks.screenshots runs/demo runs/other --states states [--only text] [--look phone]

Needs Chromium and the extra `dev`. States that none of the runs supports are left out; right-to-left text needs a model
that translates into such a language.
"""

import argparse
from pathlib import Path

from playwright.sync_api import Browser, Page

from benchmarks.page_server import chromium, served
from tests.probes.page_states import TEXT, opened, states
from translucid.cli.main import run as translucid

DESKTOP, PHONE = {"width": 1200, "height": 800}, {"width": 390, "height": 844}
WHOLE = (
    "text",
    "word",
    "contributions",
    "layers",
    "heads",
    "steps",
    "why",
    "compared",
    "image",
    "image-steps",
    "classification",
    "document",
)
"""States whose screenshots show the full page, not only the window."""
LOOKS = {
    "light": {"viewport": DESKTOP, "color_scheme": "light"},
    "dark": {"viewport": DESKTOP, "color_scheme": "dark"},
    "contrast": {"viewport": DESKTOP, "contrast": "more"},
    "forced": {"viewport": DESKTOP, "forced_colors": "active"},
    "phone": {"viewport": PHONE, "has_touch": True, "is_mobile": True, "device_scale_factor": 2},
    "phone-dark": {"viewport": PHONE, "color_scheme": "dark", "has_touch": True, "is_mobile": True},
    "zoomed": {"viewport": {"width": 640, "height": 400}},  # a window of 1280 pixels at 200 %
    "rtl": {"viewport": DESKTOP},  # the texts run from right to left
    "mirrored": {"viewport": DESKTOP},  # the texts and the page run from right to left
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--out", type=Path, default=Path("docs/pictures"), help="output folder")
    parser.add_argument("--page", action="store_true", help="only the screenshots of the page")
    parser.add_argument(
        "--states", type=Path, help="instead write a screenshot of every state of the page to this folder"
    )
    parser.add_argument("--only", default="", help="only this state")
    parser.add_argument("--look", default="", choices=["", *LOOKS], help="only this look")
    arguments = parser.parse_args()
    out = arguments.states or arguments.out
    out.mkdir(parents=True, exist_ok=True)
    if not (arguments.states or arguments.page):
        draw(arguments.runs, out)
    with served(arguments.runs) as address, chromium() as browser:
        if arguments.states:
            save_states(browser, address, out, arguments.only, arguments.look)
        else:
            save_for_docs(browser, address, out)


def draw(runs: list[str], out: Path) -> None:
    for command in (
        ["look", runs[0], TEXT, "--save", out / "attention.png"],
        ["draw", "heads", runs[0], TEXT, "--layer", 1, "--out", out / "heads.png"],
        ["draw", "heads", runs[0], TEXT, "--out", out / "layers.png"],
        ["draw", "mask", runs[0], "I like soccer", "--out", out / "mask.png"],
        ["draw", "positions", "--out", out / "positions.png"],
        ["draw", "beam", runs[0], "I like soccer", "--out", out / "beam.png"],
        ["draw", "curves", *runs, "--out", out / "curves.png"],
    ):
        assert translucid([*map(str, command), "--overwrite"]) == 0


def save_for_docs(browser: Browser, address: str, out: Path) -> None:
    for name, look in (("page", "light"), ("page-dark", "dark"), ("page-phone", "phone")):
        page = browser.new_page(**LOOKS[look])
        opened(page, address)
        show_attention(page)
        page.screenshot(path=out / f"{name}.png", full_page=True)
        page.close()


def show_attention(page: Page) -> None:
    """Type a text, which shows its attention."""
    page.fill("#source", TEXT)
    page.wait_for_selector("#inspection:not([hidden]) .word")
    page.wait_for_timeout(500)


def save_states(browser: Browser, address: str, out: Path, only: str, look: str) -> None:
    for name, settings in LOOKS.items():
        if look not in ("", name):
            continue
        page = browser.new_page(**settings)
        if name == "mirrored":
            page.add_init_script(
                "addEventListener('DOMContentLoaded', () => { document.documentElement.dir = 'rtl'; })"
            )
        link = right_to_left(page, address) if name in ("rtl", "mirrored") else ""
        for state in states(page, address, names=[only] if only else [], link=link):
            path = out / f"{state.name}-{name}.png"
            page.wait_for_timeout(600)  # until animations end
            if state.name in WHOLE and "is_mobile" in settings:
                high = page.evaluate("document.documentElement.scrollHeight")
                page.set_viewport_size(PHONE | {"height": high})  # full_page=True would emulate a mouse
                page.screenshot(path=path)
                page.set_viewport_size(PHONE)
            else:
                page.screenshot(path=path, full_page=state.name in WHOLE)
        page.close()


def right_to_left(page: Page, address: str) -> str:
    """Return a link to a model that translates into a language that runs from right to left."""
    opened(page, address)
    for model in page.evaluate("fetch('models').then(answer => answer.json())"):
        if "ar" in model.get("targets", []):
            return f"#text=&from={model['sources'][0]}&to=ar&model={model['name']}"
    return ""


if __name__ == "__main__":
    main()
