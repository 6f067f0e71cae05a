"""The coefficient table against brute force, and against numbers that biogeme publishes."""

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import chdtri

from policyspace import ChoiceLinear, Sample, SoftmaxLinear, likelihood_of
from policyspace.data import load_sample
from policyspace.inference import coefficients_of

FOLDER = Path(__file__).parents[1] / "data" / "choice"


def three_ways(num_rows=150, seed=0):
    """A feature far from zero, a cost of every action, and choices by both."""
    rng = np.random.default_rng(seed)
    age, cost = 40 + 10 * rng.normal(size=num_rows), 5 + rng.normal(size=(num_rows, 3))
    eta = np.column_stack([0.05 * (age - 40) + 0.5, np.zeros(num_rows), np.zeros(num_rows)]) - 0.5 * cost
    names = ("age", "cost_a", "cost_b", "cost_c")
    return Sample(
        np.column_stack([age, cost]), (eta + rng.gumbel(size=eta.shape)).argmax(axis=1), names, ("a", "b", "c")
    )


SPACES = {
    "boltzmann": SoftmaxLinear(),
    "shared": ChoiceLinear(attributes={"cost": "cost_*"}),
    "specific": ChoiceLinear(attributes={"cost": "cost_*"}, specific=["cost"]),
}


@pytest.mark.parametrize("name", SPACES)
def test_profile_intervals_end_where_the_likelihood_has_fallen(name):
    """For constants too, which fits see as sums of other weights: 2(log L − max log L at θ_i = end) = c."""
    data = three_ways()
    space = SPACES[name].bind(data)
    table = coefficients_of(likelihood_of(space, data), data, {}, interval="profile")
    size = len(table.rows)

    def loss(theta):
        return -float(np.asarray(space.log_prob(theta, data.features, data.actions)).sum())

    best = np.array([row.estimate for row in table.rows])
    inverse = np.linalg.inv(space.fisher(best, data.features) * data.num_rows)
    for i, row in enumerate(table.rows):
        others = np.delete(np.arange(size), i)
        shape = np.linalg.cholesky(np.linalg.inv(np.linalg.inv(inverse)[np.ix_(others, others)]))
        for end in (row.lower, row.upper):
            start = best + inverse[:, i] / inverse[i, i] * (end - best[i])

            def of(part, i=i, start=start, others=others, shape=shape):
                theta = start.copy()
                theta[others] += shape @ part
                return loss(theta)

            fallen = 2 * (minimize(of, np.zeros(size - 1), method="BFGS").fun - loss(best))
            assert fallen == pytest.approx(chdtri(1, 0.05), abs=1e-4), row.parameter


def test_equal_shares_are_those_of_what_is_available():
    """biogeme publishes −6964.663 as the initial log-likelihood of its model logit01 of Swissmetro."""
    attributes = {name: f"{name}_*" for name in ("minutes", "francs")}
    policy = ChoiceLinear(attributes=attributes, available="available_*")
    data = load_sample(FOLDER / "swissmetro.csv.gz", "choice", choices=policy.choices)
    likelihood = likelihood_of(policy.bind(data), data)
    fit = coefficients_of(likelihood, data, {}).fit
    assert fit.equal_shares_log_likelihood == pytest.approx(-6964.663, abs=1e-3)
    assert fit.null_log_likelihood == pytest.approx(likelihood.fit(frozenset()).log_likelihood, abs=1e-6)
    assert fit.log_likelihood > fit.null_log_likelihood > fit.equal_shares_log_likelihood
