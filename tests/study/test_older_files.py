"""Studies in files of commit f3f6c8a, before `configure` and `study` were one loop, open and give the same answers.

Both are of a golfer with θ = (0.3, 0.02, 0, 0, 0, 0) in minigolf and have three rounds, the first of pairs, the others of
trajectories: `budget=25, num_attempts=2`, and `test="eprocess", num_attempts=2, num_episodes=8`.
"""

import shutil
from pathlib import Path

import pytest

from policyspace import Study
from policyspace.study import SQLiteStore, to_trajectories

FILES = sorted((Path(__file__).parent / "older_files").glob("*.sqlite"))


def nearly(found, expected):
    """The same words, and numbers up to what another processor rounds."""
    if isinstance(expected, dict):
        assert found.keys() >= expected.keys()  # later versions say more
        for name in expected:
            nearly(found[name], expected[name])
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            nearly(one, other)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-5, abs=1e-7)
    else:
        assert found == expected


def as_today(row):
    """The names and the word of today for what the files say of a unit."""
    names = {"effect": "coefficient_norm", "detectable_effect": "minimum_detectable_effect"}
    return {
        names.get(name, name): "used" if value == "controlled" and name == "verdict" else value
        for name, value in row.items()
    }


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_older_study_opens_and_is_asked_and_told_as_it_was(tmp_path, file):
    shutil.copy(file, tmp_path / "old.sqlite")
    old, kept = Study.open(tmp_path / "old.sqlite"), SQLiteStore.open(tmp_path / "old.sqlite")
    status = old.status()
    assert status.selected == ("x",) and status.finished == "all 3 rounds have been reported"
    assert status.evidence is None or status.evidence["x"] > 20
    new = Study(SQLiteStore.create(tmp_path / "new.sqlite", kept.settings()))
    for number, (record, _, _) in enumerate(kept.rounds()):
        if number:  # the first round was told without being asked for
            asked = new.ask()
            nearly(asked.to_dict() | {"asked_for": list(asked.asked_for)}, kept.request(number))
        data = to_trajectories(old.world, kept.data(number), record["configuration"]) or old.demonstrations(number)
        told = new.tell(data, record["configuration"])
        nearly(told.to_dict(), {**record, "tests": [as_today(row) for row in record["tests"]]})
        assert [set(row) for row in status.rounds[number].tests] == [set(as_today(row)) for row in record["tests"]]
    with pytest.raises(AssertionError):
        nearly({"log_e": 1.0}, {"log_e": 1.001})


def test_there_are_older_files():
    assert [file.stem for file in FILES] == ["study-batches", "study-eprocess"]
