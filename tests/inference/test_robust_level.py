"""The level of the test 'robust': subjects with intercepts of their own, and features that nobody uses."""

import numpy as np
import pytest
from scipy.stats import binom

from policyspace import GaussianLinear, Sample, SoftmaxLinear, likelihood_of
from policyspace.inference import RobustWald

RUNS = 1000
LEVEL = 0.05
NAMES = ("used", "varying", "constant", "between")


def subjects(rng, num_subjects, labels, equal):
    """Rows of subjects: one feature is used, three are not, of which one is constant within subjects, one nearly so."""
    sizes = np.full(num_subjects, 20) if equal else rng.integers(3, 40, num_subjects)
    who = np.repeat(np.arange(num_subjects), sizes)
    own = rng.normal(size=(3, num_subjects))[:, who]
    used, varying, noise = rng.normal(size=(3, len(who)))
    between = (own[1] + rng.normal(size=len(who))) / np.sqrt(2)
    utility = 0.7 * used + own[2]
    actions = (utility + rng.logistic(size=len(who)) > 0).astype(int) if labels else (utility + noise)[:, None]
    features = np.column_stack([used, varying, own[0], between])
    return Sample(features, actions, NAMES, ("no", "yes") if labels else ("action",), subjects=who)


def p_values(data):
    """Of each feature that is not used, and of all three together."""
    space = (SoftmaxLinear if data.discrete else GaussianLinear)(data.names, data.action_names)
    test, unused = RobustWald(likelihood_of(space, data), data), space.tested[1:]
    hypotheses = [*({g} for g in unused), set(unused)]
    return [found.p_value for found in test.test_many([space.full_support - h for h in hypotheses])]


@pytest.mark.slow
@pytest.mark.parametrize("equal", [True, False], ids=["equal", "unequal"])
@pytest.mark.parametrize("labels", [False, True], ids=["amounts", "labels"])
@pytest.mark.parametrize("num_subjects", [10, 20, 40, 100])
def test_unused_features_are_rejected_as_often_as_promised(num_subjects, labels, equal):
    rng = np.random.default_rng([num_subjects, labels, equal])
    found = np.array([p_values(subjects(rng, num_subjects, labels, equal)) for _ in range(RUNS)])
    rejected = (found <= LEVEL).sum(axis=0)
    any_of_three = (found[:, :3].min(axis=1) <= LEVEL / 3).sum()
    print(num_subjects, labels, equal, *(rejected / RUNS), any_of_three / RUNS)
    # Five numbers in each of sixteen cells: one in ten thousand each is less than one in a hundred of all.
    assert max(*rejected, any_of_three) <= binom.ppf(1 - 1e-4, RUNS, LEVEL)


@pytest.mark.parametrize("labels", [False, True], ids=["amounts", "labels"])
def test_what_is_used_is_found(labels):
    data = subjects(np.random.default_rng(3), 40, labels, True)
    space = (SoftmaxLinear if labels else GaussianLinear)(data.names, data.action_names)
    test = RobustWald(likelihood_of(space, data), data)
    assert test.test_many([space.support_without(space.tested[0])])[0].p_value < 0.01
    assert test.own_assumptions()[0].status == "held"
