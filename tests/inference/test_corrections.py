"""Adjusted p-values against statsmodels' multipletests."""

import gc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from policyspace.inference import CORRECTIONS

P_VALUES = st.lists(
    st.one_of(st.floats(0, 1), st.floats(0, 1e-6), st.sampled_from([0.0, 0.01, 0.05, 1.0])), min_size=1, max_size=40
)


@pytest.fixture(scope="module", autouse=True)
def garbage_of_other_tests_is_left_alone():
    """statsmodels collects garbage at every Holm correction, which takes a second beside all that JAX has compiled."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.parametrize(("name", "method"), [("holm", "holm"), ("bonferroni", "bonferroni"), ("bh", "fdr_bh")])
@given(p_values=P_VALUES, level=st.sampled_from([0.01, 0.05, 0.2]))
def test_corrections_are_statsmodels(name, method, p_values, level):
    found = CORRECTIONS[name](np.array(p_values))
    rejected, adjusted, _, _ = multipletests(p_values, level, method)
    np.testing.assert_allclose(found, adjusted, rtol=1e-12, atol=1e-300)  # below, floats have fewer digits
    clear = np.abs(adjusted - level) > 1e-12  # at the level itself rounding may decide
    np.testing.assert_array_equal((found <= level)[clear], rejected[clear])


@given(p_values=P_VALUES)
def test_holm_is_never_less_powerful_than_bonferroni_and_order_does_not_matter(p_values):
    values = np.array(p_values)
    assert (CORRECTIONS["holm"](values) <= CORRECTIONS["bonferroni"](values)).all()
    order = np.random.default_rng(len(values)).permutation(len(values))
    for correct in CORRECTIONS.values():
        np.testing.assert_array_equal(correct(values[order]), correct(values)[order])


def test_nothing_to_correct():
    for correct in CORRECTIONS.values():
        assert correct(np.empty(0)).shape == (0,)
