"""Every constant of the paper's worlds stands in docs/worlds.md with its source, and has that value."""

import ast
from dataclasses import fields
from pathlib import Path

import pytest

from policyspace.worlds import IDS, make_world

PAGE = (Path(__file__).parents[2] / "docs" / "worlds.md").read_text(encoding="utf-8")
TABLE = PAGE.partition("<!-- table of constants -->")[2].partition("<!-- end")[0]
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")] for line in TABLE.splitlines() if line.startswith("| `")
]


@pytest.mark.parametrize("name", IDS.values())
def test_every_constant_of_a_world_has_its_value_and_source(name):
    world = make_world(name)
    told = {row[1].strip("`"): row for row in ROWS if row[0].strip("| ") == f"`{name}`"}
    assert {one.name for one in fields(world) if one.init} <= set(told)
    for one in fields(world):
        if one.init:
            assert ast.literal_eval(told[one.name][2]) == getattr(world, one.name)
    assert all(row[3].strip("| ").startswith(("paper", "authors' code", "ours")) for row in told.values())


def test_horizon_and_discount_stand_beside_the_rewards():
    for name in IDS.values():
        world = make_world(name)
        line = next(line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |") and line.count(" | ") == 5)
        assert line.rstrip(" |").endswith(f"| {world.horizon} | {world.discount}")
