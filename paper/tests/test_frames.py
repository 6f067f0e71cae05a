"""Groups of a tidy frame against the same sums by hand."""

import numpy as np
import pytest
from policyspace_paper.estimates import differences, groups, means, paired, rates, tidy
from policyspace_paper.execution import Record

RNG = np.random.default_rng(3)
VALUES = {(way, n, seed): float(RNG.normal()) for way in ("old", "new") for n in (10, 100) for seed in range(5)}


def frame(values):
    records = [
        Record("x", {"way": way, "n": n, "seed": seed}, "0", 1.0, {"value": value, "large": value is None or value > 0})
        for (way, n, seed), value in values.items()
    ]
    return tidy(records, lambda r: [r.setting | r.result])


def test_groups_keep_the_order_of_the_records():
    found = groups(frame(VALUES), "way", "n")
    assert list(found) == [("old", 10), ("old", 100), ("new", 10), ("new", 100)]
    assert found["new", 10]["seed"].to_list() == list(range(5))
    assert list(groups(frame(VALUES), "n")) == [10, 100]


def test_means_and_rates_are_those_of_each_group():
    found = means(frame(VALUES), "value", "way", "n")
    for way, n in found:
        own = [VALUES[way, n, seed] for seed in range(5)]
        assert found[way, n].value == np.mean(own) and found[way, n].num_runs == 5
        rate = rates(frame(VALUES), "large", "way", "n")[way, n]
        assert (rate.count, rate.num_runs) == (sum(value > 0 for value in own), 5)


def test_what_is_missing_is_left_out_of_means():
    found = means(frame(VALUES | {("old", 10, 0): None}), "value", "way", "n")
    assert found["old", 10].value == np.mean([VALUES["old", 10, seed] for seed in range(1, 5)])
    nothing = {key: None if key[0] == "old" else value for key, value in VALUES.items()}
    assert set(means(frame(nothing), "value", "way", "n")) == {("new", 10), ("new", 100)}


def test_differences_are_of_runs_that_were_made_in_both_ways():
    values = {key: value for key, value in VALUES.items() if key != ("new", 100, 2)} | {("old", 100, 4): None}
    found = differences(frame(values), "value", "way", "new", "old", "n")
    by_hand = {
        n: [VALUES["new", n, s] - VALUES["old", n, s] for s in seeds] for n, seeds in ((10, range(5)), (100, (0, 1, 3)))
    }
    for n, own in by_hand.items():
        assert found[n].value == pytest.approx(np.mean(own), abs=1e-15) and found[n].num_runs == len(own)
    assert paired(frame(values), "value", "n", 10, 100, "way")["way"].to_list() == ["old"] * 4 + ["new"] * 4
