"""One input: some files and a command line or a call of the Python API; how it is run, judged, kept and found again."""

import base64
import contextlib
import functools
import gc
import hashlib
import io
import json
import os
import shutil
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import typer.main

# Reading the signatures of all commands takes most of the time of a small input: once is enough in one process.
typer.main.get_command = functools.cache(typer.main.get_command)

FOUND = Path(__file__).parent / "found"
MOST_SECONDS = 10


@dataclass
class Case:
    """Files by name, and what is run beside them: a command of policyspace, or `api` and a name in `api_calls`."""

    arguments: list[str]
    files: dict[str, bytes] = field(default_factory=dict)

    def to_json(self) -> str:
        files = {name: base64.b64encode(content).decode() for name, content in self.files.items()}
        return json.dumps({"arguments": self.arguments, "files": files}, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Case":
        found = json.loads(text)
        return cls(found["arguments"], {name: base64.b64decode(text) for name, text in found["files"].items()})

    def keep(self, folder: Path = FOUND) -> Path:
        text = self.to_json()
        folder.mkdir(exist_ok=True)
        path = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"
        path.write_text(text)
        return path


class TooSlow(BaseException):
    """No Exception, so that nothing takes it for bad input."""


def failure(case: Case, folder: Path) -> str | None:
    """What is wrong with the way a case ended, if anything is: an answer, or one sentence and exit code 2."""
    for old in folder.iterdir():
        shutil.rmtree(old) if old.is_dir() and not old.is_symlink() else old.unlink()
    for name, content in case.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    with contextlib.chdir(folder), _bounded():
        try:
            with raw_stderr() as written:
                wrong = _api(case) if case.arguments[0] == "api" else _command(case)
        except TooSlow:
            return f"took more than {MOST_SECONDS} s"
        except BaseException:
            return traceback.format_exc()
        return wrong or (f"a library wrote to the terminal: {written[0][:300]!r}" if written[0] else None)


def _command(case: Case) -> str | None:
    from policyspace.cli import main

    out, err, code, before = io.StringIO(), io.StringIO(), None, sys.argv
    sys.argv = ["policyspace", *case.arguments]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            main()
    except SystemExit as stop:
        code = stop.code
    finally:
        sys.argv = before
    said = err.getvalue()
    if code not in (0, 2):
        return f"exit code {code}: {said[-2000:]}"
    if code == 2 and (out.getvalue() or not said.startswith("policyspace: ") or said.count("\n") != 1):
        return f"no single sentence: {out.getvalue()[:300]!r} {said[:2000]!r}"
    if code == 0 and said:
        return f"an answer with a complaint: {said[:1000]!r}"
    if code == 0 and "--json" in case.arguments:
        json.loads(out.getvalue(), parse_constant=_no_constant)
    return None


def _api(case: Case) -> str | None:
    from policyspace import InputError
    from tests.fuzz.api_calls import CALLS

    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            CALLS[case.arguments[1]]()
    except InputError as error:
        return None if str(error) else "an error without a sentence"
    return None


def _no_constant(text: str) -> None:
    raise AssertionError(f"found {text} in the JSON")


@contextlib.contextmanager
def _bounded() -> Iterator[None]:
    """Processor time that a case may take; other processes on the machine do not count."""

    def stop(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@contextlib.contextmanager
def raw_stderr() -> Iterator[list[bytes]]:
    """What libraries write past Python, such as a panic."""
    written, saved = [b""], os.dup(2)
    with (Path(".stderr")).open("w+b") as file:
        os.dup2(file.fileno(), 2)
        try:
            yield written
        finally:
            os.dup2(saved, 2)
            os.close(saved)
            file.seek(0)
            written[0] = file.read()
    (Path(".stderr")).unlink(missing_ok=True)


def tidy() -> None:
    """Pictures and frames of the cases so far."""
    gc.collect()
