"""The command `serve`: address, settings and error messages."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import uvicorn
from uvicorn.lifespan.off import LifespanOff

from tests.probes.forked import forked
from translucid.cli import main
from translucid.cli.serve import Access, Address, Limits, Logs, _server_options
from translucid.serving import catalog
from translucid.serving.catalog import load
from translucid.serving.edge.connections import Listening
from translucid.serving.server_options import Quota, ServerOptions


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def health_exit_code(port, prefix):
    """Return the exit code of the container's health check."""
    dockerfile = (Path(__file__).resolve().parents[2] / "Dockerfile").read_text().replace("\\\n", "")
    command = json.loads(re.search(r"^HEALTHCHECK .* CMD (.*)$", dockerfile, flags=re.MULTILINE)[1])
    variables = {**os.environ, "TRANSLUCID_PORT": str(port), "TRANSLUCID_URL_PREFIX": prefix}
    return subprocess.run([sys.executable, *command[1:]], env=variables, stderr=subprocess.DEVNULL).returncode


def line_of(log, number):
    """Return a line of a log as soon as it has been written."""
    for _ in range(6000):
        lines = log.read_text().splitlines(keepends=True)
        if lines[number:] and lines[number].endswith("\n"):
            return lines[number]
        time.sleep(0.01)
    raise AssertionError(log.read_text())


def test_the_address_is_said_when_it_is_ours_and_the_environment_counts(run, capfd, tmp_path):
    port, log = free_port(), tmp_path / "log"
    environment = {"TRANSLUCID_PORT": str(port), "TRANSLUCID_LOG_FORMAT": "json", "TRANSLUCID_URL_PREFIX": "/x"}
    server = forked("serve", f"en-de={run}", environment=environment, log=log)
    try:
        assert "en → de" in line_of(log, 0)
        assert f"http://127.0.0.1:{port}/x/" in line_of(log, 1)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/x/health", timeout=30) as response:
            assert json.load(response) == {"status": "ok"}
        assert json.loads(line_of(log, 2))["path"] == "/health"
        assert health_exit_code(port, "/x") == 0
        assert health_exit_code(free_port(), "/x") != 0
        capfd.readouterr()
        assert main.run(["serve", str(run), "--port", str(port)]) == 2
        stderr = capfd.readouterr().err
        assert f"port {port}" in stderr and "http://" not in stderr
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(60)


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="Windows has no SIGHUP")
def test_sighup_replaces_the_keys_of_a_running_server_whose_log_no_request_reaches(run, tmp_path):
    port, log, keys = free_port(), tmp_path / "log", tmp_path / "keys.txt"
    keys.write_text("first\n")

    def status(key):
        body = json.dumps({"q": "I sing", "source": "en", "target": "es", "api_key": key})
        return answer(body, "application/json")

    def answer(body, kind):
        address = f"http://127.0.0.1:{port}/translate"
        request = urllib.request.Request(address, body.encode(), {"Content-Type": kind})
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return response.status
        except urllib.error.HTTPError as error:
            return error.code

    options = ["--port", str(port), "--api-keys", str(keys), "--log-format", "off"]
    server = forked("serve", f"en-es={run}", *options, log=log)
    try:
        line_of(log, 1)
        assert [status("first"), status("second")] == [200, 403]
        for text, message in (("second\n", "read 1 API keys"), ("# none\n", "the API keys stay as they were")):
            keys.write_text(text)
            before = len(log.read_text().splitlines())
            assert answer("no boundary", "multipart/form-data; boundary=x") == 400
            server.send_signal(signal.SIGHUP)
            assert message in line_of(log, before)
            assert [status("first"), status("second")] == [403, 200]
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(60)


