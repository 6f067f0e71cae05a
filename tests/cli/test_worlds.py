"""`policyspace worlds` says what the worlds themselves say."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from policyspace import InputError, make_world
from policyspace.cli import app
from policyspace.worlds import WORLDS


def run(*arguments: str) -> str:
    return CliRunner().invoke(app, ["worlds", *arguments], catch_exceptions=False).output


def test_the_list_names_worlds_features_and_bounds() -> None:
    text = run()
    for name in WORLDS:
        assert name in text
    for words in ("row_0 … row_3", "goal_rbf_0_0 … goal_rbf_4_4", "sqrt_xf", "sensor_+45, sensor_+30", "row[5]"):
        assert words in " ".join(text.split())
    assert "putter_length" in text
    assert "-200" in text


def test_one_world_alone() -> None:
    text = run("car")
    assert "bend" in text
    assert "putter" not in text


def test_json_says_the_same_as_the_classes(tmp_path: Path) -> None:
    told = {world["name"]: world for world in json.loads(run("--json", "-"))["worlds"]}
    assert list(told) == list(WORLDS)
    for name, world in told.items():
        made = make_world(name)
        assert world["features"] == list(made.feature_names)
        assert [p["name"] for p in world["configuration"]] == [p.name for p in made.parameters]
        made.check_configuration({p["name"]: p["default"] for p in world["configuration"]})
    run("minigolf", "--json", str(tmp_path / "worlds.json"))
    assert json.loads((tmp_path / "worlds.json").read_text())["worlds"] == [told["minigolf"]]


def test_an_unknown_world_is_told() -> None:
    with pytest.raises(InputError, match="did you mean 'minigolf'"):
        run("minigol")
