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
    from policyspace import Demonstrations

    Demonstrations.from_arrays(**_said())


def agent() -> None:
    from policyspace.worlds import make_world
    from policyspace.worlds.saved_agents import load_agent

    load_agent("agent.json", make_world("gridworld"))


def configuration() -> None:
    from policyspace.worlds import make_world
    from policyspace.worlds.configuration_parameters import parse_configuration

    text = Path("text.txt").read_text(encoding="utf-8", errors="replace") if Path("text.txt").exists() else "ω.toml"
    make_world("gridworld").check_configuration(parse_configuration(text))


def records() -> None:
    from policyspace.experiments.records import Cell, Store

    with Store("records.sqlite") as store:
        store.missing([Cell("theory", {"seed": 1})])
        found = store.records("theory") + store.records("calibration")
        store.records_of(Cell(record.experiment, record.setting) for record in found)


def fit() -> None:
    from tests.fuzz.independent_fit import compare

    compare(_said())


CALLS = {
    "identify": identify,
    "demonstrations": demonstrations,
    "agent": agent,
    "configuration": configuration,
    "records": records,
    "fit": fit,
}
