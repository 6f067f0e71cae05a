"""Few clusters: R's clubSandwich on amounts, the textbook's matrices of all rows on labels."""

import json
from pathlib import Path

import numpy as np
import polars
import pytest
from scipy.special import fdtrc

from policyspace import GaussianLinear, Sample, SoftmaxLinear, identify, likelihood_of
from policyspace.data import load_sample
from policyspace.families import cr2
from policyspace.inference import RobustWald

FOLDER = Path(__file__).parents[1] / "data" / "golden"
NUMBERS = json.loads((FOLDER / "few_clusters.json").read_text(encoding="utf-8"))


def linear(name):
    if name == "infert":
        frame = polars.read_csv(FOLDER / "infert.csv").with_columns(polars.col("age").cast(float))
        return load_sample(frame, "age", ["parity", "induced", "case"], subjects="stratum", discrete=False)
    frame = polars.read_csv(FOLDER / "chick_weight.csv").with_columns(polars.col("weight").cast(float))
    if name == "eight chicks":
        frame = frame.filter(polars.col("Chick").is_in([1, 2, 3, 21, 22, 31, 41, 42]))
    return load_sample(frame, "weight", ["Time", "Diet"], subjects="Chick", categorical=["Diet"])


@pytest.mark.parametrize("name", NUMBERS)
def test_amounts_as_clubsandwich_has_them(name):
    data = linear(name)
    space = GaussianLinear().bind(data)
    test = RobustWald(likelihood_of(space, data), data)
    number = {group.name: g for g, group in enumerate(space.groups)}
    for names, expected in NUMBERS[name].items():
        found = test.test_many([space.full_support - {number[part] for part in names.split()}])[0]
        assert found.statistic == pytest.approx(expected["statistic"], rel=1e-7)
        assert found.p_value == pytest.approx(expected["p_value"], rel=1e-6)


def three_labels(seed, num_clusters=9):
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(num_clusters), rng.integers(4, 12, num_clusters))
    features = np.column_stack([rng.normal(size=len(who)), rng.normal(size=num_clusters)[who]])
    scores = np.column_stack([features[:, 0], 0.5 * features[:, 1], np.zeros(len(who))]) + rng.gumbel(
        size=(len(who), 3)
    )
    data = Sample(features, scores.argmax(axis=1), ("x", "y"), ("a", "b", "c"), subjects=who)
    return SoftmaxLinear(data.names, data.action_names), data


@pytest.mark.parametrize("fixed", [[1], [2, 5], [1, 2, 4, 5]])
def test_labels_by_the_matrices_of_all_rows(fixed):
    """Each row is two whitened observations; A_g = (1 − H_gg)^(−1/2), Ω = (1 − H)-projected contrasts, all written out."""
    space, data = three_labels(1)
    likelihood = likelihood_of(space, data)
    theta, n = likelihood.refined_estimate()[0], data.num_rows
    phi = np.column_stack([np.ones(n), data.features])
    p = space.mean(theta, data.features)
    covariance = p[:, :, None] * np.eye(2) - p[:, :, None] * p[:, None, :]
    design = np.zeros((2 * n, 6))
    residual = np.zeros(2 * n)
    for i in range(n):
        root = np.linalg.cholesky(covariance[i])
        design[2 * i : 2 * i + 2] = root.T @ np.kron(np.eye(2), phi[i])
        residual[2 * i : 2 * i + 2] = np.linalg.solve(root, (data.actions[i] == np.arange(2)) - p[i])
    bread = np.linalg.inv(design.T @ design)
    left = np.eye(2 * n) - design @ bread @ design.T
    contrast = np.eye(6)[:, fixed]
    metric = np.linalg.inv(np.linalg.cholesky(contrast.T @ bread @ contrast))
    ways, parts = [], []
    for g in range(9):
        rows = np.repeat(data.subjects == g, 2)
        values, vectors = np.linalg.eigh(left[np.ix_(rows, rows)])
        adjusted = (vectors / np.sqrt(values)) @ vectors.T @ design[rows] @ bread @ contrast
        parts.append(adjusted.T @ residual[rows])
        ways.append(left[:, rows] @ adjusted @ metric.T)
    total = 0.0
    for one in ways:
        for other in ways:
            crossed = one.T @ other
            total += np.trace(crossed) ** 2 + np.trace(crossed @ crossed)
    m = len(fixed)
    degrees = m * (m + 1) / total
    few = cr2(likelihood, data)
    expected = sum(np.outer(part, part) for part in parts)
    assert few.covariance(np.array(fixed)) == pytest.approx(expected, rel=1e-8)
    assert few.degrees(np.array(fixed)) == pytest.approx(degrees, rel=1e-8)
    statistic = theta[fixed] @ np.linalg.solve(expected, theta[fixed])
    spare = degrees - m + 1
    found = few.test(theta[fixed], np.array(fixed))
    p_value = fdtrc(m, spare, statistic * spare / degrees / m) if spare > 0 else 1.0
    assert found == pytest.approx((statistic, p_value), rel=1e-8)


def test_counts_are_as_many_rows():
    """The unit of labels that were counted is the state, as if each state were a subject with as many rows."""
    data = three_labels(2)[1]
    once = Sample(data.features, data.actions, data.names, data.action_names, subjects=np.arange(data.num_rows))
    counts = np.random.default_rng(0).integers(1, 4, data.num_rows)
    rows = np.repeat(np.arange(data.num_rows), counts)
    counted = Sample(data.features, data.actions, data.names, data.action_names, weights=counts)
    found = [identify(each, test="robust").groups for each in (counted, once.take(rows))]
    assert [t.p_value for t in found[0]] == pytest.approx([t.p_value for t in found[1]], rel=1e-6)
