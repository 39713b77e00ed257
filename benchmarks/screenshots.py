"""Pictures of the page and of `translucid draw`, for the README and the docs.

    python benchmarks/screenshots.py runs/demo [runs/other] [--out docs/pictures]

Needs Chromium and the extra `dev`.
"""

import argparse
import shutil
import threading
import time
from pathlib import Path

import uvicorn
from playwright.sync_api import Page, sync_playwright

from translucid.cli.main import run as translucid
from translucid.serving.app import create_app
from translucid.serving.catalogue import load
from translucid.serving.server_options import ServerOptions

TEXT = "I like soccer and also going to the beach"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--out", type=Path, default=Path("docs/pictures"))
    arguments = parser.parse_args()
    runs, out = arguments.runs, arguments.out
    out.mkdir(parents=True, exist_ok=True)
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
    options = ServerOptions()
    server = uvicorn.Server(
        uvicorn.Config(create_app(load(runs, "cpu", options), options), port=0, log_level="warning")
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    address = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    with sync_playwright() as playwright:
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, width, height, scheme in (
            ("page", 1200, 900, "light"),
            ("page-dark", 1200, 900, "dark"),
            ("page-phone", 390, 844, "light"),
        ):
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            show(page, address, compare=len(runs) > 1 and name == "page")
            page.screenshot(path=out / f"{name}.png", full_page=True)
        browser.close()
    server.should_exit = True
    thread.join()


def show(page: Page, address: str, *, compare: bool) -> None:
    """Type, look at a word, ask what else it could have been, and why."""
    page.goto(address)
    page.wait_for_selector("#model option", state="attached")
    if compare:
        page.get_by_label("Compare with").select_option(index=2)
    page.locator("#source").fill(TEXT)
    page.wait_for_selector("#words .word")
    page.locator("#attention summary").first.click()
    page.locator("#words .word").nth(1).click()
    page.wait_for_selector("#ways button")
    page.get_by_role("button", name="Explain").click()
    page.wait_for_selector("#explanation .hint")
    page.locator("#attention .words").nth(1).locator(".word").nth(3).hover()


if __name__ == "__main__":
    main()
