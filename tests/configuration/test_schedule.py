"""How many rounds there are, and how δ and the episodes are shared out over them."""

from dataclasses import replace

import pytest

from policyspace import InputError
from policyspace.study import Schedule


@pytest.mark.parametrize(
    ("budget", "sizes"), [(10, [3, 3, 2, 2]), (4, [1, 1, 1, 1]), (103, [26, 26, 26, 25]), (400, [100] * 4)]
)
def test_a_budget_is_split_evenly_with_the_remainder_first(budget, sizes):
    schedule = Schedule(("a", "b"), joint=True, budget=budget)
    found = []
    while len(found) < schedule.num_rounds:
        found.append(schedule.episodes(len(found), sum(found)))
    assert found == sizes
    with pytest.raises(InputError, match="too small for 4 rounds"):
        Schedule(("a", "b"), joint=True, budget=3)


def test_levels_of_all_rounds_add_up_however_they_are_configured():
    for joint, num_rounds in ((True, 4), (False, 7)):
        schedule = Schedule(("a", "b"), joint, significance=0.04)
        assert schedule.num_rounds == num_rounds
        for one in (schedule, replace(schedule, test="combined")):
            assert sum(one.level_of(r) for r in range(num_rounds)) == pytest.approx(0.04, abs=1e-15)
        assert replace(schedule, test="combined").level_of(num_rounds - 1) == 0.02
        for whole in (replace(schedule, paper_rule=True), replace(schedule, test="eprocess")):
            assert whole.level_of(0) == whole.level_of(num_rounds) == 0.04


def test_a_budget_ends_the_rounds_of_single_units_and_shares_delta_over_those_it_pays_for():
    def rounds(**options):
        return Schedule(tuple("abcdefgh"), False, **options)

    assert rounds().num_rounds == 25 and rounds(budget=5000).num_rounds == 25
    assert (
        rounds(budget=3).num_rounds == 1 and rounds(budget=100).num_rounds == 1 and rounds(budget=120).num_rounds == 2
    )
    for test in ("batches", "combined"):
        paid = rounds(budget=250, test=test)
        assert paid.num_rounds == 3 and sum(paid.shares) == pytest.approx(1.0)
    assert "at most 1 round:" in rounds(budget=3).guarantee("paper")
