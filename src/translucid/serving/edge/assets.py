"""Files of the page, which browsers cache but revalidate each time, so that they run no old script after an upgrade."""

from __future__ import annotations

import hashlib
import re

from fastapi import Request
from fastapi.responses import Response

from translucid.serving.server_options import PAGE_HEADERS, media_type_of


class Asset:
    """A file of the page, with its content from the start of the server."""

    def __init__(self, name: str, content: bytes) -> None:
        """Take the content; the name determines the media type."""
        self.content = content
        self.media = media_type_of(name)
        self.etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'

    async def answer(self, request: Request) -> Response:
        """Return the file, or 304 if the browser has this version already."""
        headers = {**PAGE_HEADERS, "Cache-Control": "no-cache", "ETag": self.etag}
        known_etags = request.headers.get("if-none-match", "")
        # A proxy that compresses makes the tag a weak one, W/"...", which is enough here (RFC 9110, section 13.1.2).
        if self.etag in re.findall(r'"[^"]*"', known_etags):
            return Response(status_code=304, headers=headers)
        return Response(self.content, media_type=self.media, headers=headers)
