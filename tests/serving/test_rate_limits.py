"""API keys and rate limits, with a clock that the tests set."""

from types import SimpleNamespace

import pytest

from translucid.ground.errors import UserError
from translucid.serving.edge import rate_limits
from translucid.serving.edge.failures import ApiError
from translucid.serving.edge.rate_limits import KEY_NAME, RATE_LIMIT, Counter, RateLimits, address_of, network_of
from translucid.serving.server_options import ApiKey, Quota, ServerOptions, read_keys

from .refusals import refusal_of, stopped_clock


@pytest.fixture
def clock(monkeypatch):
    return stopped_clock(monkeypatch, rate_limits, 1000.0)


def request(host="192.0.2.7", **headers):
    client = SimpleNamespace(host=host) if host is not None else None
    return SimpleNamespace(client=client, headers=headers, scope={})


def test_a_window_begins_with_the_first_request_and_ends_after_its_seconds(clock):
    counter = Counter(60)
    assert counter.state("a", 2) == (2, 60)
    waits = []
    for now in (1000, 1010, 1020, 1059, 1060, 1061):
        clock.now = now
        waits.append(counter.count("a", 2))
    assert waits == [None, None, 40, 1, None, None]
    assert counter.state("a", 2) == (0, 59)
    assert counter.state("b", 2) == (2, 60)
    assert counter.windows == {"a": (1060, 2)}
    clock.now = 1119
    assert counter.wait("a", 2) == 1 and counter.wait("a", 3) is None and counter.windows
    clock.now = 1120
    assert counter.wait("a", 2) is None and not counter.windows
    clock.now = 1300
    assert Counter(60).count("new", 0) is None  # the first request opens the window


def test_refused_requests_do_not_count(clock):
    counter = Counter(60)
    for _ in range(5):
        counter.count("a", 2)
    assert counter.windows == {"a": (1000, 2)}
    counter.windows["a"] = 1000, 5
    assert counter.state("a", 2) == (0, 60)
    clock.now = 1060
    assert counter.state("a", 2) == (2, 60)  # the next request opens a window


def test_clients_whose_last_request_is_longest_ago_are_forgotten_first(clock, monkeypatch):
    assert rate_limits.MAX_CLIENTS == 10_000
    monkeypatch.setattr(rate_limits, "MAX_CLIENTS", 2)
    counter = Counter(60)
    for client in "abac":
        counter.count(client, 9)
    assert counter.windows == {"a": (1000, 2), "c": (1000, 1)}


