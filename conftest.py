"""Fixtures of all tests: one thread for JAX and BLAS, the command line in this process, a real browser, a real cluster.

Debian's chromium is driven by the DevTools protocol over a pipe (`--remote-debugging-pipe`): nothing is downloaded and no
port is opened. Without a browser these tests are skipped, except in CI, where that is an error.
"""

import fcntl
import gc
import json
import os
import re
import shutil
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest

# Before any test: one thread for JAX and BLAS in each worker, so that two do not fight over two cores.
for _threads in ("PJRT_NPROC", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")

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


@pytest.fixture
def command_line(monkeypatch, capfd):
    """Runs `policyspace ARGUMENTS…`: its exit code, and what it printed and complained."""
    from policyspace.cli import main

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["policyspace", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = capfd.readouterr()
        return stop.value.code, out, err

    return run


def started(*command, words):
    """A process that has said these words."""
    process = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli." + command[0], *command[1:]], stderr=subprocess.PIPE, text=True
    )
    seen = ""
    for line in process.stderr:
        seen += line
        if found := re.search(words, line):
            return process, found
    raise AssertionError(seen)


@pytest.fixture
def scheduler():
    """The address of a real one, and its process."""
    process, found = started(
        "dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", words=r"Scheduler at:\s+(tcp://\S+)"
    )
    yield found.group(1), process
    process.kill()
    process.wait()


@pytest.fixture
def workers(scheduler, tmp_path):
    """Two, without nannies that would start them again."""
    options = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(tmp_path))
    processes = [started("dask_worker", scheduler[0], *options, words="Registered to")[0] for _ in range(2)]
    yield processes
    for process in processes:
        process.kill()
        process.wait()


MOST_MAPPINGS = 25_000
"""Of memory, in one process: Linux allows 65 530, and loading a compiled program beyond them is a segmentation fault."""


@pytest.fixture(autouse=True, scope="module")
def few_compiled_programs():
    """Every compiled program has mappings of its own; those of tests before are dropped before they are too many."""
    yield
    jax, mappings = sys.modules.get("jax"), Path("/proc/self/maps")
    if jax is not None and mappings.exists() and mappings.read_bytes().count(b"\n") > MOST_MAPPINGS:
        jax.clear_caches()
        gc.collect()
