"""Find dead links in a built site, and resources that it would load from elsewhere."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote

LINK = re.compile(r"""<(\w+)\b[^>]*?\s(?:href|src)=(["'])(.*?)\2""", flags=re.DOTALL)
ANCHOR = re.compile(r"""\s(?:id|name)=(["'])(.*?)\1""")
FETCHED = {"link", "script", "img", "iframe", "source", "video", "audio"}


def dead(site: Path) -> list[str]:
    """Return `page: link` for missing files and anchors, and for resources from elsewhere."""
    return [f"{page.relative_to(site)}: {link}" for page in sorted(site.rglob("*.html")) for link in _wrong(page, site)]


def _wrong(page: Path, site: Path) -> list[str]:
    wrong = []
    for tag, _, link in LINK.findall(page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:|//", link):
            if tag in FETCHED and not link.startswith("data:"):
                wrong.append(f"fetched from elsewhere: {link}")
            continue
        target, _, anchor = unquote(link).partition("#")
        target = target.partition("?")[0]
        file = Path(os.path.normpath(page.parent / target)) if target else page
        file = file / "index.html" if file.is_dir() else file
        there = file.is_file() and file.is_relative_to(site)
        # The page of an exported model reads what it translates from `#text=`.
        named = anchor and "=" not in anchor and file.suffix == ".html"
        if not there or (named and anchor not in _anchors(file)):
            wrong.append(link)
    return wrong


@cache
def _anchors(file: Path) -> frozenset[str]:
    return frozenset(name for _, name in ANCHOR.findall(file.read_text(encoding="utf-8")))
