"""Chromium by the DevTools protocol, as far as the tests of pages need it: what a person and a screen reader meet."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Tab:
    """A page in Chromium; `events` has what it asked of the network and said on its console."""

    def __init__(self, address: str) -> None:
        from websocket import create_connection

        self.socket = create_connection(address, timeout=30, suppress_origin=True)
        self.number, self.events = 0, []  # type: ignore[var-annotated]
        for domain in ("Page", "Runtime", "Network", "Log", "Accessibility", "DOM"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **parameters: Any) -> Any:
        """The answer to a command."""
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.recv())
            if message.get("id") == self.number:
                assert "error" not in message, message["error"]
                return message["result"]
            self.events.append(message)

    def open(self, path: Path | str, width: int = 1280, height: int = 800) -> None:
        """Load a file, or an address, at a size of the window, and wait until its script has run."""
        self.events.clear()
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.send("Emulation.setDeviceMetricsOverride", **size)
        self.send("Page.navigate", url=path if isinstance(path, str) else path.absolute().as_uri())
        for _ in range(200):
            if self.run("document.readyState === 'complete' && performance.now() > 50"):
                return
            time.sleep(0.05)
        raise AssertionError("the page did not load")

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def until(self, script: str) -> None:
        """Wait until an expression in the page is true."""
        for _ in range(400):
            if self.run(script):
                return
            time.sleep(0.05)
        raise AssertionError(f"never true: {script}")

    def another(self) -> Tab:
        """A second tab of the same browser."""
        host, port = self.socket.sock.getpeername()[:2]
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        return Tab(f"ws://{host}:{port}/devtools/page/{target}")

    def key(self, name: str, text: str = "") -> None:
        """Press and release a key."""
        codes = {"Tab": 9, "Enter": 13}
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=name, windowsVirtualKeyCode=codes[name], text=text)

    def complaints(self) -> list[str]:
        """Messages of the console, errors, and requests other than for the file itself."""
        self.run("0")
        said = []
        for event in self.events:
            match event.get("method"):
                case "Runtime.consoleAPICalled" | "Runtime.exceptionThrown" | "Log.entryAdded":
                    said.append(json.dumps(event["params"])[:300])
                case "Network.requestWillBeSent":
                    url = event["params"]["request"]["url"]
                    said += [url[:100]] if not url.startswith(("file:", "data:")) else []
        return said


@contextmanager
def chromium(profile: Path) -> Iterator[Tab]:
    """A tab of a Chromium of its own, which ends with the block."""
    pytest.importorskip("websocket", reason="websocket-client drives the browser")
    if CHROMIUM is None:
        pytest.skip("no Chromium: Debian has it as the package chromium")
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-port=0"]
    process = subprocess.Popen(
        [CHROMIUM, *options, f"--user-data-dir={profile}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        told = profile / "DevToolsActivePort"
        for _ in range(300):
            if told.exists() and told.read_text().strip():
                break
            time.sleep(0.1)
        port = told.read_text().split()[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=30) as answer:
            tabs = json.load(answer)
        opened = Tab(next(tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page"))
        try:
            yield opened
        finally:
            opened.socket.close()
    finally:
        process.terminate()
        process.wait(timeout=30)
