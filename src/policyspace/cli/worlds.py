"""`policyspace worlds`: which worlds there are, what agents perceive there, and what can be configured."""

import re
import sys
from typing import Annotated, Any

import typer

from policyspace.cli.saving import JsonOut, check_targets, deliver
from policyspace.cli.screen import new_console, say, show_table
from policyspace.shown import json_text
from policyspace.table import Table

COLUMNS = ("configuration", "low", "high", "default", "what it is")


def worlds(
    name: Annotated[str | None, typer.Argument(help="One world only.", metavar="[WORLD]", show_default=False)] = None,
    json: JsonOut = None,
) -> None:
    """List the worlds that can be simulated: their features, actions, and configurations with bounds and defaults."""
    from policyspace.worlds import WORLDS, make_world

    check_targets(json=json)
    told = [_as_data(make_world(known)) for known in ([name] if name else WORLDS)]
    deliver(lambda: json_text({"worlds": told}), json, lambda: _show(told))


def _as_data(world: Any) -> dict[str, Any]:
    """A world as plain data."""
    return {
        "name": world.name,
        "description": (sys.modules[type(world).__module__].__doc__ or "").splitlines()[0],
        "features": list(world.feature_names),
        "actions": list(world.action_names),
        "action_bounds": None if world.action_bounds is None else list(world.action_bounds),
        "true_controls": sorted(world.true_controls, key=world.feature_names.index),
        "horizon": world.horizon,
        "discount": world.discount,
        "configuration": [
            {
                "name": parameter.name,
                "shape": list(parameter.shape),
                "low": parameter.low,
                "high": parameter.high,
                "default": parameter.default_array().tolist(),
                "description": parameter.description,
            }
            for parameter in world.parameters
        ],
    }


def _show(told: list[dict[str, Any]]) -> None:
    from rich import box

    console = new_console()
    for world in told:
        say(console, "")
        say(console, f"{world['name']}  T = {world['horizon']}, γ = {world['discount']}", style="bold")
        say(console, world["description"], style="dim")
        kind = (
            "discrete"
            if world["action_bounds"] is None
            else "continuous in [{:g}, {:g}]".format(*world["action_bounds"])
        )
        say(console, f"actions   {', '.join(world['actions'])} ({kind})")
        say(console, f"features  {_runs(world['features'])}")
        rows = [
            (
                p["name"] + "".join(f"[{count}]" for count in p["shape"]),
                f"{p['low']:g}",
                f"{p['high']:g}",
                _default(p["default"]),
                p["description"],
            )
            for p in world["configuration"]
        ]
        show_table(console, Table(COLUMNS, rows), box=box.SIMPLE)


def _runs(names: list[str]) -> str:
    """Names that only count up, shortened: `row_0 … row_3`."""
    runs: list[list[str]] = []
    for name in names:
        stem = re.sub(r"(_\d+)+$", "", name)
        if runs and name != stem and re.sub(r"(_\d+)+$", "", runs[-1][0]) == stem:
            runs[-1].append(name)
        else:
            runs.append([name])
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]} … {run[-1]}" for run in runs)


def _default(value: Any) -> str:
    """A number; an array of equal numbers by that number."""
    flat = value if isinstance(value, list) else [value]
    return f"{flat[0]:g}" if all(element == flat[0] for element in flat) else str(value)
