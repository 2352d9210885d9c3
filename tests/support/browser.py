"""A real browser without a window: Chromium, driven over the WebDriver protocol (https://www.w3.org/TR/webdriver2)."""

from __future__ import annotations

import base64
import http.client
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.ports import free_port
from tests.support.processes import descendants, kill
from tests.support.waiting import PATIENCE, eventually

HOW_TO_INSTALL = "needs Chromium: apt-get install chromium chromium-driver"

_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
"""Key of an element's reference in JSON, fixed by the protocol."""

_MOVES_SECONDS = 10.0
"""Maximum number of seconds for which a page moves under a click."""

_NAMES = ("chromium", "chromium-browser", "google-chrome")

_ARGUMENTS = [
    "--headless=new",
    "--no-sandbox",  # Chromium refuses to run as root without it
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
    "--no-proxy-server",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
    "--window-size=1500,1100",
    "--hide-scrollbars",
]


class Browser:
    """Chromium with one page. It reaches addresses of this machine only.

    A dialog that a page opens, such as by `alert`, fails the next command.

    Args:
        folder: for its log.
    """

    def __init__(self, folder: Path) -> None:
        driver, binary = _installed()
        self._port = free_port()
        self._log = folder / "chromedriver.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [driver, f"--port={self._port}"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder
            )
        try:
            eventually(self._is_ready, what=self._output)
            options = {"binary": binary, "args": [*_ARGUMENTS, f"--user-data-dir={folder / 'chromium'}"]}
            wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
            self._session = ""
            made = self._send("POST", "session", {"capabilities": {"alwaysMatch": wanted}})
            self._session = f"session/{made['sessionId']}/"
        except BaseException:
            self.close()
            raise

    def open(self, address: str) -> None:
        """Opens a page and waits until it is loaded."""
        self._send("POST", "url", {"url": address})

    def run(self, script: str, *arguments: Any) -> Any:
        """Result of JavaScript in the page."""
        return self._send("POST", "execute/sync", {"script": script, "args": list(arguments)})

    def click(self, selector: str, text: str | None = None) -> None:
        """Clicks the first visible element of a CSS selector, as a user does: it must not be covered, but for a moment
        in which the page moves.

        Args:
            selector: the CSS selector.
            text: the whole text of the element; None for any.
        """
        script = """
            const trimmed = e => e.innerText.replace(/\\s+/g, ' ').replace(/[\\u25BE\\u25B4]/g, '').trim();
            const found = [...document.querySelectorAll(arguments[0])]
                .find(e => e.getClientRects().length && (arguments[1] === null || trimmed(e) === arguments[1]));
            if (found) found.scrollIntoView({block: 'center', behavior: 'instant'});
            return found;
        """

        def is_clicked() -> bool:
            element = self.run(script, selector, text)
            assert element is not None, f"no {selector} with {text!r} in {self.address}: {self.text()[-2000:]}"
            try:
                self._send("POST", f"element/{element[_ELEMENT]}/click", {})
            except AssertionError as e:
                if "element click intercepted" not in str(e):
                    raise
                return False
            return True

        eventually(is_clicked, _MOVES_SECONDS, f"{selector} is not covered", poll=0.2)

    @property
    def address(self) -> str:
        """Address of the page."""
        return str(self._send("GET", "url"))

    def text(self, selector: str = "body") -> str:
        """Text of an element as it is shown, with single spaces; empty without such an element."""
        return str(self.run("return (document.querySelector(arguments[0])?.innerText ?? '')", selector))

    def texts(self, selector: str) -> list[str]:
        """Texts of all elements of a CSS selector, also of those in pictures."""
        script = "return [...document.querySelectorAll(arguments[0])].map(e => e.textContent.trim())"
        return [str(text) for text in self.run(script, selector)]

    def table(self, name: str) -> list[list[str]]:
        """Texts of the rows of a table without its header."""
        script = """
            return [...document.querySelectorAll('#' + CSS.escape(arguments[0]) + ' tbody tr')]
                .map(r => [...r.cells].map(c => c.innerText.replace(/\\s+/g, ' ').trim()));
        """
        return [[str(cell) for cell in row] for row in self.run(script, name)]

    def sizes(self, selector: str) -> list[tuple[float, float]]:
        """Widths and heights of all elements of a CSS selector on the screen."""
        script = """
            return [...document.querySelectorAll(arguments[0])]
                .map(e => e.getBoundingClientRect()).map(r => [r.width, r.height]);
        """
        return [(float(width), float(height)) for width, height in self.run(script, selector)]

    def loaded(self) -> list[str]:
        """Addresses of everything that the page has loaded."""
        script = "return [location.href, ...performance.getEntriesByType('resource').map(e => e.name)]"
        return [str(name) for name in self.run(script)]

    def errors(self) -> list[str]:
        """Errors of pages since the last call: of scripts, and of files that were not found."""
        entries = self._send("POST", "se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] == "SEVERE"]

    def screenshot(self, path: Path, selector: str | None = None) -> None:
        """Writes a picture of the window, or of one element, as PNG."""
        if selector is None:
            data = self._send("GET", "screenshot")
        else:
            element = self.run("return document.querySelector(arguments[0])", selector)
            data = self._send("GET", f"element/{element[_ELEMENT]}/screenshot")
        path.write_bytes(base64.b64decode(data))

    def close(self) -> None:
        """Kills the browser."""
        for pid in [*descendants(self._process.pid), self._process.pid]:
            kill(pid)
        self._process.wait()

    def _is_ready(self) -> bool:
        assert self._process.poll() is None, self._output()
        try:
            return bool(self._call("GET", "/status")["ready"])
        except OSError:
            return False

    def _send(self, method: str, command: str, body: Any = None) -> Any:
        return self._call(method, f"/{self._session}{command}", body)

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
        try:
            connection.request(method, path.rstrip("/"), None if body is None else json.dumps(body))
            value = json.loads(connection.getresponse().read())["value"]
        finally:
            connection.close()
        if isinstance(value, dict) and "error" in value:
            raise AssertionError(f"{method} {path}: {value['error']}: {value['message']}")
        return value

    def _output(self) -> str:
        return self._log.read_text(errors="replace")


def _installed() -> tuple[str, str]:
    """Programs of the driver and the browser. Skips the test without them."""
    driver, binaries = shutil.which("chromedriver"), [shutil.which(name) for name in _NAMES]
    binary = next(filter(None, binaries), None)
    if driver is None or binary is None:
        pytest.skip(HOW_TO_INSTALL)
    return driver, binary
