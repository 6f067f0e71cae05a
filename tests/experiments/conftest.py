"""An experiment that every process knows: Python runs sitecustomize.py of PYTHONPATH wherever it starts."""

import os
import sys
import textwrap

import pytest

KNOWN_EVERYWHERE = textwrap.dedent(
    """
    import os, signal, sys, time
    from pathlib import Path
    from types import ModuleType

    squares = ModuleType("policyspace.experiments.squares")

    def run(setting):
        time.sleep(setting.get("seconds", 0))
        if "lethal" in setting:  # kills its worker as often as the file says, as an operating system without memory does
            times = Path(setting["lethal"])
            left = int(times.read_text())
            if left:
                times.write_text(str(left - 1))
                os.kill(os.getpid(), signal.SIGKILL)
        if setting.get("fails") == "input":
            from policyspace.errors import InputError
            raise InputError("expected a better number.")
        if setting.get("fails") == "defect":
            raise ZeroDivisionError("a defect")
        if setting.get("threads"):
            import numpy
            from threadpoolctl import threadpool_info
            return {"threads": [i["num_threads"] for i in threadpool_info()], "flags": os.environ["XLA_FLAGS"]}
        return {"square": setting["number"] ** 2, **({"pid": os.getpid()} if setting.get("pid") else {})}

    squares.run = run
    sys.modules["policyspace.experiments.squares"] = squares
    """
)


@pytest.fixture
def known_everywhere(tmp_path, monkeypatch):
    folder = tmp_path / "known"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(KNOWN_EVERYWHERE)
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
    monkeypatch.delitem(sys.modules, "policyspace.experiments.squares", raising=False)
    exec(KNOWN_EVERYWHERE, {})
    yield
    sys.modules.pop("policyspace.experiments.squares", None)
