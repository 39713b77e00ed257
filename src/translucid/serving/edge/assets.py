"""Files that a browser may keep, but asks about each time: after an upgrade it runs no old script."""

from __future__ import annotations

import hashlib

from fastapi import Request
from fastapi.responses import Response

from translucid.serving.server_options import PAGE_HEADERS

_KINDS = {"js": "text/javascript", "css": "text/css"}


class Asset:
    """A file of the page, as it was when the server started."""

    def __init__(self, name: str, content: bytes) -> None:
        """`name`: its ending says what kind it is; a page if it has none that is known."""
        self.content = content
        self.media = _KINDS.get(name.rpartition(".")[2], "text/html")
        self.etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'

    def answer(self, request: Request) -> Response:
        """Send it, unless the browser has this version already."""
        headers = {**PAGE_HEADERS, "Cache-Control": "no-cache", "ETag": self.etag}
        known = request.headers.get("if-none-match", "")
        # A proxy that compresses makes the tag a weak one, W/"...", which is as good here (RFC 9110, section 13.1.2).
        if self.etag in [tag.strip().removeprefix("W/") for tag in known.split(",")]:
            return Response(status_code=304, headers=headers)
        return Response(self.content, media_type=self.media, headers=headers)
