"""Answers do not depend on the way in: names, order, units, signs, references, formats and idle columns change nothing."""

import warnings

import numpy as np
import pytest

from tests.invariance.changes import CHANGES, KINDS, differences, log

TESTS = {
    "wilks": KINDS, "lean": KINDS, "auto": KINDS, "robust": ("continuous", "discrete", "counts"),
    "mixture": ("continuous", "discrete", "ordered"), "universal": ("continuous", "discrete"),
    "firth": ("discrete", "binary"), "eprocess": ("discrete",),
}  # fmt: skip
"""The tests whose p-values are exact, and the kinds of actions of their logs."""


@pytest.mark.parametrize(("test", "kind"), [(test, kind) for test, kinds in TESTS.items() for kind in kinds])
def test_what_should_not_matter_does_not(test, kind, tmp_path):
    one, found = log(kind).but(test=test), {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = one.answer()
        for name, change in CHANGES.items():
            other = change(one, np.random.default_rng(3), tmp_path)
            if other is not None and (wrong := differences(first, other)):
                found[name] = wrong
    assert found == {}
