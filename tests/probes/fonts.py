"""A wide font for layout tests, part of Matplotlib so that every machine has it."""

import base64
from functools import cache
from pathlib import Path

import matplotlib
from playwright.sync_api import Page

FONT = ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf")
"""The regular and the bold file of a font that is wider than most."""
_LOAD = """async ([regular, bold]) => {
  const bytes = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const style = document.createElement("style");
  // The page's rules let it fetch no font from elsewhere; one that is made of bytes is not fetched.
  for (const [weight, data] of [["400", regular], ["600 700", bold]]) {
    const face = new FontFace("Tested", bytes(data), { weight });
    document.fonts.add(await face.load());
  }
  style.textContent = ":root { --sans: Tested !important; --mono: Tested !important; }";
  document.head.append(style);
  await document.fonts.ready;
  window.dispatchEvent(new Event("resize"));
}"""


def set_in_a_wide_font(page: Page) -> None:
    """Show an open page in `FONT`, whatever fonts the machine has."""
    page.evaluate(_LOAD, [_encoded(name) for name in FONT])
    assert page.evaluate("getComputedStyle(document.body).fontFamily") == "Tested"


@cache
def _encoded(name: str) -> str:
    file = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / name
    return base64.b64encode(file.read_bytes()).decode()
