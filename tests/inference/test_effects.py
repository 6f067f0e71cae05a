"""The effect: closed forms, the same in any units, intervals that cover, shares that are shares."""

import math

import numpy as np
import pytest

from policyspace import identify

NAMES = ["angle", "speed", "noise"]


def log(seed, n=300, discrete=False):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    x[:, 1] += 0.7 * x[:, 0]
    score = x @ [0.8, -0.4, 0.0]
    actions = (
        np.where(rng.random(n) < 1 / (1 + np.exp(-score)), "go", "stop") if discrete else score + rng.normal(size=n)
    )
    return x, actions, score


@pytest.mark.parametrize("discrete", [False, True], ids=["amounts", "labels"])
@pytest.mark.parametrize("test", ["wilks", "lean"])
def test_units_do_not_matter(discrete, test):
    """Degrees for radians, millimetres for metres, another zero: the same effect, interval and order."""
    x, actions, _ = log(1, discrete=discrete)
    first = identify(x, actions, features=NAMES, test=test)
    other = identify(x * [180 / math.pi, 1e-3, 7.0] + [0.0, 5.0, -3.0], actions, features=NAMES, test=test)
    for one, again in zip(first.groups, other.groups, strict=True):
        for name in ("action_effect", "effect_low", "effect_high"):
            assert getattr(again, name) == pytest.approx(getattr(one, name), rel=1e-5, abs=1e-8)
    assert [one.group for one in first.by_effect] == [one.group for one in other.by_effect]
    if test == "wilks":
        assert first.groups[0].coefficient_norm > 50 * other.groups[0].coefficient_norm


def test_one_weight_is_that_of_least_squares():
    """Of a single feature the interval is Student's-like normal interval of its slope, times its mean distance."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=500)
    actions = 0.5 * x + rng.normal(size=500)
    (found,) = identify(x[:, None], actions, features=["x"], policy="gaussian").groups
    centred = x - x.mean()
    slope = centred @ actions / (centred @ centred)
    left = actions - actions.mean() - slope * centred
    error = math.sqrt(left @ left / 500 / (centred @ centred))
    unit = np.abs(centred).mean() / actions.std()
    assert found.action_effect == pytest.approx(unit * math.sqrt(slope**2 - error**2), rel=1e-6)
    assert found.effect_low == pytest.approx(unit * (slope - 1.959964 * error), rel=1e-2)
    assert found.effect_high == pytest.approx(unit * (slope + 1.959964 * error), rel=1e-2)


@pytest.mark.parametrize("discrete", [False, True], ids=["amounts", "labels"])
def test_intervals_cover(discrete):
    """Of 80 logs at most 10 intervals miss what the true policy does (a probability of 0.005 at 95 %)."""
    missed = np.zeros(3)
    for seed in range(80):
        x, actions, score = log(100 + seed, discrete=discrete)
        found = identify(x, actions, features=NAMES, policy="boltzmann" if discrete else "gaussian", test="wilks")
        for j, one in enumerate(found.groups):
            others = np.column_stack([np.ones(len(x)), np.delete(x, j, axis=1)])
            moved = (x[:, j] - others @ np.linalg.lstsq(others, x[:, j], rcond=None)[0]) * [0.8, -0.4, 0.0][j]
            if discrete:
                truth = np.abs(1 / (1 + np.exp(-score)) - 1 / (1 + np.exp(moved - score))).mean()
            else:
                truth = np.abs(moved).mean() / actions.std()
            missed[j] += not one.effect_low <= truth <= one.effect_high
    assert (missed <= 10).all()


def test_a_share_is_at_most_one():
    """However wide the interval, and for a sure policy too."""
    few = np.random.default_rng(1).normal(size=(24, 2))
    for one in identify(few, np.where(few[:, 0] + 0.3 * few[:, 1] > 0, "go", "stop"), test="firth").groups:
        assert 0 <= one.effect_low <= one.action_effect <= one.effect_high <= 1 or one.effect_low != one.effect_low
    x = np.random.default_rng(3).choice([-1.0, 1.0], (400, 2))
    sure = identify(x, np.where(x[:, 0] > 0, "go", "stop"), features=["a", "b"], test="firth")
    assert 0.4 < sure.groups[0].action_effect <= 1 and sure.groups[1].action_effect < 0.05


def test_single_weights_have_effects_too():
    """With one component they are those of the features; of several, each moves its own component alone."""
    x, actions, _ = log(4)
    features = identify(x, actions, features=NAMES, policy="gaussian")
    weights = identify(x, actions, features=NAMES, policy="gaussian", groups="parameter")
    for one, other in zip(features.groups, weights.groups, strict=True):
        assert other.action_effect == pytest.approx(one.action_effect, rel=1e-6)
    two = np.column_stack([actions, np.random.default_rng(0).normal(size=len(x))])
    found = identify(x, two, features=NAMES, policy="gaussian", covariance=1.0, groups="parameter")
    assert found.groups[0].action_effect > 10 * max(one.action_effect for one in found.groups[3:]) / 3


def test_rows_that_count_for_several():
    """The effect of counts is that of rows that are repeated."""
    x, actions, _ = log(5, n=150)
    count = np.random.default_rng(5).integers(1, 4, 150)
    import polars

    frame = polars.DataFrame(dict(zip(NAMES, x.T, strict=True))).with_columns(act=actions, count=count)
    weighted = identify(frame, "act", features=NAMES, weights="count", test="wilks", policy="gaussian")
    repeated = identify(
        np.repeat(x, count, axis=0), np.repeat(actions, count), features=NAMES, test="wilks", policy="gaussian"
    )
    for one, other in zip(weighted.groups, repeated.groups, strict=True):
        assert one.action_effect == pytest.approx(other.action_effect, rel=1e-7, abs=1e-9)
        assert one.effect_high == pytest.approx(other.effect_high, rel=1e-7)


@pytest.mark.parametrize("policy", ["ordered", "poisson", "negative-binomial"])
def test_every_linear_family_has_effects(policy):
    """Families with thresholds or a dispersion beside their weights, too."""
    x, _, _ = log(6, n=200)
    counts = np.random.default_rng(6).poisson(np.exp(0.4 * x[:, 0]))
    found = identify(x, np.clip(counts, 0, 3).astype(str) if policy == "ordered" else counts, features=NAMES, policy=policy,
                     **({"levels": list("0123")} if policy == "ordered" else {}))  # fmt: skip
    first = found.groups[0]
    assert 0 < first.effect_low < first.action_effect < first.effect_high
    assert found.curves()[0].low[0][0] < found.curves()[0].high[0][0]
