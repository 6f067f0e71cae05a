"""Choices among alternatives with attributes against the Boltzmann policy and xlogit: CPU time a row and entry."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.identification import ACTIONS, NAMES, SEED, problem
from benchmarks.table import Row, clock, show
from policyspace.data.rows import InMemoryRows
from policyspace.families.choice import ChoiceLinear
from policyspace.families.choice_likelihood import ChoiceLikelihood
from policyspace.families.softmax import SoftmaxLikelihood, SoftmaxLinear

NUM_ROWS = 100_000


def cpu(function: Callable[[], Any], repeats: int = 5) -> float:
    """The least CPU time of some runs."""
    return clock(function, repeats, time.process_time)[0]


def one_out(likelihood: Any) -> int:
    """The full fit and one test a group."""
    space = likelihood.space
    return len(likelihood.fit_many([space.full_support - {g} for g in space.tested]))


def attributes(num_rows: int) -> tuple[ChoiceLinear, np.ndarray, np.ndarray]:
    """Four alternatives with sixteen attributes, half of which the agent uses; one alternative is missing in places."""
    rng = np.random.default_rng(SEED)
    names = [f"{name}_{a}" for a in ACTIONS for name in NAMES]  # as tables are read
    features = rng.standard_normal((num_rows, len(names) + 1))
    features[:, -1] = rng.random(num_rows) < 0.8
    space = ChoiceLinear([*names, "there"], ACTIONS, {name: f"{name}_*" for name in NAMES}, {"b": "there"})
    theta = np.concatenate([np.zeros(3), 0.3 * rng.standard_normal(8), np.zeros(8)])
    return space, features, space.sample(rng, theta, features)


def xlogit_fit(space: ChoiceLinear, features: np.ndarray, actions: np.ndarray) -> float:
    """One fit by xlogit."""
    import xlogit

    n, k = len(features), len(ACTIONS)
    columns = features[:, :-1].reshape(n * k, -1)
    constants = np.tile(np.eye(k)[:, :-1], (n, 1))
    there = np.ones((n, k))
    there[:, 1] = features[:, -1]
    model = xlogit.MultinomialLogit()
    model.fit(
        np.hstack([constants, columns]), np.eye(k)[actions].ravel(), [f"v{j}" for j in range(k - 1 + len(NAMES))],
        np.tile(np.arange(k), n), np.repeat(np.arange(n), k), avail=there.ravel(), verbose=0,
    )  # fmt: skip
    return float(model.loglikelihood)


def rows() -> list[Row]:
    """The same policy both ways, then attributes."""
    features, actions = problem(NUM_ROWS)
    spaces = SoftmaxLinear(NAMES, ACTIONS), ChoiceLinear(NAMES, ACTIONS)
    plain = cpu(lambda: one_out(SoftmaxLikelihood(spaces[0], InMemoryRows(features, actions))))
    general = cpu(lambda: one_out(ChoiceLikelihood(spaces[1], features, actions, None)))
    space, columns, chosen = attributes(NUM_ROWS)
    shared = cpu(lambda: one_out(ChoiceLikelihood(space, columns, chosen, None)))
    entries = sum(len(terms.columns) for terms in space.terms)
    each = shared / entries / (plain / spaces[0].num_parameters)
    first = cpu(lambda: ChoiceLikelihood(space, columns, chosen, None).full)
    peer = cpu(lambda: xlogit_fit(space, columns, chosen), repeats=1)
    return [
        (f"Boltzmann, {NUM_ROWS:.0e} rows, {spaces[0].num_parameters} parameters, 16 tests", f"{plain:.2f} CPU-s", "—"),
        ("the same policy as ChoiceLinear", f"{general:.2f} CPU-s, {general / plain:.2f}×", "≈ 1×"),
        (f"16 shared attributes, {entries} entries of t(s, ·), 16 tests", f"{shared:.2f} CPU-s", "—"),
        ("  a row and entry, against Boltzmann a row and parameter", f"{each:.2f}×", "≈ 1×"),
        (
            "  a number of the data, against Boltzmann",
            f"{shared / columns.size / (plain / features.size):.2f}×",
            "≈ 1×",
        ),
        ("  the full fit alone, against xlogit", f"{peer / first:.0f}× ({peer:.2f} s / {first:.2f} s)", "—"),
    ]


def main() -> None:
    """Everything, in one run."""
    show("Choices among four alternatives", rows())


if __name__ == "__main__":
    main()
