"""Verdicts as functions of the parts of a claim, and of intervals."""

import pytest
from policyspace_paper.estimates import Mean
from policyspace_paper.panels import FEWEST, Claim, ClaimPart, Panel, above, all_of, verdict_of, within


@pytest.mark.parametrize(
    ("parts", "verdict"),
    [
        ([True], "holds"),
        ([True, True], "holds"),
        ([True, None], "holds partly"),
        ([True, False], "holds partly"),
        ([False, None], "does not hold"),
        ([False, False], "does not hold"),
        ([None, None], "too few runs to say"),
        ([], "too few runs to say"),
    ],
)
def test_the_whole_claim_counts(parts, verdict):
    found = [ClaimPart("x", holds) for holds in parts]
    assert verdict_of(found, FEWEST) == verdict
    assert verdict_of(found, FEWEST - 1) == "too few runs to say"


def test_a_part_says_what_it_shows():
    parts = [ClaimPart("a falls", True), ClaimPart("b", False), ClaimPart("c", None)]
    panel = Panel("x", "X", Claim("All hold.", "By hand."), "So it is.", None, (), [], {}, parts, FEWEST)
    assert panel.why == "a falls (shown). b (contradicted). c (cannot be told). So it is."
    assert panel.verdict == "holds partly"


def test_a_claim_without_criteria_has_no_verdict():
    assert Panel("x", "X", Claim("Is it so?"), "Yes.", None, (), []).verdict == "our own"


@pytest.mark.parametrize(("value", "margin", "said"), [(1.0, 0.5, True), (-1.0, 0.5, False), (0.1, 0.5, None)])
def test_above_by_the_whole_interval(value, margin, said):
    assert above(Mean(value, margin, 20)) is said
    assert above(Mean(value + 7, margin, 20), 7.0) is said


@pytest.mark.parametrize(
    ("value", "margin", "said"), [(0.0, 0.5, True), (2.0, 0.5, False), (-2.0, 0.5, False), (1.0, 0.5, None)]
)
def test_within_by_the_whole_interval(value, margin, said):
    assert within(Mean(value, margin, 20), 1.0) is said


def test_one_run_alone_shows_nothing():
    alone = Mean(5.0, None, 1)
    assert above(alone) is None and within(alone, 9.0) is None


def test_all_parts_or_none():
    assert all_of([True, True]) is True
    assert all_of([True, None]) is None
    assert all_of([True, None, False]) is False
    assert all_of([]) is None