@pytest.mark.parametrize(
    ("host", "address", "network"),
    [
        ("192.0.2.7", "192.0.2.7", "192.0.2.7"),
        ("2001:db8:0:0:ffff::3", "2001:db8::ffff:0:0:3", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::1", "fe80::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7", "192.0.2.7"),
        ("64:ff9b::192.0.2.7", "192.0.2.7", "192.0.2.7"),
        ("64:ff9b:0:0:0:1:c000:207", "64:ff9b::1:c000:207", "64:ff9b::/64"),
        ("::fffe:192.0.2.7", "::fffe:c000:207", "::/64"),
        ("nobody", "-", "-"),
        (None, "-", "-"),
    ],
)
def test_the_address_in_the_log_and_the_network_that_counts(host, address, network):
    assert (address_of(request(host)), network_of(request(host))) == (address, network)


def test_the_quotas_of_a_minute_and_a_day(clock):
    limits = RateLimits(ServerOptions(quota=Quota(per_minute=2, per_day=3)))
    headers = []
    for now in (1000, 1030.5, 1060, 1060.5):
        clock.now = now
        timed_request = request()
        try:
            assert limits.check(timed_request, {}) == "address 192.0.2.7"
            headers.append(timed_request.scope[RATE_LIMIT])
        except ApiError as error:
            headers.append((error.status, error.message, error.retry_after))
    day = 24 * 60 * 60
    assert headers == [
        (2, 1, 60),
        (2, 0, 29.5),
        (2, 1, 60),
        (429, "Slowdown: more than 3 requests a day", day - 60),
    ]
    clock.now = 1070.25
    assert refusal_of(limits.check, request(), {}) == (429, "Slowdown: more than 2 requests a minute", 50)
    assert limits.check(request("192.0.2.8"), {}) == "address 192.0.2.8"
    clock.now = 1000 + day
    assert limits.check(request(), {}) == "address 192.0.2.7"


def test_remaining_requests_are_announced_without_counting(clock):
    keys = {"secret": ApiKey(quota=Quota(per_minute=5)), "other": None, "free": ApiKey(quota=Quota())}
    limits = RateLimits(ServerOptions(api_keys=keys, quota=Quota(per_minute=2)))
    limits.check(request(), {"api_key": "secret"})
    clock.now = 1030
    scopes = {"secret": {RATE_LIMIT: (5, 4, 30)}, "other": {RATE_LIMIT: (2, 2, 60)}, "free": {}}
    for key, scope in scopes.items():
        for _ in range(3):
            announced = request(authorization=f"Bearer {key}")
            limits.announce(announced, {})
            assert announced.scope == scope | {KEY_NAME: ""}
    assert refusal_of(limits.announce, request(authorization="Bearer wrong"), {}) == (403, "Invalid API key", None)


def test_light_requests_are_counted_apart_and_ten_as_one(clock):
    limits = RateLimits(ServerOptions(quota=Quota(per_minute=1)))
    light = [request() for _ in range(11)]
    for light_request in light[:10]:
        assert limits.check(light_request, {}, light=True) == "address 192.0.2.7"
    assert refusal_of(limits.check, light[10], {}, light=True) == (
        429,
        "Slowdown: more than 10 requests a minute",
        61,
    )
    assert not any(light_request.scope for light_request in light)
    limits.check(request(), {})
    assert refusal_of(limits.check, request(), {}) == (429, "Slowdown: more than 1 requests a minute", 61)


def test_without_quotas_nothing_is_counted():
    limits = RateLimits(ServerOptions())
    repeated_request = request()
    for _ in range(3):
        limits.check(repeated_request, {"api_key": "ignored"})
    assert not repeated_request.scope and not limits.minute.windows and not limits.day.windows


@pytest.mark.parametrize(
    ("headers", "fields"),
    [
        ({}, {"api_key": "secret"}),
        ({"authorization": "Bearer secret"}, {}),
        ({"authorization": "DeepL-Auth-Key secret "}, {"api_key": ""}),
        ({"authorization": "secret"}, {}),
        ({"authorization": "Bearer other"}, {"api_key": "secret"}),
    ],
)
def test_a_key_may_be_a_field_or_a_header(headers, fields):
    limits = RateLimits(ServerOptions(api_keys={"secret": ApiKey(name="office"), "third": None}))
    key_request = request(**headers)
    assert limits.key(key_request, fields) == "secret" and key_request.scope == {KEY_NAME: "office"}
    assert limits.check(key_request, fields) == "key secret"
    third = request()
    assert limits.key(third, {"api_key": "third"}) == "third" and third.scope == {KEY_NAME: ""}
    for without_key in ({}, {"api_key": ""}, {"api_key": None}):
        assert refusal_of(limits.key, request(), without_key) == (
            401,
            "Invalid request: an API key is needed (api_key)",
            None,
        )
    assert RateLimits(ServerOptions()).key(request(), {}) is None


def test_a_key_has_its_own_quota_or_the_usual_one(clock):
    keys = {"own": ApiKey(Quota(per_minute=1)), "usual": ApiKey(), "bare": None, "free": ApiKey(Quota())}
    limits = RateLimits(ServerOptions(api_keys=keys, quota=Quota(per_minute=2)))
    for key, allowed in (("own", 1), ("usual", 2), ("bare", 2)):
        for _ in range(allowed):
            assert limits.check(request(), {"api_key": key}) == f"key {key}"
        message = f"Slowdown: more than {allowed} requests a minute"
        assert refusal_of(limits.check, request(), {"api_key": key}) == (429, message, 61)
    for _ in range(5):
        limits.check(request(), {"api_key": "free"})


def test_wrong_keys_are_limited_except_for_clients_that_have_used_the_right_one(clock, monkeypatch):
    monkeypatch.setattr(rate_limits, "MAX_CLIENTS", 2)
    limits = RateLimits(ServerOptions(api_keys={"secret": None, "other": None}))
    assert limits.key(request(), {"api_key": "secret"}) == "secret"
    for wrong_key in ("guess", "secre", "secrets", 3, ["secret"], "guess", "x", "y", "z", "é"):
        assert refusal_of(limits.key, request(), {"api_key": wrong_key}) == (403, "Invalid API key", None)
    clock.now += 20.5
    too_many = (429, "Slowdown: too many wrong API keys", 40)
    for key in ("guess", "other"):
        assert refusal_of(limits.key, request(), {"api_key": key}) == too_many
    assert limits.key(request(), {"api_key": "secret"}) == "secret"
    assert limits.key(request("192.0.2.8"), {"api_key": "other"}) == "other"
    clock.now += 39.5
    assert limits.key(request(), {"api_key": "other"}) == "other"
    limits.key(request("192.0.2.9"), {"api_key": "secret"})
    assert [*limits.verified_keys] == [("192.0.2.7", "other"), ("192.0.2.9", "secret")]


def test_lines_of_keys_with_their_settings(tmp_path):
    file = tmp_path / "keys.txt"
    file.write_text(
        "# a comment\n\n  one  \ntwo per-minute=999999999 name=Büro.2@x-1\nthree per-day=0\n#x y\nfour name=a\n"
    )
    default_quota = Quota(per_minute=5, per_day=50)
    assert read_keys(file, default_quota) == {
        "one": ApiKey(),
        "two": ApiKey(Quota(999_999_999, 50), "Büro.2@x-1"),
        "three": ApiKey(Quota(5, 0)),
        "four": ApiKey(name="a"),
    }
    fix = "Write KEY, or KEY name=office per-minute=60 per-day=1000."
    for setting in ("per-minute=1234567890", "per-day=-1", "per-day", "name=a/b", "name=" + "x" * 51, "=3", "two"):
        file.write_text(f"one name={'x' * 50}\n\ntwo per-minute=3 {setting}\n")
        with pytest.raises(UserError) as error:
            read_keys(file)
        assert str(error.value) == f"{file}:3: is no API key with its limits. {fix}"
    file.write_text("\n# nothing\n")
    with pytest.raises(UserError) as error:
        read_keys(file)
    assert str(error.value) == f"{file}: holds no API key. Write one a line."
