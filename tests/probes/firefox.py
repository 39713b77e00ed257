"""Firefox for tests of pages, controlled by WebDriver BiDi. Without Firefox, these tests are skipped."""

import itertools
import json
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import websocket

FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")


class Firefox:
    """A tab of Firefox. It sends commands, waits for their results, and collects the errors of the page."""

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
            message_received = json.loads(self.socket.recv())
            if message_received.get("method") == "log.entryAdded" and message_received["params"]["level"] == "error":
                self.errors.append(message_received["params"]["text"])
            if message_received.get("id") == number:
                assert message_received["type"] == "success", message_received
                return message_received["result"]

    def open(self, url: str) -> None:
        self.ask("browsingContext.navigate", context=self.tab, url=url, wait="complete")

    def run(self, function: str) -> object:
        """Run an asynchronous JavaScript function in the page; return its result, a text or a number."""
        response = self.ask(
            "script.callFunction", functionDeclaration=function, awaitPromise=True, target={"context": self.tab}
        )
        assert response["type"] == "success", response
        return response["result"].get("value")

    def wait(self, condition: str) -> object:
        """Wait until a JavaScript expression is true in the page; return its value."""
        return self.run(f"""async () => {{
          for (let i = 0; i < 600; i += 1) {{
            if ({condition}) return {condition};
            await new Promise((done) => setTimeout(done, 50));
          }}
          throw new Error("waited in vain");
        }}""")

    def type(self, keys: str) -> None:
        presses = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        actions = [{"type": "key", "id": "keyboard", "actions": presses}]
        self.ask("input.performActions", context=self.tab, actions=actions)

    def click(self, selector: str) -> None:
        box = f"document.querySelector({json.dumps(selector)}).getBoundingClientRect()"
        x, y = (int(self.run(f"() => {box}.{side} + 8")) for side in ("left", "top"))
        steps = [
            {"type": "pointerMove", "x": x, "y": y},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerUp", "button": 0},
        ]
        actions = [{"type": "pointer", "id": "mouse", "actions": steps}]
        self.ask("input.performActions", context=self.tab, actions=actions)


@contextmanager
def firefox(profile: Path) -> Iterator[Firefox]:
    """Start a browser with an empty folder as its profile."""
    if FIREFOX is None:
        pytest.skip("no Firefox (apt-get install firefox-esr)")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [FIREFOX, "--headless", "--no-remote", "--profile", str(profile), "--remote-debugging-port", str(port)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if re.search("WebDriver BiDi listening", line):
            break
    try:
        yield Firefox(port)
    finally:
        process.terminate()
        process.wait(30)
