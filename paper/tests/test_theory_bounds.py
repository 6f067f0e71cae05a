"""Bounds against simulation: what is foretold against closed forms, and the panels on records with a known answer."""

import numpy as np
import pytest
from policyspace_paper import theory_bounds as theory
from policyspace_paper.execution import Record, RunSize
from scipy.stats import ncx2

from policyspace import theory as bounds
from policyspace.report import save


def test_cells_are_different_and_few_when_quick():
    cells = theory.EXPERIMENT.cells(RunSize())
    assert len({cell.key for cell in cells}) == len(cells) == 5 * 2 * (2 + 6)
    assert len(theory.EXPERIMENT.cells(RunSize(quick=True))) == 2 * (2 + 2)


def test_the_expectation_of_a_gaussian_agent_is_known():
    """ℓ(θ_i*) − ℓ(θ*) = θ_i² E x²/(2Σ), and E x² of 12 midpoints of [−1, 1] is (1 − 1/144)/3."""
    found = theory.expectation("gaussian")
    square = (1 - 1 / 144) / 3
    for name, weight in (("a", 0.5), ("b", -0.3)):
        assert found.gaps[name] == pytest.approx(weight**2 * square / (2 * theory.COVARIANCE))
    assert set(found.gaps) == {"a", "b"}


def test_the_expectation_of_a_boltzmann_agent_is_its_own_information():
    """2·KL(θ*‖Θ_i) is θ_iᵀ([F⁻¹]_ii)⁻¹θ_i to second order, F the Fisher information at θ*."""
    space, theta = theory.agent("boltzmann")
    middle = (np.arange(12) + 0.5) / 6 - 1
    states = np.stack(np.meshgrid(middle, middle, middle), axis=-1).reshape(-1, 3)
    inverse = np.linalg.inv(bounds.empirical_fisher(space, theta, states))
    for name, gap in theory.expectation("boltzmann").gaps.items():
        indices = list(next(g.indices for g in space.groups if g.name == name))
        quadratic = theta[indices] @ np.linalg.solve(inverse[np.ix_(indices, indices)], theta[indices])
        assert 2 * gap == pytest.approx(quadratic, rel=0.15)


def test_a_batch_of_concentration_never_exceeds_its_bound():
    setting = {"kind": "concentration", "family": "boltzmann", "num_pairs": 100, "significance": 0.1}
    shares = theory.run({**setting, "num_runs": 10, "seed": 0})["shares"]
    assert all(len(values) == 10 and min(values) >= 0 and max(values) < 1 for values in shares.values())


def test_a_batch_of_correctness_foretells_the_power_of_its_size():
    setting = {"kind": "correctness", "family": "gaussian", "factor": 0.5, "significance": 0.05}
    found = theory.run({**setting, "num_runs": 60, "seed": 1})
    gap, n = theory.expectation("gaussian").gaps["b"], found["num_pairs"]
    foretold = ncx2.sf(5.0238861873, 1, 2 * n * gap)  # the .975 quantile of χ²_1: half of δ for the one false group
    assert found["predicted"]["b"] == pytest.approx(foretold)
    assert abs(found["found"]["b"] / 60 - foretold) < 4 * np.sqrt(foretold * (1 - foretold) / 60)
    assert found["exact"] <= found["found"]["b"]
    assert found["planned_pairs"] < found["proven_pairs"] and found["wrong_when_proven"] <= 0.05


# -- analysis -----------------------------------------------------------------------------------------------------


def concentration(shares, seed=0):
    setting = {"kind": "concentration", "family": "gaussian", "num_pairs": 100, "significance": 0.1, "seed": seed}
    return Record("theory", setting, "0", 1.0, {"shares": dict.fromkeys(theory.QUANTITIES, shares)})


def correctness(factor, n, exact, found, wrong_when_proven=0.0, bound=22.0):
    setting = {"kind": "correctness", "family": "gaussian", "factor": factor, "significance": 0.05, "num_runs": 100}
    result = {
        "num_pairs": n, "exact": exact, "found": {"a": found, "c": 2}, "controlled": ["a"],
        "predicted": {"a": 0.9, "c": 0.025}, "bound": bound, "planned_pairs": 200.0, "proven_pairs": 1e6,
        "wrong_when_proven": wrong_when_proven,
    }  # fmt: skip
    return Record("theory", {**setting, "seed": 0}, "0", 1.0, result)


def test_looseness_is_the_inverse_of_the_quantile():
    values = np.linspace(0.001, 0.1, 100).tolist()
    first = theory.looseness([concentration(values[:50]), concentration(values[50:], seed=1)])[0]
    assert first.factor.value == pytest.approx(1 / np.quantile(values, 0.9))
    assert (first.broken.count, first.broken.num_runs) == (0, 100)


def test_bounds_that_are_broken_too_often_do_not_hold():
    good = theory.concentration_panel(theory.looseness([concentration([0.5] * 95 + [1.5] * 5)]))
    bad = theory.concentration_panel(theory.looseness([concentration([0.5] * 50 + [1.5] * 50)]))
    few = theory.concentration_panel(theory.looseness([concentration([0.5] * 99)]))
    assert (good.verdict, bad.verdict, few.verdict) == ("holds", "does not hold", "too few runs to say")


def test_the_seen_size_lies_between_two_simulated_ones():
    sizes = theory.sample_sizes([correctness(0.5, 100, 85, 85), correctness(2.0, 400, 100, 100)])
    # 0.15 → 0 between 100 and 400 pairs: 0.05 is two thirds of the way, in log n.
    assert theory.pairs_seen(sizes, 0.05) == pytest.approx(100 * 4 ** (2 / 3))
    assert theory.pairs_seen(sizes[:1], 0.05) is None
    assert theory.pairs_seen(sizes[1:], 0.05) == 400
    assert sizes[0].foretold == pytest.approx(1 - 0.9 * 0.975)


@pytest.mark.parametrize(
    ("change", "verdict"),
    [({}, "holds"), ({"wrong_when_proven": 0.2}, "does not hold"), ({"bound": 0.01}, "does not hold")],
)
def test_the_theorem_is_judged_where_it_speaks(change, verdict):
    panel = theory.sizes_panel(theory.sample_sizes([correctness(0.5, 100, 80, 85, **change)]))
    assert panel.verdict == verdict


def test_the_power_panel_counts_intervals_that_hold_the_foretold():
    panel = theory.power_panel(theory.sample_sizes([correctness(0.5, 100, 85, 90), correctness(1.0, 200, 50, 50)]))
    assert panel.numbers["inside"] == 3 and panel.numbers["of"] == 4  # 50 of 100 is not 0.9
    assert panel.numbers["largest difference"] == pytest.approx(0.4)


def test_panels_are_drawn_and_repeat_themselves(tmp_path):
    records = [concentration([0.1, 0.2, 0.3]), correctness(0.5, 100, 85, 85), correctness(2.0, 400, 100, 100)]
    names = [panel.name for panel in theory.analyse(records)]
    assert names == ["theory-concentration", "theory-sizes", "theory-power"]
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        for panel in theory.analyse(records):
            save(panel.figure, tmp_path / folder / f"{panel.name}.svg")
    for name in names:
        assert (tmp_path / "a" / f"{name}.svg").read_bytes() == (tmp_path / "b" / f"{name}.svg").read_bytes()
