"""Configurations as users write them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from policyspace import InputError
from policyspace.worlds import ConfigurationParameter, checked_configuration, parse_configuration

PARAMETERS = (
    ConfigurationParameter("row", (5,), -10.0, 10.0, 1.0, "logits"),
    ConfigurationParameter("table", (2, 3), 0.0, 9.0, ((1.0, 2.0, 3.0), (4.0, 5.0, 6.0)), "a table"),
    ConfigurationParameter("gain", (), 0.0, 2.0, 0.5, "a number"),
)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("gain=1.5", {"gain": 1.5}),
        ("row[2]=5, gain = 1", {"row[2]": 5, "gain": 1}),
        ("row=[1,1,5,1,1],table[1,2]=0.5", {"row": [1, 1, 5, 1, 1], "table[1,2]": 0.5}),
        ("gain=-1e-3", {"gain": -0.001}),
    ],
)
def test_text_is_parsed(text: str, wanted: dict[str, Any]) -> None:
    assert parse_configuration(text) == wanted


def test_a_toml_file_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "omega.toml"
    path.write_text('gain = 1.5\n"row[2]" = 5\ntable = [[1, 1, 1], [2, 2, 2]]\n')
    given = parse_configuration(str(path))
    assert given == {"gain": 1.5, "row[2]": 5, "table": [[1, 1, 1], [2, 2, 2]]}
    omega = checked_configuration(PARAMETERS, given)
    assert omega["row"].tolist() == [1, 1, 5, 1, 1]
    assert omega["table"].tolist() == [[1, 1, 1], [2, 2, 2]]


@pytest.mark.parametrize("text", ["gain", "gain=", "gain=much", "=3", "gain=1,gain=2", "gain=1,,row[0]=2"])
def test_bad_text_is_told(text: str) -> None:
    with pytest.raises(InputError):
        parse_configuration(text)


def test_bad_files_are_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        parse_configuration(str(tmp_path / "none.toml"))
    (tmp_path / "bad.toml").write_text("gain = = 3")
    with pytest.raises(InputError, match="not a valid TOML"):
        parse_configuration(tmp_path / "bad.toml")


def test_elements_are_set_after_the_whole() -> None:
    omega = checked_configuration(PARAMETERS, {"row[2]": 5, "row": [0, 0, 0, 0, 0], "table[1, 0]": 7})
    assert omega["row"].tolist() == [0, 0, 5, 0, 0]
    assert omega["table"].tolist() == [[1, 2, 3], [7, 5, 6]]
    assert omega["gain"] == 0.5
    assert omega["row"].dtype == np.float64


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"rwo": 1}, "did you mean 'row'"),
        ({"rwo[1]": 1}, "did you mean 'row'"),
        ({"row[5]": 1}, r"shape \(5,\)"),
        ({"gain[0]": 1}, r"shape \(\)"),
        ({"row": 3}, r"shape \(5,\)"),
        ({"gain": True, "row": [1, 1, 1, 1, float("nan")]}, "finite"),
        ({"gain": 2.5}, "between 0 and 2, found 2.5"),
        ({"gain": None}, "finite"),
        ({"row": [[1], [2, 3]]}, "numbers"),
        ({"gain": {"a": 1}}, "numbers"),
    ],
)
def test_bad_configurations_are_told(given: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        checked_configuration(PARAMETERS, given)
