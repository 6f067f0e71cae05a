"""Fits of general statistics t(s, a): equal to R, biogeme and xlogit, to the Boltzmann policy, to brute force."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from policyspace import ChoiceLinear, InputError, LongFormat, Sample, SoftmaxLinear, identify, likelihood_of
from policyspace.data import load_sample
from policyspace.families import clustered_covariance

FOLDER = Path(__file__).parents[1] / "data" / "choice"
NUMBERS = json.loads((FOLDER / "numbers.json").read_text())
PEERS = json.loads((FOLDER / "peers.json").read_text())
METRO = {name: {mode: f"{name}_{mode}" for mode in ("car", "metro", "train")} for name in ("minutes", "francs")}
HEADWAY = METRO | {"headway": {mode: f"headway_{mode}" for mode in ("metro", "train")}}
TRAVEL = LongFormat("individual", "choice", "mode")


def travel(available=False):
    table = polars.read_csv(FOLDER / "travel_mode.csv")
    car, air = table["mode"] == "car", table["mode"] == "air"
    gone = (car & (table["income"] < 20)) | (air & (table["travel"] > 120))
    return table.filter((table["choice"] == "yes") | ~gone) if available else table


def without_bus():
    air, bus = polars.col("mode") == "air", polars.col("mode") == "bus"
    table = travel().with_columns(income_air=polars.col("income") * air)
    return table.filter((polars.col("choice") == "yes") | ~(bus & (polars.col("income") > 40)))


MODELS = {
    "travel": lambda: (travel(), ["income"], ChoiceLinear(long=TRAVEL)),
    "travel available": lambda: (travel(True), ["income"], ChoiceLinear(long=TRAVEL)),
    "travel without bus": lambda: (
        without_bus(), None,
        ChoiceLinear(attributes=["wait", "vcost", "travel", "gcost", "income_air"], long=TRAVEL),
    ),
    "travel specific": lambda: (
        travel(), None, ChoiceLinear(attributes=["wait", "travel", "vcost"], specific=["vcost"], long=TRAVEL),
    ),
    "travel without names": lambda: (travel(), None, ChoiceLinear(long=LongFormat("individual", "choice"))),
    "swissmetro": lambda: (FOLDER / "swissmetro.csv.gz", None, ChoiceLinear(attributes=METRO, available="available_*")),
    "swissmetro headway": lambda: (
        FOLDER / "swissmetro.csv.gz", None, ChoiceLinear(attributes=HEADWAY, available="available_*"),
    ),
}  # fmt: skip


def fitted(name, firth=False):
    table, features, policy = MODELS[name]()
    actions = "choice" if "metro" in name else None
    data = load_sample(table, actions, features, choices=policy.choices)
    return likelihood_of(policy.bind(data), data, firth), data


def ratios(name):
    """The log-likelihood, and λ of every group."""
    likelihood, _ = fitted(name)
    space, full = likelihood.space, likelihood.full.log_likelihood
    fits = likelihood.fit_many([space.full_support - {g} for g in space.tested])
    names = [space.groups[g].name for g in space.tested]
    found = {group: 2 * (full - fit.log_likelihood) for group, fit in zip(names, fits, strict=True)}
    return {"log_likelihood": full} | found


@pytest.mark.parametrize("name", NUMBERS)
def test_likelihood_ratios_are_those_of_r(name):
    assert ratios(name) == pytest.approx(NUMBERS[name], abs=1e-6)


@pytest.mark.parametrize(("peer", "name"), [(peer, name) for peer in PEERS for name in PEERS[peer]])
def test_likelihood_ratios_are_those_of_biogeme_and_xlogit(peer, name):
    assert ratios(name) == pytest.approx(PEERS[peer][name], abs=1e-6)


def test_swissmetro_has_the_number_that_biogeme_publishes():
    assert NUMBERS["swissmetro"]["log_likelihood"] == pytest.approx(-5331.252, abs=1e-3)


def some_choices(seed=0, num_rows=250):
    """Two shared attributes, one specific, one feature of the chooser; two of four actions are not always there."""
    rng = np.random.default_rng(seed)
    actions = ("a", "b", "c", "d")
    names = ("age", *(f"{x}_{a}" for x in ("cost", "time", "comfort") for a in actions), "there_b", "there_d")
    features = rng.normal(size=(num_rows, len(names)))
    features[:, 5:9] = 100 + 20 * features[:, 5:9]
    features[:, -2:] = rng.random((num_rows, 2)) < 0.7
    attributes = {"cost": "cost_*", "time": "time_*", "comfort": "comfort_*"}
    space = ChoiceLinear(names, actions, attributes, {"b": "there_b", "d": "there_d"}, ["comfort"])
    theta = rng.normal(size=space.num_parameters)
    theta[space.parameter_names.index("time")] *= 0.02
    return space, Sample(features, space.sample(rng, theta, features), names, actions)


def utilities(space, data):
    """θ ↦ natural parameters [n, k+1] straight from the columns, written out again."""
    place = {name: data.features[:, j] for j, name in enumerate(data.names)}
    n, actions = data.num_rows, space.action_names

    def of(theta):
        value = dict(zip(space.parameter_names, theta, strict=True))
        eta = np.zeros((n, len(actions)))
        for j, a in enumerate(actions):
            eta[:, j] += value.get(f"intercept[{a}]", 0.0) + value.get(f"age[{a}]", 0.0) * place["age"]
            eta[:, j] += value["cost"] * place[f"cost_{a}"] + value["time"] * place[f"time_{a}"]
            eta[:, j] += value[f"comfort[{a}]"] * place[f"comfort_{a}"]
            if f"there_{a}" in place:
                eta[place[f"there_{a}"] == 0, j] = -np.inf
        return eta

    return of


def log_likelihood(space, data, theta):
    eta = utilities(space, data)(theta)
    return float((eta[np.arange(len(eta)), data.actions] - logsumexp(eta, axis=1)).sum())


@pytest.mark.parametrize("seed", range(4))
def test_brute_force_finds_no_more(seed):
    space, data = some_choices(seed)
    likelihood = likelihood_of(space, data)
    for support in [space.full_support, *(space.full_support - {g} for g in space.tested)]:
        fit, free = likelihood.fit(support), space.free_mask(support)
        assert fit.log_likelihood == pytest.approx(log_likelihood(space, data, fit.theta), abs=5e-7)
        scale = np.where(np.array(space.parameter_names) == "time", 0.05, 1.0)[free]

        def loss(part, free=free, scale=scale):
            theta = np.zeros(len(free))
            theta[free] = part * scale
            return -log_likelihood(space, data, theta)

        best = minimize(loss, np.zeros(free.sum()), method="BFGS", options={"gtol": 1e-6})
        assert fit.log_likelihood == pytest.approx(-best.fun, abs=1e-6)


def test_the_batch_of_restricted_fits_and_its_bounds_agree_with_single_fits():
    space, data = some_choices(5, 6000)
    likelihood = likelihood_of(space, data)
    supports = [space.full_support - {g, h} for g in space.tested for h in space.tested]
    exact = [2 * (likelihood.full.log_likelihood - likelihood._fit_alone(s).log_likelihood) for s in supports]
    together = [2 * (likelihood.full.log_likelihood - f.log_likelihood) for f in likelihood.fit_many(supports)]
    assert together == pytest.approx(exact, abs=1e-5)
    lower, upper = likelihood.bound_statistics(supports, np.full(len(supports), 30.0))
    assert (lower <= np.array(exact) + 1e-5).all() and (np.array(exact) <= upper + 1e-5).all()
    assert ((lower > 30) | (upper <= 30)).all()


def test_derivatives_by_differences():
    space, data = some_choices(1)
    rows = likelihood_of(space, data).rows
    theta, step = np.random.default_rng(0).normal(size=space.num_parameters) * 0.3, 1e-5
    shifts = step * np.eye(len(theta))
    slope = [(rows.at(theta + e)[0] - rows.at(theta - e)[0]) / (2 * step) for e in shifts]
    assert rows.at(theta)[1] == pytest.approx(slope, abs=1e-5)
    curvature = [(rows.at(theta - e)[1] - rows.at(theta + e)[1]) / (2 * step) for e in shifts]
    assert rows.hessian(theta) == pytest.approx(np.array(curvature), abs=1e-4)


def test_the_information_is_the_covariance_of_the_score():
    space, data = some_choices(2)
    likelihood = likelihood_of(space, data)
    theta, n = likelihood.full.theta, data.num_rows
    scores = np.stack([space.score(theta, data.features, np.full(n, a)) for a in range(4)], axis=1)
    p = space.probabilities(theta, data.features)
    assert np.einsum("na,nad->nd", p, scores) == pytest.approx(np.zeros((n, len(theta))), abs=1e-10)
    expected = np.einsum("na,nad,nae->de", p, np.where(p[:, :, None] > 0, scores, 0.0), scores) / n
    assert likelihood.information() == pytest.approx(expected, rel=1e-8, abs=1e-10)


def test_the_covariance_by_subject_is_that_of_the_scores():
    """(nF̂)⁻¹ (Σ_c g_c g_cᵀ) (nF̂)⁻¹ G/(G−1), written out in the parameters themselves."""
    space, data = some_choices(9, 400)
    data = replace(data, subjects=np.arange(400) // 8)
    likelihood = likelihood_of(space, data)
    scores = space.score(likelihood.full.theta, data.features, data.actions)
    sums = scores.reshape(50, 8, -1).sum(axis=1)
    bread = np.linalg.inv(400 * likelihood.information())
    expected = bread @ (sums.T @ sums) @ bread * 50 / 49
    assert clustered_covariance(likelihood, data) == pytest.approx(expected, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("firth", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_a_boltzmann_policy_is_one_of_general_statistics(firth, intercept):
    rng = np.random.default_rng(3)
    names, actions = ("x", "year", "z"), ("a", "b", "c")
    features = rng.normal(size=(200, 3)) * [1, 5, 1] + [0, 2000, 1]
    boltzmann = SoftmaxLinear(names, actions, intercept=intercept)
    weights = np.hstack([np.zeros((2, int(intercept))), [[1, 0, 0.5], [0, 0, -0.5]]])
    codes = boltzmann.sample(rng, weights.ravel(), features - [0, 2000, 1])
    data = Sample(features, codes, names, actions)
    one, other = (likelihood_of(s, data, firth) for s in (boltzmann, ChoiceLinear(names, actions, intercept=intercept)))
    assert other.full.log_likelihood == pytest.approx(one.full.log_likelihood, abs=1e-8)
    for g in boltzmann.tested:
        pair = [lk.full.log_likelihood - lk.fit(lk.space.full_support - {g}).log_likelihood for lk in (one, other)]
        assert 2 * pair[0] == pytest.approx(2 * pair[1], abs=1e-6)
        assert one.degrees_of_freedom(boltzmann.full_support - {g}) == other.degrees_of_freedom(
            boltzmann.full_support - {g}
        )


def test_firth_maximises_the_penalised_likelihood():
    space, data = some_choices(6, 60)
    likelihood = likelihood_of(space, data, firth=True)

    def penalised(theta):
        information = space.fisher(theta, data.features) * data.num_rows
        return log_likelihood(space, data, theta) + 0.5 * np.linalg.slogdet(information)[1]

    best, theta = likelihood.full.log_likelihood, likelihood.full.theta
    assert best == pytest.approx(penalised(theta), abs=1e-8)
    rng = np.random.default_rng(0)
    for _ in range(40):
        assert penalised(theta + 1e-3 * rng.normal(size=len(theta)) * np.abs(theta)) < best


def test_weights_are_counts_and_equal_rows_are_merged():
    space, data = some_choices(4, 40)
    counts = np.random.default_rng(0).integers(1, 4, size=40)
    weighted = Sample(data.features, data.actions, data.names, data.action_names, weights=counts)
    copied = data.take(np.repeat(np.arange(40), counts))
    one, other = likelihood_of(space, weighted), likelihood_of(space, copied)
    assert one.full.log_likelihood == pytest.approx(other.full.log_likelihood, abs=1e-9)
    assert one.full.theta == pytest.approx(other.full.theta, abs=1e-6)


def test_separation_is_found_and_named():
    """A free seat, which one action has in half of the rows, is always taken; what is left depends on the cost."""
    rng = np.random.default_rng(0)
    cost, gumbel = rng.normal(size=(120, 3)), rng.gumbel(size=(120, 3))
    seat = np.eye(3)[rng.integers(3, size=120)] * (np.arange(120) % 2)[:, None]
    names = tuple(f"{x}_{a}" for x in ("cost", "seat") for a in "abc")
    codes = (np.where(seat > 0, 50.0, -cost) + gumbel).argmax(axis=1)
    data = Sample(np.hstack([cost, seat]), codes, names, ("a", "b", "c"))
    space = ChoiceLinear(names, data.action_names, {"cost": "cost_*", "seat": "seat_*"}, intercept=False)
    likelihood = likelihood_of(space, data)
    assert likelihood.full.separated and likelihood.diverging.tolist() == [False, True]
    # In the limit the rows with a seat say nothing, and the others are a likelihood of their own.
    rest = data.take(np.flatnonzero(seat.sum(axis=1) == 0))
    limit = likelihood_of(space, rest).full.log_likelihood
    assert likelihood.full.log_likelihood == pytest.approx(limit, abs=1e-5)
    answer = identify(data, policy=space)
    assert answer.test.name == "firth" and answer.support == ("cost", "seat")


def test_an_action_that_is_never_chosen_has_no_finite_constant():
    rng = np.random.default_rng(1)
    cost = rng.normal(size=(150, 3))
    names, actions = ("cost_a", "cost_b", "cost_c"), ("a", "b", "c")
    data = Sample(cost, (rng.gumbel(size=(150, 2)) - cost[:, :2]).argmax(axis=1), names, actions)
    spaces = [ChoiceLinear(names, actions, {"cost": "cost_*"}, intercept=both) for both in (True, False)]
    with_constants, without = (likelihood_of(space, data) for space in spaces)
    assert with_constants.diverging.tolist() == [True, True, False]  # both are measured from the action never chosen
    assert not without.full.separated and not without.diverging.any()


def test_what_is_the_same_for_all_actions_or_a_sum_of_others_is_not_counted():
    space, data = some_choices(8)
    columns = data.features.copy()
    columns[:, 5:9] = 7.0  # the time of every action
    columns[:, 9:13] = columns[:, 1:5]  # comfort is cost
    space = ChoiceLinear(data.names, data.action_names, {x: f"{x}_*" for x in ("cost", "time", "comfort")})
    likelihood = likelihood_of(space, Sample(columns, data.actions, data.names, data.action_names))
    assert not likelihood.identifiable
    degrees = {space.groups[g].name: likelihood.degrees_of_freedom(space.full_support - {g}) for g in space.tested}
    assert degrees["time"] == degrees["cost"] == degrees["comfort"] == 0 and degrees["age"] == 3
    with pytest.raises(InputError, match="collinear"):
        likelihood_of(space, Sample(columns, data.actions, data.names, data.action_names), firth=True)


def test_both_rules_on_travellers():
    table, features, policy = MODELS["travel"]()
    for rule in ("simplified", "combinatorial"):
        answer = identify(table, features=features, policy=policy, rule=rule, test="wilks")
        assert answer.selected == ("income", "wait", "vcost", "travel", "gcost")