def test_a_server_that_stops_tells_how_many_requests_it_finishes(capsys):
    server = Listening(uvicorn.Config(lambda *_: None, lifespan="off", log_level="error"))
    server.servers, server.lifespan = [], LifespanOff(server.config)

    async def stop():
        task = asyncio.create_task(asyncio.sleep(0.05))
        task.add_done_callback(server.server_state.tasks.discard)
        server.server_state.tasks.add(task)
        await server.shutdown()

    asyncio.run(stop())
    assert capsys.readouterr().err == "stopping; 1 request is running\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["runs_demo=RUN"], "'runs_demo' does not name two languages"),
        (["eng-spa=RUN"], "Write en-es="),
        (["deu-fra=RUN"], "Write de-fr="),
        (["en-xx=RUN"], "'en-xx' does not name two languages"),
        (["RUN", "--host", "203.0.113.7"], "203.0.113.7"),
        (["en-es="], "en-es=: names no run folder"),
        (["RUN", "--host", "a..b"], "a..b"),
        (["RUN", "--url-prefix", "app"], "--url-prefix"),
        (["RUN", "--url-prefix", "//other.example"], "--url-prefix"),
        (["RUN", "--url-prefix", "/a?b"], "--url-prefix"),
        (["RUN", "--api-keys", "nowhere.txt"], "nowhere.txt"),
        (
            ["RUN", "--rate-limit", "60"],
            "--rate-limit '60' is no number of requests per time. Write 60/minute, 5000/day",
        ),
        (["RUN", "--rate-limit", "1/day,2/day"], "is no number of requests per time"),
        (["RUN", "--per-day", "60"], "The option --per-day is now --rate-limit N/day."),
        (["RUN", "--suggestions"], "--suggestions is for --memory"),
        (["RUN", "--knn"], "--knn is for --memory. Add --memory"),
        (["RUN", "--learn", "50", "--memory", "a.memory"], "--learn is for --suggestions. Add --suggestions"),
        (
            ["RUN", "--knn", "--memory", "old.tsv", "--engine", "ctranslate2"],
            "--knn and --engine ctranslate2 do not go",
        ),
        (["RUN", "--memory", "nowhere.memory"], "nowhere.memory: there is no such memory"),
        (["RUN", "--memory", "old.tmx", "--suggestions"], "old.tmx: can't be added to"),
    ],
)
def test_errors_are_one_line(run, arguments, message, tmp_path, monkeypatch, capfd):
    def fail(self, sockets):
        raise AssertionError("it serves")

    monkeypatch.setattr(Listening, "run", fail)
    arguments = [argument.replace("RUN", str(run)) for argument in arguments]
    monkeypatch.chdir(tmp_path)
    Path("old.tsv").write_text("I like soccer.\tMe encanta.\n")
    assert main.run(["serve", *arguments, "--port", str(free_port())]) == 2
    err = capfd.readouterr().err
    assert message in err
    assert err.count("\n") == 1
    assert "http://" not in err


def test_two_that_load_at_the_same_time_do_not_both_get_the_port(run, monkeypatch, capfd):
    """Until one of them listens, both can bind the address."""
    with socket.socket() as competitor:
        competitor.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        competitor.bind(("127.0.0.1", 0))

        def load_while_other_listens(*arguments):
            competitor.listen()
            return load(*arguments)

        monkeypatch.setattr(catalog, "load", load_while_other_listens)
        assert main.run(["serve", str(run), "--port", str(competitor.getsockname()[1])]) == 2
    stderr = capfd.readouterr().err
    assert "can't listen" in stderr and "http://" not in stderr


def test_every_setting_can_stand_in_the_environment():
    variables = {}
    for option in main.tree().commands["serve"].params:
        variables[option.name] = [option.envvar] if isinstance(option.envvar, str) else option.envvar
    assert variables == {name: [f"TRANSLUCID_{name.upper()}"] for name in variables}
    assert {"runs", "port", "engine", "device"} <= set(variables)


def test_a_rate_limit_is_per_minute_per_day_or_both():
    quotas = {text: Limits(rate_limit=text).quota() for text in ("", "60/minute", "5000/day,60/minute")}
    assert [*quotas.values()] == [Quota(), Quota(60), Quota(60, 5000)]


def test_every_option_has_its_default_in_one_place():
    assert ServerOptions().quota == Quota()


@pytest.mark.parametrize(
    ("address", "access", "is_shared"),
    [
        ({}, {}, True),
        ({"host": "0.0.0.0"}, {}, False),
        ({"host": "0.0.0.0"}, {"share_models": True}, True),
        ({"url_prefix": "/translate"}, {}, False),
        ({}, {"hosts": "translate.example.org"}, False),
        ({}, {"proxies": "127.0.0.1"}, False),
        ({}, {"proxies": "127.0.0.1", "share_models": True}, True),
    ],
)
def test_models_are_shared_with_this_machine_or_if_it_is_asked_for(address, access, is_shared):
    options = _server_options(Address(**address), Access(**access), Limits(), Logs())
    assert options.share_models is is_shared
