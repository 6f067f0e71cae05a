"""Decisions at one level with few searches: the same as those of all supports, one by one."""

from itertools import combinations

import numpy as np
import pytest

from policyspace.data.demonstrations import Demonstrations
from policyspace.fits import likelihood_of
from policyspace.inference.decide import Decisions
from policyspace.inference.search import all_supports, one_at_a_time
from policyspace.inference.universal import Universal
from policyspace.policies import GaussianLinear


def linear(seed, size, weights=(0.5, 0.3, 0.0, 0.15)):
    """A linear Gaussian agent, whose likelihood has one peak: brute force is exact."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(size, 4))
    actions = (features @ np.array(weights))[:, None] + rng.normal(size=(size, 1))
    data = Demonstrations(features, actions, tuple("abcd"), ("push",), np.arange(size) // 5)
    return GaussianLinear(tuple("abcd"), ("push",), 1.0), data


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("size", [40, 150, 600])
def test_as_few_searches_decide_the_same_as_all(seed, size):
    space, data = linear(seed, size)
    likelihood = likelihood_of(space, data)
    local = Universal(space, data, likelihood, seed)
    decisions = Decisions(local, 0.1)
    everything = [
        frozenset(s) | (space.everything - set(space.tested)) for r in range(5) for s in combinations(space.tested, r)
    ]
    accepted = [s for s in everything if local.log_e([s])[0] < np.log(10.0)]
    brute = {s for s in accepted if not any(t < s for t in accepted)}
    assert set(decisions.minimal()) == brute
    again = Universal(space, data, likelihood, seed)
    assert decisions.one_at_a_time() == one_at_a_time(again, 0.1, "holm").supports[0]
    assert brute == set(all_supports(again, 0.1).supports)


@pytest.mark.parametrize("seed", range(4))
def test_the_evidence_is_bounded_on_the_side_of_its_verdict(seed):
    """One half may be enough to reject: what is then said of E is no more than E, and no less than the threshold."""
    space, data = linear(seed, 150)
    likelihood = likelihood_of(space, data)
    local, exact = (Universal(space, data, likelihood, seed) for _ in range(2))
    threshold, rejected = float(np.log(10.0)), Decisions(local, 0.1).one_at_a_time()
    assert space.tested[0] in rejected
    for g in space.tested:
        support = space.everything - {g}
        truth, said = exact.log_e([support])[0], local.evidence(support)
        assert (g in rejected) == (truth >= threshold)
        if g in rejected:
            assert threshold <= said <= truth + 1e-9 and truth - said <= np.log(2.0) + 1e-9
        else:
            assert said == pytest.approx(truth, abs=1e-9)  # one climb is exact where there is one peak
