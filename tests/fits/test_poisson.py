"""Counts: the Poisson policy against statsmodels' GLM, and the cases in which no finite weight is most likely."""

import numpy as np
import polars
import pytest
import statsmodels.api as sm

import policyspace as ps

NAMES = ("near", "far", "idle")


def states_and_counts(n=400, seed=3, level=0.3):
    rng = np.random.default_rng(seed)
    states = rng.normal(size=(n, 3)) * [1.0, 5.0, 0.2] + [0.0, 20.0, 3.0]
    return states, rng.poisson(np.exp(level + states @ [0.5, -0.04, 0.0] + 0.8)).astype(float)


def peer(states, counts, weights=None):
    design = sm.add_constant(states, has_constant="add")
    return sm.GLM(counts, design, family=sm.families.Poisson(), freq_weights=weights).fit(tol=1e-14, maxiter=200)


@pytest.mark.parametrize("level", [-2.0, 0.3, 6.0])
def test_fits_are_those_of_statsmodels(level):
    states, counts = states_and_counts(level=level)
    data = ps.Sample.from_arrays(states, counts, NAMES, counts=True)
    likelihood = ps.likelihood_of(ps.PoissonLinear(NAMES), data)
    full = peer(states, counts)
    assert likelihood.full.log_likelihood == pytest.approx(full.llf, rel=1e-11)
    assert likelihood.full.theta == pytest.approx(full.params, rel=2e-6, abs=1e-6)
    for column in range(3):
        kept = frozenset(range(4)) - {column + 1}
        smaller = peer(np.delete(states, column, axis=1), counts)
        ratio = 2 * (likelihood.full.log_likelihood - likelihood.fit(kept).log_likelihood)
        assert ratio == pytest.approx(2 * (full.llf - smaller.llf), rel=1e-7, abs=1e-7)


def test_coefficients_are_those_of_statsmodels():
    states, counts = states_and_counts()
    answer = ps.identify(states, counts, features=NAMES, policy="poisson", test="wilks")
    table, full = answer.coefficients(), peer(states, counts)
    assert [row.estimate for row in table.rows] == pytest.approx(list(full.params), rel=1e-7)
    assert [row.standard_error for row in table.rows] == pytest.approx(list(full.bse), rel=1e-6)
    assert [row.p_value for row in table.rows] == pytest.approx(list(full.pvalues), rel=1e-5)
    assert table.fit.aic == pytest.approx(full.aic) and table.fit.null_log_likelihood == pytest.approx(full.llnull)
    assert table.fit.explained == pytest.approx(1 - full.deviance / full.null_deviance)
    assert "rate ratio" in str(table) and "odds" not in str(table)
    wald = full.conf_int(0.05)
    assert [(row.lower, row.upper) for row in table.rows] == [pytest.approx(tuple(ends), rel=1e-5) for ends in wald]


def test_profile_intervals_end_where_the_ratio_is_critical():
    states, counts = states_and_counts(150)
    data = ps.Sample.from_arrays(states, counts, NAMES, counts=True)
    best = peer(states, counts).llf
    for i, found in enumerate(ps.profile_intervals(ps.likelihood_of(ps.PoissonLinear(NAMES), data))):
        for end in (found.lower, found.upper):
            rest = sm.add_constant(np.delete(states, i, axis=1))
            fit = sm.GLM(counts, rest, family=sm.families.Poisson(), offset=end * states[:, i]).fit(tol=1e-14)
            assert 2 * (best - fit.llf) == pytest.approx(3.841458820694124, abs=1e-4)


def test_clustered_errors_are_those_of_statsmodels():
    states, counts = states_and_counts()
    subjects = np.arange(400) // 8
    answer = ps.identify(states, counts, features=NAMES, policy="poisson", subjects=subjects, test="robust")
    design = sm.add_constant(states)
    full = sm.GLM(counts, design, family=sm.families.Poisson()).fit(
        cov_type="cluster", cov_kwds={"groups": subjects, "use_correction": False}
    )
    found = [row.standard_error for row in answer.coefficients().rows]
    assert found == pytest.approx(list(full.bse * np.sqrt(50 / 49)), rel=1e-6)


def test_weights_are_repeated_rows():
    states, counts = states_and_counts(60)
    weights = np.random.default_rng(0).integers(1, 4, 60)
    once = ps.identify(states, counts, features=NAMES, policy="poisson", weights=weights, test="wilks")
    again = ps.identify(
        np.repeat(states, weights, axis=0), np.repeat(counts, weights), features=NAMES, policy="poisson", test="wilks"
    )
    assert [t.statistic for t in once.groups] == pytest.approx([t.statistic for t in again.groups], rel=1e-8)
    assert once.fit.log_likelihood == pytest.approx(peer(states, counts, weights).llf)


def test_several_counts_are_independent_of_each_other():
    states, counts = states_and_counts()
    other = np.random.default_rng(9).poisson(3.0, 400).astype(float)
    data = ps.Sample.from_arrays(states, np.column_stack([counts, other]), NAMES, ["presses", "turns"], counts=True)
    found = ps.likelihood_of(ps.PoissonLinear(NAMES, ("presses", "turns")), data).full.log_likelihood
    assert found == pytest.approx(peer(states, counts).llf + peer(states, other).llf, rel=1e-10)


