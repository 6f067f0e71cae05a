"""A real browser for the tests of pages.

Debian's chromium is driven by the DevTools protocol over a pipe (`--remote-debugging-pipe`): nothing is downloaded and no
port is opened. Without a browser these tests are skipped, except in CI, where that is an error.
"""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from itertools import count

import pytest

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)

# The pipe must be the file descriptors 3 and 4 of the browser.
LAUNCH = "import os,sys; os.dup2(int(sys.argv[1]),3); os.dup2(int(sys.argv[2]),4); os.execv(sys.argv[3], sys.argv[3:])"


class Browser:
    """A headless chromium: one request at a time, events kept."""

    def __init__(self, profile):
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (theirs_in, theirs_out)]  # not 3 or 4 themselves
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        command = [CHROMIUM, *options, f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, *map(str, ends), *command], pass_fds=ends, stderr=subprocess.DEVNULL
        )
        for end in (theirs_in, theirs_out, *ends):
            os.close(end)
        self._numbers, self._buffer, self.events = count(1), b"", []
        self._session = None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method, **parameters):
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]

    def wait_for(self, event):
        while not any(seen["method"] == event for seen in self.events):
            self._next()

    def open(self, url, width):
        self.events.clear()
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
        self.ask("Page.navigate", url=url)
        self.wait_for("Page.loadEventFired")

    def evaluate(self, expression):
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def complaints(self):
        """What a reader of the console would see."""
        self.evaluate("0")  # whatever was on its way has arrived
        told = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded", "Network.loadingFailed")
        return [event for event in self.events if event["method"] in told]

    def requests(self):
        return [e["params"]["request"]["url"] for e in self.events if e["method"] == "Network.requestWillBeSent"]

    def close(self):
        self._process.kill()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)

    def _next(self):
        while b"\0" not in self._buffer:
            piece = os.read(self._in, 1 << 20)
            assert piece, "the browser has ended"
            self._buffer += piece
        message, self._buffer = self._buffer.split(b"\0", 1)
        message = json.loads(message)
        if "method" in message:
            self.events.append(message)
        return message


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    if CHROMIUM is None:
        if os.environ.get("CI") == "true":
            pytest.fail("CI must test the page in a browser, found none: apt-get install chromium")
        pytest.skip("no browser here: install chromium to test the page in it")
    opened = Browser(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()
