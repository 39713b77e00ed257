"""API keys and rate limits: which clients may send requests, and how many."""

from __future__ import annotations

import hmac
import ipaddress
import time
from collections.abc import Iterable
from typing import Any

from cachetools import FIFOCache
from starlette.requests import HTTPConnection

from translucid.ground.errors import UserError
from translucid.serving.edge.failures import ApiError
from translucid.serving.server_options import ApiKey, Quota, ServerOptions

MAX_CLIENTS = 10_000
"""The maximum number of addresses and keys that are counted; those with the oldest requests are forgotten first."""
WRONG_KEYS = 10
"""The wrong keys a minute after which an address may only use keys that it has used successfully before."""
KEY_NAME = "translucid.key"
"""The entry of a request's scope with the name of its key."""
IPV6_PREFIX = 64
"""The bits of an IPv6 address that name its network; providers give each customer at least one such network."""
_CONTAINING_IPV4 = ipaddress.ip_network("::ffff:0:0/96"), ipaddress.ip_network("64:ff9b::/96")
"""IPv6 addresses whose last 32 bits are an IPv4 address: on dual-stack sockets (RFC 4291), behind NAT64 (RFC 6052)."""

LIGHT = 10
"""The number of light requests that count as one: a person who corrects a document sends one for each segment."""
RATE_LIMIT = "translucid.rate_limit"
"""The entry of a scope with the limit of requests a minute, how many remain, and the seconds until the next minute."""


class Counter:
    """Counts requests by client in windows of time, each of which begins with the client's first request.

    The memory of the package `limits` keeps all clients until their windows end, and an attacker may have more IPv6
    addresses in a day than fit into memory. Therefore this class forgets clients.
    """

    def __init__(self, seconds: float) -> None:
        """Count in windows of this many seconds."""
        self.seconds = seconds
        self.windows: FIFOCache[str, tuple[float, int]] = FIFOCache(MAX_CLIENTS)

    def count(self, client: str, limit: int) -> float | None:
        """Count a request; return the seconds to wait if the window had `limit` requests before it."""
        wait = self.wait(client, limit)
        start, count = self.windows.pop(client, (time.monotonic(), 0))
        self.windows[client] = start, min(count + 1, limit)
        return wait

    def wait(self, client: str, limit: int) -> float | None:
        """Return the seconds to wait if the window has `limit` requests, and forget a window that has ended."""
        start, count = self.windows.get(client, (0.0, 0))
        remaining = start + self.seconds - time.monotonic()
        if remaining <= 0:
            self.windows.pop(client, None)
            return None
        return remaining if count >= limit else None

    def state(self, client: str, limit: int) -> tuple[int, float]:
        """Return how many requests remain in the window, and the seconds until the next one begins."""
        now = time.monotonic()
        start, count = self.windows.get(client, (now, 0))
        end = start + self.seconds
        if end <= now:
            return limit, self.seconds  # of the window that the next request opens
        return max(0, limit - count), end - now


def address_of(request: HTTPConnection) -> str:
    """Return the client's address for the log; `-` if it is invalid."""
    return str(_address(request) or "-")


def network_of(request: HTTPConnection) -> str:
    """Return what counts as one client: an IPv4 address, or the /64 network of an IPv6 address; `-` if it is invalid.

    A client with one IPv6 address usually has all 2**64 of its network, and could use another one for each request.
    """
    address = _address(request)
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((address, IPV6_PREFIX), strict=False))
    return str(address or "-")


def trusted_proxies(proxies: Iterable[str]) -> list[str]:
    """Return the networks of proxies whose X-Forwarded-For header is trusted, in uvicorn's form.

    Raises:
        UserError: an entry is neither an address nor a network, nor `*`.
    """
    networks = []
    for proxy in proxies:
        if proxy == "*":
            return ["*"]
        try:
            network = ipaddress.ip_network(proxy, strict=False)
        except ValueError as error:
            fix = "Write addresses and networks: 127.0.0.1,10.0.0.0/8."
            raise UserError(f"`proxies` {proxy!r} is no address", fix=fix) from error
        networks.append(str(network))
        if isinstance(network, ipaddress.IPv4Network):
            # On a dual-stack socket, an IPv4 proxy has an address such as ::ffff:127.0.0.1.
            networks.append(f"::ffff:{network.network_address}/{96 + network.prefixlen}")
    return networks