def test_a_state_in_which_nothing_is_ever_counted_has_an_infinite_weight():
    rng = np.random.default_rng(1)
    asleep = (np.arange(200) < 40).astype(float)
    counts = np.where(asleep > 0, 0, rng.poisson(2.0, 200)).astype(float)
    states = np.column_stack([asleep, rng.normal(size=200)])
    answer = ps.identify(states, counts, features=["asleep", "x"], policy="poisson", test="wilks")
    assert answer.fit.separated and "diverging: asleep" in " ".join(answer.warnings)
    # λ is that of the limit, in which the rows asleep say nothing any more.
    awake = peer(states[40:, 1:], counts[40:]).llf
    assert answer.fit.log_likelihood == pytest.approx(awake, abs=1e-6)
    assert answer.selected == ("asleep",)


@pytest.mark.parametrize(("bad", "words"), [(-1.0, "found -1 in row 3"), (0.5, "found 0.5 in row 3")])
def test_what_is_no_count_is_refused(bad, words):
    states, counts = states_and_counts(50)
    counts[2] = bad
    with pytest.raises(ps.InputError, match=words):
        ps.identify(states, counts, policy="poisson")


def test_labels_and_offsets_are_refused():
    states, counts = states_and_counts(50)
    with pytest.raises(ps.InputError, match="needs continuous actions"):
        ps.identify(ps.Sample.from_arrays(states, (counts > 1).astype(int)), policy="poisson")
    with pytest.raises(ps.InputError, match="offset is not known to"):
        ps.identify(states, counts, policy="poisson", offset=np.ones(50))


@pytest.mark.parametrize("name", ["counts.csv", "counts.parquet", "counts.npz"])
def test_files_keep_that_actions_are_counts(tmp_path, name):
    states, counts = states_and_counts(80)
    data = ps.Sample.from_arrays(states, counts.astype(int), NAMES, counts=True)
    ps.write(data, tmp_path / name)
    again = ps.read(tmp_path / name)
    assert again.action_type == data.action_type and again.action_type.kind == "count"
    assert np.array_equal(again.actions, data.actions)
    found, held = ps.identify(tmp_path / name), ps.identify(data)
    assert found.test.name == "lean"
    assert [t.p_value for t in found.groups] == [t.p_value for t in held.groups]
    stated, named = (ps.identify(rows, policy="poisson") for rows in (tmp_path / name, data))
    assert stated.fit.log_likelihood == pytest.approx(peer(states, counts).llf, rel=1e-10)
    assert [t.p_value for t in stated.groups] == [t.p_value for t in named.groups]
    for answer in (found, stated):
        assert answer.policy.family == "PoissonLinear" and answer.data.action_type == "count"


def test_whole_numbers_are_labels_unless_counts_are_asked_for(tmp_path):
    states, counts = states_and_counts(200)
    few = np.minimum(counts, 2)
    lines = ["a,b,c,presses", *(f"{x},{y},{z},{int(k)}" for (x, y, z), k in zip(states, few, strict=True))]
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    assert ps.identify(tmp_path / "log.csv", "presses").policy.family == "SoftmaxLinear"
    assert ps.identify(tmp_path / "log.csv", "presses", policy="poisson").policy.family == "PoissonLinear"


def test_many_whole_numbers_say_how_they_are_read():
    states, counts = states_and_counts(200, level=1.0)
    many = len(np.unique(counts))
    assert many >= 10
    words = f"actions are {many} different whole numbers and are read as discrete actions: if they are counts use"
    assert words in " ".join(ps.identify(states, counts.astype(int), test="robust").warnings)
    few = np.minimum(counts, 8).astype(int)
    assert "whole numbers" not in " ".join(ps.identify(states, few, test="robust").warnings)


def test_formulas_and_plans_speak_of_counts():
    states, counts = states_and_counts()
    table = polars.DataFrame(dict(zip((*NAMES, "presses"), np.column_stack([states, counts]).T, strict=True)))
    answer = ps.identify(table, policy="poisson", formula="presses ~ near * idle + far", test="wilks")
    crossed = np.column_stack([states, states[:, 0] * states[:, 2]])
    assert answer.fit.log_likelihood == pytest.approx(peer(crossed, counts).llf)
    assert "near" in str(ps.plan(states, counts, features=NAMES, policy="poisson"))


def test_a_spread_larger_than_that_of_counts_shows():
    rng = np.random.default_rng(4)
    states = rng.normal(size=(800, 2))
    counts = rng.negative_binomial(1.0, 1 / (1 + np.exp(0.5 + 0.3 * states[:, 0]))).astype(float)
    answer = ps.identify(states, counts, policy="poisson")
    noise = next(a for a in answer.assumptions if a.name == "noise")
    assert noise.status == "violated" and "a Poisson distribution" in noise.message
    assert answer.test.name == "robust" and answer.guarantee is not None  # by the spread of the rows
    asked = ps.identify(states, counts, policy="poisson", test="wilks")
    assert asked.guarantee is None and "--policy negative-binomial" in asked.why_no_guarantee
    unstated = ps.identify(ps.Sample.from_arrays(states, counts, counts=True))
    assert unstated.test.name == "lean" and unstated.guarantee is not None


def test_the_noise_check_of_counts_keeps_its_level():
    """Of rare counts too, whose squared residuals are far from Normal ones: at 2 %, 10 of 200 have a chance below 0.5 %."""
    alarms = 0
    for seed in range(200):
        rng = np.random.default_rng([7, seed])
        states = rng.normal(size=(300, 2))
        counts = rng.poisson(np.exp(-1.0 + 0.4 * states[:, 0])).astype(float)
        data = ps.Sample.from_arrays(states, counts, counts=True)
        space = ps.PoissonLinear(data.names)
        left = space.residuals(ps.fit(space, data).theta, states, data.action_type, data.actions)
        alarms += abs(left.dispersion - 1) > 2.326 * left.dispersion_error
    assert alarms <= 10
