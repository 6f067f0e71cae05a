"""The whole loop keeps its δ: over many agents the chance of any false selection in any round is at most what it says."""

import pytest

from benchmarks.loops import cells, false_selections

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("cell", cells(), ids=lambda cell: cell.key)
def test_any_false_selection_is_as_rare_as_it_says(cell):
    """Agents that learned well and agents that hardly did, by world, design and episodes of a round."""
    found = false_selections(cell, 0, cell.num_loops)
    assert found.wrong <= found.bound
