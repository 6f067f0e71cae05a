"""An experiment that every process knows: Python runs sitecustomize.py of PYTHONPATH wherever it starts."""

import os
import sys
import textwrap

import pytest
from policyspace_paper.execution import EXPERIMENTS

KNOWN_EVERYWHERE = textwrap.dedent(
    """
    import os, signal, sys, time
    from pathlib import Path
    from types import ModuleType
    from policyspace_paper.execution import EXPERIMENTS, Experiment

    squares = ModuleType("policyspace_paper.squares")

    def busy():
        ticks = {}
        for task in Path("/proc/self/task").iterdir():
            fields = (task / "stat").read_text().rsplit(")", 1)[1].split()
            ticks[task.name] = int(fields[11]) + int(fields[12])
        return ticks

    def threads():
        # How many threads BLAS would use, and how many XLA did use for one large product.
        import numpy
        from threadpoolctl import threadpool_info
        from policyspace.families.jax_backend import jax, jnp
        square = jax.jit(lambda x: x @ x)
        x = square(jnp.ones((1500, 1500))).block_until_ready()
        before = busy()
        square(x).block_until_ready()
        ticks = [after - before.get(name, 0) for name, after in busy().items()]
        # A thread that talks to a scheduler has its ticks, too, but not a third of the work.
        worked = [some for some in ticks if some >= max(3, max(ticks) / 3)]
        return {"blas": [i["num_threads"] for i in threadpool_info()], "xla": len(worked)}

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
            return threads()
        return {"square": setting["number"] ** 2, **({"pid": os.getpid()} if setting.get("pid") else {})}

    squares.EXPERIMENT = Experiment("squares", "Squares", lambda scale: [], run, lambda records: [])
    sys.modules["policyspace_paper.squares"] = squares
    EXPERIMENTS["squares"] = "squares:EXPERIMENT"
    """
)


@pytest.fixture
def known_everywhere(tmp_path, monkeypatch):
    folder = tmp_path / "known"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(KNOWN_EVERYWHERE)
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
    monkeypatch.delitem(sys.modules, "policyspace_paper.squares", raising=False)
    exec(KNOWN_EVERYWHERE, {})
    yield
    sys.modules.pop("policyspace_paper.squares", None)
    EXPERIMENTS.pop("squares", None)
