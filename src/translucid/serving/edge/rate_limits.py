"""API keys and rate limits: which clients may send requests, and how many."""

from __future__ import annotations

import hmac
import ipaddress
import time
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

from fastapi import Request

from translucid.ground.errors import UserError
from translucid.serving.edge.failures import ApiError
from translucid.serving.server_options import ApiKey, ServerOptions

REMEMBERED = 10_000
"""Addresses and keys, at most; the one that was heard of longest ago is forgotten first."""
WRONG_KEYS = 10
"""A minute from one address; then none is looked at but those that it has been let in with before."""
KEY_NAME = "translucid.key"
"""Under which a request's scope holds the name of its key."""
IPV6_PREFIX = 64
"""Bits of an IPv6 address that name its network; providers give each customer at least one such network."""
_HOLDING_IPV4 = ipaddress.ip_network("::ffff:0:0/96"), ipaddress.ip_network("64:ff9b::/96")
"""IPv6 addresses whose last 32 bits are an IPv4 address: of sockets for both (RFC 4291), of translators (RFC 6052)."""

LIGHT = 10
"""Light requests that may pass for one other: a person who corrects a document sends one for each segment."""
RATE_LIMIT = "translucid.rate_limit"
"""Where a scope has the limit of requests a minute, how many are left, and the seconds until the next minute."""


class Counter:
    """Counts requests in windows of time, each of which begins with somebody's first request.

    Few are remembered: in memory, the package `limits` keeps everybody until their window is over, and an attacker may
    have as many addresses of IPv6 in a day as there is memory for.
    """

    def __init__(self, seconds: float) -> None:
        """`seconds`: of a window."""
        self.seconds = seconds
        self.windows: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def count(self, who: str, most: int) -> float | None:
        """Count a request; return the seconds to wait if there were `most` in the window before it."""
        wait = self.wait(who, most)
        began, count = self.windows.pop(who, (time.monotonic(), 0))
        self.windows[who] = began, min(count + 1, most)
        while len(self.windows) > REMEMBERED:
            self.windows.popitem(last=False)
        return wait

    def wait(self, who: str, most: int) -> float | None:
        """Return the seconds to wait if there were `most` in the window, and forget a window that is over."""
        began, count = self.windows.get(who, (0.0, 0))
        left = began + self.seconds - time.monotonic()
        if left <= 0:
            self.windows.pop(who, None)
        return left if left > 0 and count >= most else None

    def state(self, who: str, most: int) -> tuple[int, float]:
        """Return how many requests are left in the window, and the seconds until the next one begins."""
        began, count = self.windows.get(who, (time.monotonic(), 0))
        return max(0, most - count), max(0.0, began + self.seconds - time.monotonic())


def address_of(request: Request) -> str:
    """Return the client's address for the log; `-` where it is none."""
    return str(_address(request) or "-")


def network_of(request: Request) -> str:
    """Return what counts as one client: an IPv4 address, or the /64 network of an IPv6 address; `-` where it is none.

    Whoever has one IPv6 address usually has all 2**64 of its network, and could use another one for each request.
    """
    address = _address(request)
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((address, IPV6_PREFIX), strict=False))
    return str(address or "-")


def trusted_proxies(proxies: Iterable[str]) -> list[str]:
    """Return the networks whose X-Forwarded-For counts, as uvicorn takes them.

    Raises:
        UserError: one is neither an address nor a network, nor `*`.
    """
    networks = []
    for proxy in proxies:
        if proxy == "*":
            return ["*"]
        try:
            network = ipaddress.ip_network(proxy, strict=False)
        except ValueError as error:
            fix = "Write addresses and networks: 127.0.0.1,10.0.0.0/8."
            raise UserError(f"--proxies {proxy!r} is no address", fix=fix) from error
        networks.append(str(network))
        if isinstance(network, ipaddress.IPv4Network):
            # On a socket for both IPv6 and IPv4, the connection of an IPv4 proxy comes from ::ffff:127.0.0.1.
            networks.append(f"::ffff:{network.network_address}/{96 + network.prefixlen}")
    return networks


def _address(request: Request) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Parse the client's address; a proxy's header may say anything, of any length."""
    host = request.client.host if request.client else ""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    if any(address in network for network in _HOLDING_IPV4):
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


class RateLimits:
    """Checks API keys, and counts requests by key, or by address (IPv6: by network) where no keys are needed."""

    def __init__(self, options: ServerOptions) -> None:
        """`options`: keys and limits."""
        self.options = options
        self.minute, self.day, self.wrong = Counter(60), Counter(24 * 60 * 60), Counter(60)
        self.known: OrderedDict[tuple[str, str], None] = OrderedDict()
        """Addresses or networks, each with a key that it has been let in with."""

    def check(self, request: Request, fields: dict[str, Any], *, light: bool = False) -> str:
        """Let a request pass; return who it is from.

        Args:
            request: that is to pass.
            fields: of it.
            light: whether it asks little of the server: of such requests `LIGHT` times as many may pass, and they are
                counted apart.

        Raises:
            ApiError: 400 without a key where one is needed, 403 with a wrong one, 429 too many requests.
        """
        key = self.key(request, fields)
        facts = (self.options.api_keys[key] if key else None) or ApiKey()
        quota = facts.quota or self.options.quota
        who = f"key {key}" if key else f"address {network_of(request)}"
        for counter, most, when in (
            (self.minute, quota.per_minute, "minute"),
            (self.day, quota.per_day, "day"),
        ):
            most *= LIGHT if light else 1
            wait = counter.count(f"light {who}" if light else who, most) if most else None
            if most and counter is self.minute and not light:
                request.scope[RATE_LIMIT] = (most, *counter.state(who, most))
            if wait is not None:
                raise ApiError(429, f"Slowdown: more than {most} requests a {when}", retry_after=int(wait) + 1)
        return who

    def key(self, request: Request, fields: dict[str, Any]) -> str | None:
        """Return the key that a request carries, None where none are needed.

        Raises:
            ApiError: 400 without a key where one is needed, 403 with a wrong one, 429 after too many wrong ones.
        """
        if not self.options.api_keys:
            return None
        authorization = request.headers.get("authorization", "")
        for scheme in ("Bearer ", "DeepL-Auth-Key "):
            authorization = authorization.removeprefix(scheme)
        given = fields.get("api_key") or authorization.strip()
        if not given:
            raise ApiError(400, "Invalid request: an API key is needed (api_key)")
        address = network_of(request)
        found = [key for key in self.options.api_keys if hmac.compare_digest(str(given).encode(), key.encode())]
        if found and (address, found[0]) in self.known:
            return self._admitted(request, found[0])
        if (wait := self.wrong.wait(address, WRONG_KEYS)) is not None:
            raise ApiError(429, "Slowdown: too many wrong API keys", retry_after=int(wait) + 1)
        if not found:
            self.wrong.count(address, WRONG_KEYS)
            raise ApiError(403, "Invalid API key")
        self.known[address, found[0]] = None
        while len(self.known) > REMEMBERED:
            self.known.popitem(last=False)
        return self._admitted(request, found[0])

    def _admitted(self, request: Request, key: str) -> str:
        """Note for the log whose key a request has; return the key."""
        facts = self.options.api_keys[key]
        request.scope[KEY_NAME] = facts.name if facts else ""
        return key
