"""Calls of the Python API whose arguments come from files of a case."""

import json
from pathlib import Path
from typing import Any


def _said() -> dict[str, Any]:
    return json.loads(Path("call.json").read_text())


def identify() -> None:
    import policyspace

    said = _said()
    policyspace.identify(said.pop("data"), **said).to_json()


def demonstrations() -> None:
    from policyspace import Sample

    Sample.from_arrays(**_said())


def agent() -> None:
    from policyspace import make_world
    from policyspace.worlds import load_agent

    load_agent("agent.json", make_world("gridworld"))


def configuration() -> None:
    from policyspace import make_world
    from policyspace.worlds import parse_configuration

    text = Path("text.txt").read_text(encoding="utf-8", errors="replace") if Path("text.txt").exists() else "ω.toml"
    make_world("gridworld").check_configuration(parse_configuration(text))


def records() -> None:
    from policyspace_paper.execution import Cell, Store

    with Store("records.sqlite") as store:
        store.missing([Cell("theory", {"seed": 1})])
        found = store.records("theory") + store.records("calibration")
        store.records_of(Cell(record.experiment, record.setting) for record in found)


def fit() -> None:
    from tests.fuzz.independent_fit import compare

    compare(_said())


def model() -> None:
    import warnings

    from policyspace.environments import agent_from_file

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agent_from_file("model.zip")


def odd() -> None:
    import policyspace
    from tests.test_wrong_kinds import CALLS as KINDS
    from tests.test_wrong_kinds import drawn

    for function, name, value in drawn(1, _said()["seed"]):
        getattr(policyspace, function)(**{**KINDS[function], name: value})


def changed() -> None:
    """The same question asked in another way has the same answer."""
    import tempfile

    import numpy as np

    from tests.invariance.changes import CHANGES, differences, log

    said = _said()
    rng = np.random.default_rng(said["seed"])
    one = log(said["kind"], said["seed"], said["rows"]).but(test=said["test"])
    with tempfile.TemporaryDirectory() as folder:
        other = CHANGES[said["change"]](one, rng, Path(folder))
        found = [] if other is None else differences(one.answer(), other)
    if found:
        raise AssertionError(f"{said['change']}: {found}")


CALLS = {
    "changed": changed,
    "model": model,
    "odd": odd,
    "identify": identify,
    "demonstrations": demonstrations,
    "agent": agent,
    "configuration": configuration,
    "records": records,
    "fit": fit,
}
