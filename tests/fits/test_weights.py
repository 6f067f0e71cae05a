"""Weights: labels that nothing weighs, counts that are pairs, and sampling weights that are not."""

import numpy as np
import pytest

import policyspace
from policyspace import GaussianLinear, Sample, SoftmaxLinear, likelihood_of
from policyspace.families import clustered_covariance


def test_a_label_of_rows_without_weight_does_not_exist():
    rng = np.random.default_rng(0)
    x, labels, weights = rng.normal(size=(60, 1)), np.array(["a", "b", "c"] * 20), np.ones(60)
    weights[labels == "b"] = 0.0
    made = Sample.from_arrays(x, labels, weights=weights)
    assert made.action_names == ("a", "c") and made.num_rows == 40
    assert Sample.from_arrays(x, labels, weights=np.where(np.arange(60) < 3, 0.0, 1.0)).num_rows == 60


def test_counts_are_as_many_pairs():
    rng = np.random.default_rng(1)
    x, y, counts = rng.normal(size=(40, 2)), rng.integers(0, 2, 40), rng.integers(1, 30, 40)
    counted = policyspace.identify(x, y, weights=counts, test="wilks")
    written_out = policyspace.identify(np.repeat(x, counts, axis=0), np.repeat(y, counts), test="wilks")
    assert counted.data.num_rows == written_out.data.num_rows == counts.sum()
    assert [t.statistic for t in counted.groups] == pytest.approx([t.statistic for t in written_out.groups], abs=1e-7)


def test_few_rows_are_not_called_clipped():
    rng = np.random.default_rng(2)
    answer = policyspace.identify(rng.normal(size=(19, 1)), rng.normal(size=19), policy="gaussian")
    assert not [warning for warning in answer.warnings if "clipped" in warning]


def by_hand(x, y, p, clusters, weights):
    """Σ over clusters in a loop, for two actions."""
    phi = np.column_stack([np.ones(len(x)), x])
    information = sum(w * q * (1 - q) * np.outer(f, f) for w, q, f in zip(weights, p, phi, strict=True))
    meat = np.zeros_like(information)
    names = sorted(set(clusters))
    for name in names:
        score = sum(weights[i] * (y[i] - p[i]) * phi[i] for i in range(len(x)) if clusters[i] == name)
        meat += np.outer(score, score)
    inverse = np.linalg.inv(information)
    return inverse @ meat @ inverse * len(names) / (len(names) - 1)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_covariance_by_cluster_is_that_of_a_loop(weighted):
    rng = np.random.default_rng(3)
    x, subjects = rng.normal(size=(80, 2)) * [1.0, 50.0] + [0.0, 900.0], np.repeat(np.arange(10), 8)
    y = (rng.random(80) < 0.4).astype(int)
    weights = rng.uniform(0.5, 2.0, 80) if weighted else None
    data = Sample.from_arrays(x, y, subjects=subjects, weights=weights, reference=0)
    likelihood = likelihood_of(SoftmaxLinear(data.names, data.action_names), data)
    theta = likelihood.refined_estimate()[0]
    p = 1 / (1 + np.exp(-(theta[0] + x @ theta[1:])))
    expected = by_hand(x, y, p, subjects, np.ones(80) if weights is None else weights)
    np.testing.assert_allclose(clustered_covariance(likelihood, data), expected, rtol=1e-6)


def test_a_gaussian_covariance_by_row_is_that_of_statsmodels():
    sm = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(4)
    x = rng.normal(size=(90, 2))
    y = x[:, 0] * (1 + rng.normal(size=90)) + rng.normal(size=90)
    groups = np.repeat(np.arange(15), 6)
    data = Sample.from_arrays(x, y, subjects=groups)
    likelihood = likelihood_of(GaussianLinear(data.names, data.action_names), data)
    peer = sm.OLS(y, sm.add_constant(x)).fit(cov_type="cluster", cov_kwds={"groups": groups})
    np.testing.assert_allclose(clustered_covariance(likelihood, data), peer.cov_params(), rtol=1e-9)


def test_subjects_take_the_promise_of_tests_that_do_not_know_them():
    rng = np.random.default_rng(5)
    x, y, subjects = rng.normal(size=(400, 2)), rng.integers(0, 2, 400), np.repeat(np.arange(50), 8)
    for test in ("wilks", "firth", "bootstrap", "universal", "eprocess", "mixture"):
        answer = policyspace.identify(x, y, subjects=subjects, test=test)
        assert answer.guarantee is None and any("rows of one subject belong together" in n for n in answer.notes())
    for test in ("lean", "robust", "mixed"):
        answer = policyspace.identify(x, y, subjects=subjects, test=test)
        assert answer.guarantee and answer.clusters.kind == "subjects"
    three = rng.integers(0, 3, 400)
    assert policyspace.identify(x, three, subjects=subjects, groups="parameter").test.name == "mixed"
