"""Counts of decisions by state: the state is the unit, and overdispersed counts are told from independent decisions."""

import numpy as np
import polars
import pytest
from scipy.stats import binom, chi2

from policyspace import InputError, Sample, identify


def counted(seed, states=30, shared=True, effect=0.0):
    """Decisions counted in some states; where they are `shared`, a state has a chance of its own."""
    rng = np.random.default_rng(seed)
    features = np.column_stack([rng.normal(size=(states, 2)), rng.integers(0, 2, states)])
    trials = rng.integers(5, 60, states)
    chance = 1 / (1 + np.exp(-effect * features[:, 0]))
    chance = rng.beta(10 * chance, 10 * (1 - chance)) if shared else chance
    return features, rng.binomial(trials, chance), trials


def rows_of(features, successes, trials):
    """Two rows a state, whose weights are the counts of the two labels."""
    counts = np.stack([successes, trials - successes], axis=1).ravel().astype(float)
    labels = np.tile([0, 1], len(features))
    return Sample(np.repeat(features, 2, axis=0), labels, ("a", "b", "c"), ("yes", "no"), weights=counts)


@pytest.mark.parametrize("shared", [True, False])
def test_no_feature_is_used_more_often_than_the_level_says(shared):
    wrong, runs = np.zeros(3), 60
    for seed in range(runs):
        answer = identify(rows_of(*counted(1000 + seed, shared=shared)))
        assert answer.test.name == "robust" and answer.clusters.kind == "states" and answer.clusters.count == 30
        wrong += [group.p_value <= 0.05 for group in answer.groups]
    assert (binom.sf(wrong - 1, runs, 0.06) > 1e-3).all()


def test_what_is_used_is_found():
    assert identify(rows_of(*counted(3, states=60, effect=1.0))).selected == ("a",)


def test_overdispersed_counts_of_few_states_have_no_guarantee():
    features, successes, trials = counted(5, states=12)
    answer = identify(rows_of(features, successes, trials), policy="boltzmann")
    assert answer.test.name != "robust" and answer.guarantee is None and "decisions in one state spread" in str(answer)
    found = next(one for one in answer.assumptions if one.name == "frequency weights")
    expected = trials / (1 + np.exp(-np.column_stack([np.ones(12), features]) @ np.array(answer.fit.parameters["yes"])))
    pearson = np.sum((successes - expected) ** 2 / (expected * (1 - expected / trials)))
    assert found.p_value == pytest.approx(chi2.sf(pearson, 12 - 4), rel=1e-6)
    features, successes, trials = counted(5, states=12, shared=False)
    assert identify(rows_of(features, successes, trials), policy="boltzmann").guarantee is not None


def test_overdispersed_poisson_counts_take_their_spread_from_the_rows():
    wrong, runs = np.zeros(2), 40
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        features = rng.normal(size=(150, 3))
        counts = rng.poisson(np.exp(0.5 + 0.8 * features[:, 0]) * rng.gamma(1, 1, 150))
        answer = identify(features, counts, policy="poisson")
        assert answer.test.name == "robust" and answer.guarantee is not None
        wrong += [group.p_value <= 0.05 for group in answer.groups[1:]]
    assert (binom.sf(wrong - 1, runs, 0.07) > 1e-3).all()
    assert identify(features, rng.poisson(np.exp(0.5 + 0.3 * features[:, 0])), policy="poisson").test.name == "wilks"


def test_trials_are_two_labels_and_their_counts(tmp_path):
    features, successes, trials = counted(7)
    frame = polars.DataFrame(features, schema=["a", "b", "c"]).with_columns(
        polars.Series("hits", successes), polars.Series("of", trials), polars.Series("share", successes / trials)
    )
    wanted = identify(rows_of(features, successes, trials))
    found = identify(frame, "hits", features=["a", "b", "c"], trials="of")
    assert [group.p_value for group in found.groups] == pytest.approx([g.p_value for g in wanted.groups], rel=1e-6)
    assert found.data.actions == ("hits", "not hits")
    shares = identify(frame, "share", features=["a", "b", "c"], trials="of")
    assert [group.p_value for group in shares.groups] == pytest.approx([g.p_value for g in wanted.groups], rel=1e-6)
    frame.write_csv(tmp_path / "trials.csv")
    assert identify(tmp_path / "trials.csv", "hits", features=["a", "b", "c"], trials="of").selected == found.selected
    for bad, words in (({"of": 0}, "at least 1"), ({"hits": 100}, "between 0 and")):
        with pytest.raises(InputError, match=words):
            identify(
                frame.with_columns(**{k: polars.lit(v) for k, v in bad.items()}), "hits", features=["a"], trials="of"
            )
    with pytest.raises(InputError, match="weights"):
        identify(frame, "hits", features=["a"], trials="of", weights="of")
