"""A Chromium without a window, spoken to over a pipe: pages as a browser makes them, and pictures of them."""

from __future__ import annotations

import base64
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["Browser", "chromium", "opened"]

_OPTIONS = (
    "--headless --no-sandbox --no-zygote --single-process --disable-gpu --hide-scrollbars --in-process-gpu"
    " --use-gl=angle --use-angle=swiftshader --remote-debugging-pipe"
)
_PATIENCE = 120.0  # seconds


def chromium() -> str | None:
    """A Chromium: that of WINDROW_CHROMIUM, or one on the PATH."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    return os.environ.get("WINDROW_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


class Browser:
    """A page of a browser; made by :func:`opened`."""

    def __init__(self, told: int, said: int) -> None:
        self._told, self._said = told, os.fdopen(said, "rb")
        self._numbers = itertools.count(1)
        self._session: str | None = None

    def attach(self, address: str, width: int, height: int) -> None:
        """Open an address."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.ask("Page.navigate", url=address)

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """What a method of the DevTools protocol answers."""
        number = next(self._numbers)
        asked: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            asked["sessionId"] = self._session
        os.write(self._told, json.dumps(asked).encode() + b"\0")
        while True:
            answer = json.loads(b"".join(iter(lambda: self._said.read(1), b"\0")))
            if answer.get("id") == number:
                assert "error" not in answer, answer
                found: dict[str, Any] = answer["result"]
                return found

    def html(self, until: str) -> str:
        """The page as it is when it has what a selector finds."""
        script = f"document.querySelector({json.dumps(until)}) ? document.documentElement.outerHTML : ''"
        end = time.monotonic() + _PATIENCE
        while not (found := self.ask("Runtime.evaluate", expression=script)["result"]["value"]):
            assert time.monotonic() < end, f"there is no {until} after {_PATIENCE} seconds"
            time.sleep(0.05)
        return str(found)

    def picture(self, path: Path) -> None:
        """Draw all of the page."""
        drawn = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(drawn["data"]))


@contextmanager
def opened(address: str, width: int = 1000, height: int = 800) -> Iterator[Browser]:
    """A browser with a page."""
    asked, told = os.pipe()
    said, answered = os.pipe()

    def connected() -> None:  # the browser reads from 3 and writes to 4
        high = [os.dup2(each, each + 100) for each in (asked, answered)]
        os.dup2(high[0], 3)
        os.dup2(high[1], 4)

    with tempfile.TemporaryDirectory() as profile:
        running = subprocess.Popen(
            [str(chromium()), *_OPTIONS.split(), f"--user-data-dir={profile}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=connected, pass_fds=(3, 4, asked, answered),
        )  # fmt: skip
        try:
            os.close(asked)
            os.close(answered)
            browser = Browser(told, said)
            browser.attach(address, width, height)
            yield browser
        finally:
            running.kill()
            running.wait()
