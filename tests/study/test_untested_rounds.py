"""An agent that never chooses is no reason to stop: its batch is kept as a round that nothing could be tested in."""

from dataclasses import replace

import jax
import numpy as np
import polars
import pytest

from policyspace import InputError, Sample, Study, make_world
from tests.some_episodes import some_episodes

GRID = make_world("gridworld")
SPACE = GRID.policy_space()
WARNING = (
    "this batch alone could not be tested: every row has the action '{}': nothing can be identified from an agent that "
    "never chooses."
)


def walks(seed, size):
    """Episodes of a walker that looks at row_0 and, if `size` is 0, at nothing."""
    theta = np.zeros((3, 17))
    theta[0, 1 + GRID.feature_names.index("row_0")] = size
    return some_episodes(GRID, SPACE, theta.ravel(), GRID.default_configuration(), jax.random.key(seed), 60)


def stubborn(seed=0):
    seen = walks(seed, 0.0)
    return replace(seen, actions=np.zeros_like(seen.actions))


def columns(seen):
    """A table of episodes, with text for actions."""
    mask = np.asarray(seen.mask)
    frame = polars.DataFrame(dict(zip(GRID.feature_names, np.asarray(seen.features)[mask].T, strict=True)))
    labels = [GRID.action_names[a] for a in np.asarray(seen.actions)[mask]]
    return frame.with_columns(move=polars.Series(labels), run=polars.Series(np.nonzero(mask)[0]))


SAID = {"actions": "move", "episodes": "run"}


@pytest.mark.parametrize("test", ["combined", "batches"])
@pytest.mark.parametrize("told", ["trajectories", "table"])
def test_a_batch_of_one_action_is_a_round(tmp_path, test, told):
    study = Study.create(tmp_path / "s.sqlite", "gridworld", design="uniform", max_rounds=2, test=test)
    data, said = (stubborn(), {}) if told == "trajectories" else (columns(stubborn()), SAID)
    first = study.tell(data, **said)
    assert first.warnings == [WARNING.format(GRID.action_names[0])]
    assert (first.num_episodes, first.newly_selected, len(first.undecided)) == (60, (), 16)
    assert {row["p_value"] for row in first.tests} == ({1.0} if test == "combined" else set())
    asked = Study.open(study.path).ask()
    assert asked.number == 1 and asked.design == "uniform"
    assert study.tell(walks(1, 4.0), asked.configuration).selected == ("row_0",)
    with pytest.raises(InputError, match="these very data were reported before, in round 1"):
        study.tell(data, **said)
    with pytest.raises(InputError, match="every row has the action"):
        study.demonstrations(0)


def test_designs_go_on_from_it(tmp_path):
    for design in ("d-optimal", "paper"):
        study = Study.create(
            tmp_path / f"{design}.sqlite", "gridworld", features=["row_0"], design=design, max_rounds=1
        )
        study.tell(columns(stubborn()), **SAID)
        assert study.ask().design == design


def test_rows_of_no_weight_are_no_choice(tmp_path):
    frame = columns(stubborn())
    frame = polars.concat([frame, frame.head(1).with_columns(move=polars.lit(GRID.action_names[1]))])
    frame = frame.with_columns(count=polars.Series([1.0] * (len(frame) - 1) + [0.0]))
    study = Study.create(tmp_path / "s.sqlite", "gridworld", design="none")
    assert study.tell(frame, weights="count", **SAID).warnings == [WARNING.format(GRID.action_names[0])]


def test_an_agent_that_does_nothing_here_may_do_something_there(tmp_path):
    study = Study.create(
        tmp_path / "s.sqlite", env="CartPole-v1", parameters={"length": (0.3, 1.0)}, max_rounds=2, episodes=40
    )
    rng = np.random.default_rng(0)
    assert study.play(lambda seen: 0).warnings == [WARNING.format("0")]
    assert study.ask().design == "simulated"
    found = study.play(lambda seen: int(rng.random() < 1 / (1 + np.exp(-10 * seen[2] - 2 * seen[3]))))
    assert set(found.selected) == {"observation[2]", "observation[3]"}


def test_continuous_actions_that_never_change(tmp_path):
    study = Study.create(tmp_path / "s.sqlite", env="Pendulum-v1", parameters={"g": (5, 15)}, max_rounds=1, episodes=3)
    assert study.play(lambda seen: np.array([0.5], np.float32)).warnings == [WARNING.format("0.5")]


def test_the_e_process_refuses_it(tmp_path):
    """Leaving out batches by what they show would break its promise."""
    study = Study.create(tmp_path / "s.sqlite", "gridworld", design="none", test="eprocess")
    with pytest.raises(InputError, match="every row has the action"):
        study.tell(stubborn())
    assert study.rounds() == []


def test_elsewhere_such_data_are_still_refused(tmp_path):
    study = Study.create(tmp_path / "s.sqlite", "gridworld", design="none")
    study.tell(stubborn())
    with pytest.raises(InputError, match="every row has the action"):
        Sample(np.arange(4.0)[:, None], np.zeros(4, int), ("x",), ("a", "b"), np.arange(4))