def _address(request: HTTPConnection) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Parse the client's address, which may be any text, of any length, from a proxy's header."""
    if not request.client:
        return None
    try:
        # Without an IPv6 zone, as in fe80::1%eth0.
        address = ipaddress.ip_address(request.client.host.partition("%")[0])
    except ValueError:
        return None
    if any(address in network for network in _CONTAINING_IPV4):
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


class RateLimits:
    """Checks API keys, and limits requests by key, or by address (IPv6: by network) if no keys are required."""

    def __init__(self, options: ServerOptions) -> None:
        """Use the keys and limits of the options."""
        self.options = options
        self.minute, self.day, self.wrong = Counter(60), Counter(24 * 60 * 60), Counter(60)
        self.verified_keys: FIFOCache[tuple[str, str], None] = FIFOCache(MAX_CLIENTS)
        """Addresses or networks, each with a key that it has used successfully."""

    def check(self, request: HTTPConnection, fields: dict[str, Any], *, light: bool = False) -> str:
        """Check the key of a request, and count it; return the client, a key or an address.

        Args:
            request: the request.
            fields: its fields, which may contain the key.
            light: whether the request takes little work: clients may send `LIGHT` times as many of them, which are
                counted separately.

        Raises:
            ApiError: 401 without a key where one is required, 403 with a wrong one, 429 for too many requests.
        """
        client, quota = self._client(request, fields)
        if light:
            self._count(f"light {client}", Quota(quota.per_minute * LIGHT, quota.per_day * LIGHT))
        else:
            self._count(client, quota, request)
        return client

    def count(self, client: str) -> None:
        """Count another request of a client, whose request takes the work of several, such as live translation.

        Args:
            client: what `check` has returned.

        Raises:
            ApiError: 403, its key has been removed; 429, too many requests.
        """
        kind, _, key = client.partition(" ")
        quota = self.options.quota
        if kind == "key":
            if key not in self.options.api_keys:
                raise ApiError(403, "Invalid API key")
            quota = self._quota_of(key)
        self._count(client, quota)

    def _count(self, client: str, quota: Quota, request: HTTPConnection | None = None) -> None:
        """Count a request, and refuse it if its client has to wait; the answer to `request` states what remains."""
        for counter, limit, period in ((self.minute, quota.per_minute, "minute"), (self.day, quota.per_day, "day")):
            if not limit:
                continue
            wait = counter.count(client, limit)
            if request and counter is self.minute:
                self._state_remaining(request, client, limit)
            if wait is not None:
                raise ApiError(429, f"Slowdown: more than {limit} requests a {period}", retry_after=int(wait) + 1)

    def announce(self, request: HTTPConnection, fields: dict[str, Any]) -> None:
        """Let the answer state the client's remaining requests, without counting this one.

        Raises:
            ApiError: as `key`.
        """
        client, quota = self._client(request, fields)
        if quota.per_minute:
            self._state_remaining(request, client, quota.per_minute)

    def _state_remaining(self, request: HTTPConnection, client: str, limit: int) -> None:
        request.scope[RATE_LIMIT] = limit, *self.minute.state(client, limit)

    def _client(self, request: HTTPConnection, fields: dict[str, Any]) -> tuple[str, Quota]:
        """Return as whom to count a request, a key or an address, and the quota."""
        key = self.key(request, fields)
        if key is None:
            return f"address {network_of(request)}", self.options.quota
        return f"key {key}", self._quota_of(key)

    def _quota_of(self, key: str) -> Quota:
        settings = self.options.api_keys.get(key) or ApiKey()
        return settings.quota or self.options.quota

    def key(self, request: HTTPConnection, fields: dict[str, Any]) -> str | None:
        """Return the API key of a request, None if no keys are required.

        Raises:
            ApiError: 401 without a key where one is required, 403 with a wrong one, 429 after too many wrong ones.
        """
        if not self.options.api_keys:
            return None
        authorization = request.headers.get("authorization", "")
        for scheme in ("Bearer ", "DeepL-Auth-Key "):  # LibreTranslate's clients send the key as a field, `api_key`
            authorization = authorization.removeprefix(scheme)
        # DeepLX's clients send it as `token`, in the query.
        credential = fields.get("api_key") or fields.get("token") or authorization.strip()
        if not credential:
            raise ApiError(401, "Invalid request: an API key is needed (api_key)")
        address = network_of(request)
        key = self._valid_key(str(credential))
        # A client that has a valid key is served even if others behind the same address try wrong ones.
        if key is None or (address, key) not in self.verified_keys:
            if (wait := self.wrong.wait(address, WRONG_KEYS)) is not None:
                raise ApiError(429, "Slowdown: too many wrong API keys", retry_after=int(wait) + 1)
            if key is None:
                self.wrong.count(address, WRONG_KEYS)
                raise ApiError(403, "Invalid API key")
            self.verified_keys[address, key] = None
        settings = self.options.api_keys.get(key) or ApiKey()
        request.scope[KEY_NAME] = settings.name  # for the log
        return key

    def _valid_key(self, credential: str) -> str | None:
        """Return the key that equals a text, if there is one, in a time that does not depend on matching characters."""
        valid = None
        for key in list(self.options.api_keys):  # SIGHUP may change them meanwhile
            if hmac.compare_digest(credential.encode(), key.encode()):
                valid = key
        return valid
