"""Who may ask, and how often."""

from __future__ import annotations

import hmac
import time
from collections import OrderedDict, deque
from typing import Any

from fastapi import Request

from translucid.serving.failures import ApiError
from translucid.serving.options import ServerOptions

ADDRESSES = 10_000
"""Remembered at most; the one that was heard of longest ago is forgotten first."""


class Guard:
    """Checks API keys, and counts requests by address over the last minute."""

    def __init__(self, options: ServerOptions) -> None:
        """`options`: keys and limits."""
        self.options = options
        self.seen: OrderedDict[str, deque[float]] = OrderedDict()

    def check(self, request: Request, fields: dict[str, Any]) -> None:
        """Let a request pass.

        Raises:
            ApiError: 400 without a key where one is needed, 403 with a wrong one, 429 too many requests.
        """
        keys = self.options.api_keys
        if keys:
            given = fields.get("api_key") or request.headers.get("authorization", "").removeprefix("Bearer ").strip()
            if not given:
                raise ApiError(400, "Invalid request: an API key is needed (api_key)")
            if not any(hmac.compare_digest(str(given).encode(), key.encode()) for key in keys):
                raise ApiError(403, "Invalid API key")
        if self.options.per_minute:
            self._count(request.client.host if request.client else "")

    def _count(self, address: str) -> None:
        now = time.monotonic()
        times = self.seen.pop(address, deque())
        self.seen[address] = times
        while times and times[0] < now - 60:
            times.popleft()
        if len(times) >= self.options.per_minute:
            raise ApiError(429, "Slowdown: too many requests", retry_after=int(60 - now + times[0]) + 1)
        times.append(now)
        while len(self.seen) > ADDRESSES:
            self.seen.popitem(last=False)
