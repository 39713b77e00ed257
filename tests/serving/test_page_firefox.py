"""The page in Firefox, driven by WebDriver BiDi over its own port: what works in Chromium works there."""

import itertools
import json
import re
import shutil
import socket
import subprocess

import pytest
import websocket

from .test_clients import address  # noqa: F401

FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
if FIREFOX is None:
    pytest.skip("no Firefox here (apt-get install firefox-esr)", allow_module_level=True)


class Firefox:
    """One tab: commands are sent, their answers waited for, errors of the page kept."""

    def __init__(self, port: int) -> None:
        self.numbers, self.errors = itertools.count(1), []
        self.socket = websocket.create_connection(f"ws://127.0.0.1:{port}/session", timeout=60, suppress_origin=True)
        self.ask("session.new", capabilities={})
        self.ask("session.subscribe", events=["log.entryAdded"])
        self.tab = self.ask("browsingContext.getTree")["contexts"][0]["context"]

    def ask(self, method: str, **parameters: object) -> dict:
        number = next(self.numbers)
        self.socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self.socket.recv())
            if answer.get("method") == "log.entryAdded" and answer["params"]["level"] == "error":
                self.errors.append(answer["params"]["text"])
            if answer.get("id") == number:
                assert answer["type"] == "success", answer
                return answer["result"]

    def run(self, function: str) -> object:
        """Return what an asynchronous function of the page returns, a text or a number."""
        found = self.ask(
            "script.callFunction", functionDeclaration=function, awaitPromise=True, target={"context": self.tab}
        )
        assert found["type"] == "success", found
        return found["result"].get("value")

    def wait(self, what: str) -> object:
        """Wait until an expression of the page is true."""
        return self.run(f"""async () => {{
          for (let i = 0; i < 600; i += 1) {{
            if ({what}) return {what};
            await new Promise((done) => setTimeout(done, 50));
          }}
          throw new Error("waited in vain");
        }}""")

    def type(self, keys: str) -> None:
        presses = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        actions = [{"type": "key", "id": "keyboard", "actions": presses}]
        self.ask("input.performActions", context=self.tab, actions=actions)

    def click(self, id: str) -> None:
        box = f"document.getElementById('{id}').getBoundingClientRect()"
        x, y = (int(self.run(f"() => {box}.{side} + 8")) for side in ("left", "top"))
        steps = [
            {"type": "pointerMove", "x": x, "y": y},
            *({"type": f"pointer{way}", "button": 0} for way in ("Down", "Up")),
        ]
        actions = [{"type": "pointer", "id": "mouse", "actions": steps}]
        self.ask("input.performActions", context=self.tab, actions=actions)


@pytest.fixture(scope="module")
def firefox(tmp_path_factory):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    profile = tmp_path_factory.mktemp("firefox")
    command = [FIREFOX, "--headless", "--no-remote", "--profile", str(profile), "--remote-debugging-port", str(port)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if re.search("WebDriver BiDi listening", line):
            break
    yield Firefox(port)
    process.terminate()
    process.wait(30)


def test_typing_copying_swapping_and_dialogs(firefox, address):  # noqa: F811
    firefox.ask("browsingContext.navigate", context=firefox.tab, url=address, wait="complete")
    firefox.ask("browsingContext.activate", context=firefox.tab)
    firefox.wait("document.body.classList.contains('ready')")
    firefox.run("() => document.querySelector('#source').focus()")
    firefox.type("I like soccer")
    translation = firefox.wait("document.querySelector('#translation').textContent")
    assert translation
    firefox.wait("!document.querySelector('#seeing').hidden && document.querySelector('#seeing .word') && true")
    heights = firefox.run(
        "() => [...document.querySelectorAll('.pane')].slice(0, 2).map((one) => one.offsetHeight).join()"
    )
    first, second = str(heights).split(",")
    assert first == second
    firefox.click("open-history")
    assert firefox.wait("document.querySelector('#past button')?.textContent.includes('I like soccer')")
    firefox.type("\ue00c")  # Escape
    assert firefox.run("() => document.activeElement.id") == "open-history"
    firefox.type("?")
    assert firefox.wait("document.querySelector('#shortcuts').open")
    firefox.type("\ue00c")
    firefox.ask("browsingContext.reload", context=firefox.tab, wait="complete")
    assert firefox.wait("document.querySelector('#translation').textContent") == translation
    assert firefox.errors == []
