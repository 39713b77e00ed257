"""Pages of live translation: the files of the server's section, and a session as a page that plays again."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from translucid.inspection.rendering.html import scripted_page, web_file

PAGE = Path(str(files("translucid.live") / "page"))
"""The JavaScript modules and style sheets."""
_FILES = (
    *("live_section.js", "live_connection.js", "recording.js", "staircase.js"),
    *("live_section.css", "staircase.css"),
)
_FRAME = "body { margin: 2rem auto; padding: 0 1rem; max-width: 70rem; background: var(--background); }\n"


def recording_page(record: Mapping[str, Any] | None) -> str:
    """Return a page in one file that plays a session again, and shows the attention of each decision.

    Args:
        record: that of the session, `LiveSession.record`; None for a page into which a script puts one.
    """
    style = web_file("inspector.css") + (PAGE / "staircase.css").read_text(encoding="utf-8") + _FRAME
    title = "Live translation"
    if record is not None:
        title = " ".join(sentence["text"] for sentence in record["sentences"]) or title
    return scripted_page(title, style, "", record, PAGE / "recording.js", "showRecording")


def section_files() -> dict[str, str]:
    """Return the texts of the files of the page's section by their names."""
    texts = {name: (PAGE / name).read_text(encoding="utf-8") for name in _FILES}
    return {**texts, "recording.html": recording_page(None)}
