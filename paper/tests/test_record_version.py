"""The version of the code that made a record: it leaves out only what no run of an experiment executes."""

import sys
from pathlib import Path

import policyspace_paper
import pytest
from policyspace_paper.execution import NEVER_RUN, RunSize, find_experiment

import policyspace
from policyspace.data.large.backends import NEVER_RUN as NEVER_RUN_OF_POLICYSPACE

CHEAP = {
    "theory": {"num_runs": 1},
    "calibration": {"num_runs": 1},
    "gridworld": {"num_episodes": 5, "learning": {"num_steps": 2, "num_episodes": 5}, "design_options": {}},
}


@pytest.mark.parametrize("name", CHEAP)
def test_no_run_executes_what_the_digest_leaves_out(name):
    executed = set()
    experiment = find_experiment(name)
    setting = experiment.cells(RunSize(quick=True))[-1].setting
    changed = {entry: value for entry, value in CHEAP[name].items() if entry in setting}
    sys.setprofile(lambda frame, event, argument: executed.add(frame.f_code.co_filename))
    try:
        experiment.run(setting | changed)
    finally:
        sys.setprofile(None)
    for package, left_out in ((policyspace, NEVER_RUN_OF_POLICYSPACE), (policyspace_paper, NEVER_RUN)):
        folder = Path(package.__file__).parent
        assert any(Path(file).is_relative_to(folder) for file in executed)
        for part in left_out:
            assert (folder / part).exists()
            assert not [file for file in executed if Path(file).is_relative_to(folder / part)]
