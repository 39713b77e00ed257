"""Host names, origins and proxies that a server accepts."""

import json
import signal
import socket
import time
import urllib.error
import urllib.request

import pytest

from tests.probes.forked import forked
from translucid.serving.edge.middleware import is_loopback

REQUEST = {"q": "I sing", "source": "en", "target": "es"}


@pytest.fixture(scope="module")
def client(serve_for_all):
    return serve_for_all(hosts=("here.example",))


def ask(client, host="localhost:5000", **headers):
    return client.post("/translate", json=REQUEST, headers={"Host": host, **headers})


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:5000", 200),
        ("a.localhost", 200),
        ("127.0.0.1:5000", 200),
        ("127.9.9.9", 200),
        ("[::1]:5000", 200),
        ("localhost.", 200),
        ("Here.example:80", 200),
        ("evil.example", 421),
        ("localhost.evil.example", 421),
        ("192.0.2.1", 421),
        ("", 421),
        ("[::1", 421),
        ("127.0.0.1.evil.example", 421),
    ],
)
def test_a_page_that_points_its_own_name_here_is_refused(client, host, status):
    response = ask(client, host)
    assert response.status_code == status
    assert status == 200 or "--hosts" in response.json()["error"]


@pytest.mark.parametrize(
    ("origins", "origin", "status", "allowed"),
    [
        ((), "https://evil.example", 403, None),
        ((), "null", 403, None),
        ((), "http://localhost:5000", 200, None),  # the server's own page
        ((), "http://localhost:8080", 403, None),
        (("https://good.example",), "https://good.example", 200, "https://good.example"),
        (("https://good.example",), "https://evil.example", 403, None),
        (("*",), "https://any.example", 200, "*"),
        ((), "chrome-extension://abcdefgh", 200, "chrome-extension://abcdefgh"),
        (("https://good.example",), "moz-extension://1-2", 200, "moz-extension://1-2"),
    ],
)
def test_pages_of_other_sites_use_it_only_where_they_may(serve, origins, origin, status, allowed):
    client = serve(origins=origins)
    response = ask(client, Origin=origin)
    assert response.status_code == status
    assert response.headers.get("access-control-allow-origin") == allowed
    preflight_headers = {"Host": "localhost:5000", "Origin": origin, "Access-Control-Request-Method": "POST"}
    preflight = client.options("/translate", headers=preflight_headers)
    assert preflight.headers.get("access-control-allow-origin") == allowed
    if allowed:
        assert preflight.status_code == 200


def test_its_own_page_may_use_it_behind_a_proxy_that_calls_it_by_another_name(serve):
    """The browser sets Sec-Fetch-Site, and a page can't forge it."""
    assert ask(serve(), Origin="https://here.example", **{"Sec-Fetch-Site": "same-origin"}).status_code == 200
    assert ask(serve(), Origin="https://here.example", **{"Sec-Fetch-Site": "same-site"}).status_code == 403


def test_a_simple_form_of_another_site_is_refused_too(serve):
    """Browsers send such forms without a preflight request."""
    response = serve().post("/translate", data=REQUEST, headers={"Host": "localhost", "Origin": "https://evil.example"})
    assert response.status_code == 403


@pytest.mark.parametrize(
    ("options", "hosts", "origins"),
    [
        ([], (), ()),
        (["--host", "::1"], (), ()),
        (["--host", "0.0.0.0"], ("*",), ("*",)),
        (["--host", "0.0.0.0", "--hosts", "A.example, 10.0.0.5"], ("a.example", "10.0.0.5"), ("*",)),
        (["--origins", "https://a.example"], (), ("https://a.example",)),
        (["--host", "0.0.0.0", "--hosts", "localhost", "--origins", "none"], ("localhost",), ()),
        (["--host", "0.0.0.0", "--hosts", "none"], (), ("*",)),
    ],
)
def test_who_opens_it_to_a_network_means_others_to_use_it(run, serve_arguments, options, hosts, origins):
    """Only the options that the command derives are checked; no model is loaded."""
    _, server_options = serve_arguments(run, *options)
    assert (server_options.hosts, server_options.origins) == (hosts, origins)


@pytest.mark.parametrize(("proxies", "statuses"), [([], [200, 200, 429]), (["--proxies", "127.0.0.1"], [200] * 3)])
def test_forwarded_addresses_are_those_of_trusted_proxies_only(run, proxies, statuses, tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = tmp_path / "log"
    server = forked("serve", run, "--port", str(port), "--rate-limit", "2/minute", *proxies, log=log)
    try:
        while "page and API" not in log.read_text():
            assert server.poll() is None, log.read_text()
            time.sleep(0.02)
        received = []
        for number in range(3):
            headers = {"Content-Type": "application/json", "X-Forwarded-For": f"192.0.2.{number}"}
            request = urllib.request.Request(
                f"http://127.0.0.1:{port}/translate", json.dumps(REQUEST).encode(), headers
            )
            try:
                with urllib.request.urlopen(request, timeout=60) as response:
                    received.append(response.status)
            except urllib.error.HTTPError as error:
                received.append(error.code)
        assert received == statuses
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(60)


def test_names_that_are_always_here():
    assert all(map(is_loopback, ["localhost", "127.0.0.1", "::1", "x.localhost"]))
    assert not any(map(is_loopback, ["", "0.0.0.0", "::", "example.org", "localhost.example.org"]))
