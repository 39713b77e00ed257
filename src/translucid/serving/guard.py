"""Who may ask, and how often."""

from __future__ import annotations

import hmac
import ipaddress
import time
from collections import OrderedDict
from typing import Any

from fastapi import Request

from translucid.serving.failures import ApiError
from translucid.serving.options import ServerOptions

REMEMBERED = 10_000
"""Addresses and keys, at most; the one that was heard of longest ago is forgotten first."""


class Counter:
    """Counts requests in windows of time, each of which begins with somebody's first request."""

    def __init__(self, seconds: float) -> None:
        """`seconds`: of a window."""
        self.seconds = seconds
        self.windows: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def count(self, who: str, most: int) -> float | None:
        """Count a request; return the seconds to wait if there were `most` in the window before it."""
        now = time.monotonic()
        began, count = self.windows.pop(who, (now, 0))
        if now - began >= self.seconds:
            began, count = now, 0
        self.windows[who] = began, min(count + 1, most)
        while len(self.windows) > REMEMBERED:
            self.windows.popitem(last=False)
        return began + self.seconds - now if count >= most else None


def address_of(request: Request) -> str:
    """Return the client's address, `-` where it is none: a proxy's header may say anything, of any length."""
    host = request.client.host if request.client else ""
    try:
        return str(ipaddress.ip_address(host.partition("%")[0]))
    except ValueError:
        return "-"


class Guard:
    """Checks API keys, and counts requests by key, or by address where no keys are needed."""

    def __init__(self, options: ServerOptions) -> None:
        """`options`: keys and limits."""
        self.options = options
        self.minute, self.day = Counter(60), Counter(24 * 60 * 60)

    def check(self, request: Request, fields: dict[str, Any]) -> None:
        """Let a request pass.

        Raises:
            ApiError: 400 without a key where one is needed, 403 with a wrong one, 429 too many requests.
        """
        key = self.key(request, fields)
        quota = (self.options.api_keys[key] if key else None) or self.options.quota
        who = f"key {key}" if key else f"address {address_of(request)}"
        for counter, most, when in (
            (self.minute, quota.per_minute, "minute"),
            (self.day, quota.per_day, "day"),
        ):
            if most and (wait := counter.count(who, most)) is not None:
                raise ApiError(429, f"Slowdown: more than {most} requests a {when}", retry_after=int(wait) + 1)

    def key(self, request: Request, fields: dict[str, Any]) -> str | None:
        """Return the key that a request carries, None where none are needed.

        Raises:
            ApiError: 400 without a key where one is needed, 403 with a wrong one.
        """
        if not self.options.api_keys:
            return None
        given = fields.get("api_key") or request.headers.get("authorization", "").removeprefix("Bearer ").strip()
        if not given:
            raise ApiError(400, "Invalid request: an API key is needed (api_key)")
        found = [key for key in self.options.api_keys if hmac.compare_digest(str(given).encode(), key.encode())]
        if not found:
            raise ApiError(403, "Invalid API key")
        return found[0]
