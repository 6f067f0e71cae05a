"""The best putter of agents that have not finished learning: on invented curves, and one run in miniature."""

import numpy as np
import pytest
from policyspace_paper import minigolf as minigolf_training
from policyspace_paper.execution import Record, RunSize
from policyspace_paper.minigolf import TRAINING_LENGTHS as LENGTHS
from policyspace_paper.minigolf import analyse_training as analyse
from policyspace_paper.minigolf import best_putters, curves
from policyspace_paper.minigolf import run_training as run

from policyspace.report import save


def records(peaks, runs=4):
    """Parabolas with their top at a putter for each agent and number of steps; the odd runs at the one after it."""
    found = []
    for (agent, steps), peak in peaks.items():
        for seed in range(runs):
            top = LENGTHS[LENGTHS.index(peak) + seed % 2]
            returns = [-abs(length - top) for length in LENGTHS]
            setting = {"agent": agent, "num_steps": steps, "putter_lengths": list(LENGTHS), "seed": seed}
            found.append(Record("minigolf-training", setting, "0", 1.0, {"returns": returns}))
    return found


PEAKS = {("A2", 300): 11.5, ("A2", 3000): 3.0, ("A1", 300): 8.0, ("A1", 3000): 5.0}


def test_the_best_putter_is_that_of_each_run():
    found = best_putters(curves(records(PEAKS)))
    assert found["A2", 300].value == pytest.approx((11.5 + 13.0) / 2) and found["A2", 300].num_runs == 4
    assert found["A1", 3000].value == pytest.approx((5.0 + 6.5) / 2)


def test_the_panel_tells_how_it_moves(tmp_path):
    (panel,) = analyse(records(PEAKS))
    assert [row[1] for row in panel.rows] == ["300", "3000"] * 2 and "after 3000" in panel.why
    for name in ("a.svg", "b.svg"):
        save(analyse(records(PEAKS))[0].figure, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_cells_are_whole_curves():
    assert (
        len(minigolf_training.TRAINING.cells(RunSize()))
        == len(minigolf_training.STEPS) * 2 * minigolf_training.TRAINING_RUNS
    )
    assert len(minigolf_training.TRAINING.cells(RunSize(quick=True))) == 8


def test_more_steps_return_more():
    setting = minigolf_training.TRAINING.cells(RunSize(quick=True))[0].setting | {
        "agent": "A1",
        "putter_lengths": [11.5],
    }
    few, many = (run(setting | {"num_steps": steps})["returns"] for steps in (5, 400))
    assert few == run(setting | {"num_steps": 5})["returns"]
    assert np.mean(many) > np.mean(few)
