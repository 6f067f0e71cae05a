"""The random-effects test against the t-test of subjects' own slopes, and its level and power over simulated subjects."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from policyspace import InputError, PolicySpec, Sample, identify, likelihood_of, read_answer
from policyspace.inference import RandomEffects

NAMES = ("used", "mixed_sign", "idle")


def subjects(size, trials, seed, kind="continuous", used=0.25, spread=(0.3, 0.5, 0.0), skewed=False):
    """Rows of subjects who weigh the first feature by `used` on average, the second by 0, and the third not at all."""
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(size), trials)
    features = rng.normal(size=(len(owner), 3))
    own = rng.exponential(size=(size, 3)) - 1 if skewed else rng.normal(size=(size, 3))
    weights = np.array([used, 0.0, 0.0]) + own * np.array(spread)
    drive = (features * weights[owner]).sum(axis=1) + 0.5 * rng.normal(size=size)[owner]
    if kind == "continuous":
        actions = drive + rng.normal(size=len(owner))
    elif kind == "count":
        actions = rng.poisson(np.exp(np.clip(0.5 + 0.5 * drive, -5, 4))).astype(float)
    else:
        actions = np.where(rng.random(len(owner)) < 1 / (1 + np.exp(-drive)), "go", "stay")
    return Sample.from_arrays(features, actions, NAMES, subjects=owner, counts=kind == "count")


def test_of(data, policy=None):
    space = PolicySpec(policy).bind(data)
    return RandomEffects(likelihood_of(space, data), data)


test_of.__test__ = False


def p_values(test):
    return [found.p_value for found in test.test_many([test.space.support_without(g) for g in test.space.tested])]


def same_rows(size, seed, spread=0.5):
    """Subjects who meet the same states, each with slopes of its own."""
    rng = np.random.default_rng(seed)
    states = rng.normal(size=(12, 2))
    states = np.linalg.qr(states - states.mean(axis=0))[0] * np.sqrt(12)  # so that slopes are found without each other
    own = np.array([0.4, 0.0]) + spread * rng.normal(size=(size, 2))
    actions = (own @ states.T + rng.normal(size=(size, 12))).ravel()
    return Sample.from_arrays(np.tile(states, (size, 1)), actions, ("a", "b"), subjects=np.repeat(np.arange(size), 12))


@pytest.mark.parametrize("seed", range(4))
def test_in_a_balanced_design_it_is_the_t_test_of_the_subjects_own_slopes(seed):
    data = same_rows(9, seed, spread=0.8)
    design = np.column_stack([np.ones(12), data.features[:12]])
    slopes = np.linalg.lstsq(design, data.actions.reshape(9, 12).T, rcond=None)[0]
    test = test_of(data)
    for column, found in enumerate(p_values(test), start=1):
        wanted = stats.ttest_1samp(slopes[column], 0.0)
        assert found == pytest.approx(wanted.pvalue, rel=0.02)
        assert test.effects(0.05).average[column - 1] == pytest.approx(slopes[column].mean(), rel=0.02, abs=0.003)
    # The spread of slopes beyond what 12 rows of noise make of them.
    noise = np.sum((data.actions.reshape(9, 12).T - design @ slopes) ** 2) / (9 * 9)
    own = slopes.var(axis=1, ddof=1) - noise * np.diag(np.linalg.inv(design.T @ design))
    assert np.square(test.effects(0.05).spread) == pytest.approx(own[1:], rel=0.1)


def test_nothing_depends_on_units_and_order():
    data = subjects(8, 30, 3, "discrete")
    wanted = p_values(test_of(data))
    other = replace(data, features=data.features * [57.0, -0.01, 1.0] + [5.0, 100.0, -3.0])
    assert p_values(test_of(other)) == pytest.approx(wanted, rel=1e-6)
    mixed = np.random.default_rng(0).permutation(data.num_rows)
    assert p_values(test_of(data.take(mixed))) == pytest.approx(wanted, rel=1e-6)
    continuous = subjects(8, 30, 3)
    scaled = replace(continuous, actions=continuous.actions * 1000 + 7)
    assert p_values(test_of(scaled)) == pytest.approx(p_values(test_of(continuous)), rel=1e-6)


def test_separated_subjects_do_no_harm():
    data = subjects(8, 20, 5, "discrete", used=1.5)
    codes = data.actions.copy()
    codes[data.subjects == 2] = 0
    codes[data.subjects == 3] = (data.features[data.subjects == 3, 0] > 0).astype(int)
    test = test_of(replace(data, actions=codes))
    assert test.fit.converged and np.isfinite(test.effects(0.05).weights).all()
    assert p_values(test)[2] > 0.05


def test_constants_of_subjects_have_fewer_degrees_of_freedom():
    data = subjects(10, 20, 6)
    age = np.random.default_rng(1).normal(size=10)[data.subjects.astype(int)]
    both = Sample.from_arrays(
        np.column_stack([data.features, age]), data.actions, (*NAMES, "age"), subjects=data.subjects
    )
    test = test_of(both)
    assert test.varying.tolist() == [True, True, True, True, False]
    assert test.effects(0.05).spread[-1] == 0.0  # every subject has one age
    means = [data.actions[data.subjects == s].mean() for s in range(10)]
    wanted = stats.linregress([age[data.subjects == s][0] for s in range(10)], means).pvalue
    assert p_values(test)[-1] == pytest.approx(wanted, abs=0.1)


@pytest.mark.parametrize("kind", ["continuous", "discrete", "count"])
def test_the_default_for_named_subjects(kind):
    data = subjects(14, 60, 8, kind, used=0.6)
    answer = identify(data)
    assert answer.test.name == "mixed" and "used" in answer.selected
    few = data.take(data.subjects < 4)
    assert identify(few).test.name == "lean"
    assert identify(few, test="mixed").guarantee is None


def test_it_needs_subjects():
    data = subjects(8, 20, 1)
    with pytest.raises(InputError, match="needs subjects"):
        identify(replace(data, subjects=None), test="mixed")
    with pytest.raises(InputError, match="several subjects"):
        identify(replace(data, subjects=np.zeros(data.num_rows)), test="mixed")


def test_by_how_many_subjects_a_feature_is_used():
    used = np.arange(12) < 7
    too_many, bounds = 0, []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        owner = np.repeat(np.arange(12), 80)
        states = rng.normal(size=(len(owner), 2))
        drive = states[:, 0] * np.where(used, 1.5, 0.0)[owner] * np.where(owner % 2, 1, -1)
        actions = np.where(rng.random(len(owner)) < 1 / (1 + np.exp(-drive)), "go", "stay")
        test = test_of(Sample.from_arrays(states, actions, ("a", "b"), subjects=owner))
        bounds.append(test.at_least(test.space.support_without(test.space.tested[0]), 0.05))
        too_many += test.at_least(test.space.support_without(test.space.tested[1]), 0.05) > 0
    # Although no direction is that of most subjects.
    assert np.sum(np.array(bounds) > 7) <= 3 and np.median(bounds) >= 5
    assert too_many <= 3


CASES = {
    "continuous, 6": (6, 40, "continuous", {}),
    "discrete, 6": (6, 40, "discrete", {}),
    "discrete, 20": (20, 40, "discrete", {}),
    "counts, 10": (10, 30, "count", {}),
    "skewed, 10": (10, 40, "discrete", {"skewed": True}),
}


def errors_and_power(case, runs):
    size, trials, kind, words = CASES[case]
    found = np.array([p_values(test_of(subjects(size, trials, 1000 + seed, kind, **words))) for seed in range(runs)])
    return (found < 0.05).sum(axis=0)


def test_its_level_in_short():
    for case in ("continuous, 6", "discrete, 6"):
        _, mixed, idle = errors_and_power(case, 60)
        for wrong in (mixed, idle):
            assert stats.binom.sf(wrong - 1, 60, 0.06) > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_its_level(case):
    _, mixed, idle = errors_and_power(case, 500)
    for wrong in (mixed, idle):
        assert stats.binom.sf(wrong - 1, 500, 0.06) > 1e-2


def test_weights_of_subjects_are_shrunken_by_the_noise_of_their_own():
    """In a balanced design with known variances the shrunken slope is the best linear prediction."""
    data = same_rows(9, 1, spread=0.8)
    design = np.column_stack([np.ones(12), data.features[:12]])
    own = np.linalg.lstsq(design, data.actions.reshape(9, 12).T, rcond=None)[0][1:].T
    test = test_of(data)
    found = test.effects(0.05)
    left = data.actions.reshape(9, 12) - np.array(found.weights) @ design[:, 1:].T
    left -= left.mean(axis=1, keepdims=True)
    noise = np.sum(left**2) / (9 * 9)  # a little more than that of the subjects' own fits
    share = np.square(found.spread) / (np.square(found.spread) + noise / 12)
    wanted = found.average + share * (own - found.average)
    assert np.array(found.weights) == pytest.approx(wanted, abs=0.01)


def test_an_answer_says_how_subjects_differ(tmp_path):
    data = subjects(8, 60, 9, "discrete", used=1.5)
    answer = identify(replace(data, subjects=np.array([f"s{i}" for i in data.subjects])))
    found = answer.subjects
    assert found.names == tuple(f"s{i}" for i in range(8)) and found.at_least["used"] >= 6
    assert found.at_least["idle"] == 0
    assert f"used by at least {found.at_least['used']} of 8" in str(answer)
    assert [row[0] for row in found.table().rows] == ["average", *found.names]
    (tmp_path / "answer.json").write_text(answer.to_json())
    assert read_answer(tmp_path / "answer.json").subjects == found
    assert len(found.plot().axes) == 3 and "Weights of each subject" in answer.report(tmp_path / "a.html").read_text()
    assert identify(data, test="lean").subjects is None and "subjects" not in identify(data, test="lean").to_dict()


def test_no_number_of_subjects_is_told_where_their_rows_depend_on_each_other():
    data = subjects(8, 200, 8)
    inside = np.arange(data.num_rows) % 200
    held = np.repeat(np.arange(data.num_rows), 1) - inside % 10  # each decision is held for ten rows
    dependent = replace(data, features=data.features[held], actions=data.actions[held])
    assert test_of(dependent).effects(0.05).at_least == {}
    assert "used" in test_of(data).effects(0.05).at_least
