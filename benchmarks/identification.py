"""Identification against statsmodels, scikit-learn and glum: restricted fits, all supports, memory, growth with n."""

import os
import resource
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from benchmarks.table import Row, clock, show
from policyspace.data.rows import InMemoryRows
from policyspace.families.gaussian import GaussianLikelihood, GaussianLinear
from policyspace.families.softmax import SoftmaxLikelihood, SoftmaxLinear
from policyspace.identification import identify
from policyspace.runtime import single_threaded_blas

NUM_FEATURES, ACTIONS, SEED = 16, "abcd", 0
NAMES = [f"x{j}" for j in range(NUM_FEATURES)]


def problem(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Sixteen normal features, half of which the agent uses; four actions."""
    rng = np.random.default_rng(SEED)
    features = rng.standard_normal((n, NUM_FEATURES))
    space = SoftmaxLinear(NAMES, ACTIONS)
    weights = np.zeros((3, NUM_FEATURES + 1))
    weights[:, 1:9] = 0.3 * rng.standard_normal((3, 8))
    return features, space.sample(rng, weights.ravel(), features)


def all_tests(features: np.ndarray, actions: np.ndarray) -> int:
    """The full fit, 48 tests of single parameters and 16 of whole features."""
    space = SoftmaxLinear(NAMES, ACTIONS, groups="parameter")
    likelihood = SoftmaxLikelihood(space, InMemoryRows(features, actions))
    of_feature = [{g for g in space.tested if space.groups[g].name.startswith(f"{name}[")} for name in NAMES]
    supports = [space.full_support - {g} for g in space.tested] + [space.full_support - out for out in of_feature]
    return len(likelihood.fit_many(supports))


def statsmodels_refit(features: np.ndarray, actions: np.ndarray) -> float:
    """One restricted fit by MNLogit: the model without the first feature."""
    import statsmodels.api as sm

    design = sm.add_constant(features[:, 1:])
    return float(sm.MNLogit(actions, design).fit(method="newton", disp=False).llf)


def sklearn_refit(features: np.ndarray, actions: np.ndarray) -> float:
    """One restricted fit by scikit-learn's L-BFGS."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=np.inf, tol=1e-6, max_iter=1000).fit(features[:, 1:], actions)
    return float(model.coef_.sum())


def boltzmann(n: int, wanted: int | None) -> list[Row]:
    """64 restricted fits (full fit and set-up included) against one refit of each peer."""
    features, actions = problem(n)
    ours, num_tests = clock(lambda: all_tests(features, actions), repeats=3 if n < 10**6 else 2)
    peer, _ = clock(lambda: statsmodels_refit(features, actions))
    other, _ = clock(lambda: sklearn_refit(features, actions))
    each = ours / num_tests
    goal = f"≥ {wanted}× statsmodels" if wanted else "—"
    return [
        (f"n = {n:.0e}: {num_tests} restricted fits, together", f"{ours:.2f} s", "—"),
        (
            "  one restricted fit, against statsmodels MNLogit",
            f"{peer / each:.0f}× ({peer:.2f} s / {each:.4f} s)",
            goal,
        ),
        ("  one restricted fit, against scikit-learn L-BFGS", f"{other / each:.0f}×", "—"),
    ]


def glum_refit(features: np.ndarray, actions: np.ndarray) -> float:
    """One restricted fit by glum, which knows two labels and no more."""
    from glum import GeneralizedLinearRegressor

    model = GeneralizedLinearRegressor(family="binomial", alpha=0).fit(features[:, 1:].copy(), actions.astype(float))
    return float(model.coef_.sum())


def public(n: int, wanted: int | None, actions: str = "abcde") -> list[Row]:
    """CPU time of `identify` itself, checks and report included: a test of every parameter, against one refit of each peer.

    All on one core: threads that share caches, or wait for each other, are no work. The wall clock, with all cores for
    both, is told beside it.
    """
    rng = np.random.default_rng(SEED)
    features, space = rng.standard_normal((n, NUM_FEATURES)), SoftmaxLinear(NAMES, actions)
    weights = np.zeros((len(actions) - 1, NUM_FEATURES + 1))
    weights[:, 1:9] = 0.3 * rng.standard_normal((len(actions) - 1, 8))
    codes = space.sample(rng, weights.ravel(), features)
    repeats = 3 if n < 10**6 else 2

    def times(function: Callable[[], Any]) -> tuple[float, float, Any]:
        with one_core():
            cpu, result = clock(function, repeats, time.process_time)
        return cpu, clock(function, repeats)[0], result

    took, wall, answer = times(lambda: identify(features, codes, features=NAMES, groups="parameter"))
    num_tests, rows = len(answer.groups), list[Row]()
    peers = {"MNLogit": statsmodels_refit, "scikit-learn": sklearn_refit, "glum": glum_refit}
    for name, refit in peers.items() if len(actions) == 2 else list(peers.items())[:2]:
        what = f"n = {n:.0e}: one of {num_tests} tests by `identify`, against {name}, CPU on one core"
        try:
            peer, peer_wall, _ = times(lambda refit=refit: refit(features, codes))
        except ImportError:
            rows.append((what, f"left out, as it is not installed: pip install {name}", "—"))
            continue
        cpu = f"{peer * num_tests / took:.0f}× ({peer:.2f} CPU-s / {took / num_tests:.4f} CPU-s)"
        by_clock = f"{peer_wall * num_tests / wall:.0f}× ({peer_wall:.2f} s / {wall / num_tests:.4f} s)"
        rows.append((what, cpu, f"≥ {wanted}×" if wanted and name == "MNLogit" else "—"))
        rows.append(("  the same by the wall clock, all cores for both", by_clock, "—"))
    return rows


@contextmanager
def one_core() -> Iterator[None]:
    """Pin the process to one of its cores, products of matrices on one thread."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        with single_threaded_blas():
            yield
    finally:
        os.sched_setaffinity(0, cores)


def memory(n: int = 10**6) -> list[Row]:
    """Peak of what is allocated beyond the data."""
    features, actions = problem(n)
    tracemalloc.start()
    all_tests(features, actions)
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return [(f"memory beyond the data at n = {n:.0e}", f"{peak:.0f} MB", "≤ 100 MB")]


def gaussian() -> list[Row]:
    """λ of all supports from the moment matrix."""
    rows: list[Row] = []
    for num_groups, wanted in ((20, "≤ 0.1 s"), (24, "≤ 1 GB")):
        rng = np.random.default_rng(SEED)
        features = rng.standard_normal((10_000, num_groups))
        actions = features[:, :3] @ np.array([[0.3], [0.1], [0.05]]) + rng.standard_normal((10_000, 1))
        space = GaussianLinear([f"x{j}" for j in range(num_groups)], covariance=1.0)
        likelihood = GaussianLikelihood(space, InMemoryRows(features, actions))
        took, _ = clock(lambda lik=likelihood, s=space: lik.statistics_of_all(list(s.tested)), repeats=3)
        tracemalloc.start()
        likelihood.statistics_of_all(list(space.tested))
        peak = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
        rows.append(
            (f"2^{num_groups} Gaussian supports, beyond the Gram matrix", f"{took:.3f} s, {peak:.0f} MB", wanted)
        )
    return rows


def growth() -> list[Row]:
    """Cost linear in n, and flat once equal rows are merged."""
    times = []
    for n in (100_000, 400_000):
        features, actions = problem(n)
        times.append(clock(lambda f=features, a=actions: all_tests(f, a), repeats=2)[0])
    flat = []
    for n in (100_000, 400_000):
        features, actions = problem(n)
        merged = np.tile(np.round(features[:600]), (n // 600 + 1, 1))[:n]
        likelihood = SoftmaxLikelihood(SoftmaxLinear(NAMES, ACTIONS), InMemoryRows(merged, actions))
        supports = [likelihood.space.full_support - {g} for g in likelihood.space.tested]
        flat.append(clock(lambda lik=likelihood, s=supports: lik.fit_many(s), repeats=3)[0])
    return [
        ("4× the rows, all different", f"{times[1] / times[0]:.1f}× the time", "≈ 4×"),
        ("4× the rows, 600 different ones (tests only)", f"{flat[1] / flat[0]:.1f}× the time", "≈ 1×"),
    ]


def start_up() -> list[Row]:
    """CPU seconds of `policyspace --help`, and of `policyspace identify` on 500 rows of a CSV."""
    with tempfile.TemporaryDirectory() as folder:
        features, actions = problem(500)
        table = np.column_stack([features[:, :3], actions])
        np.savetxt(log := f"{folder}/log.csv", table, delimiter=",", header="x0,x1,x2,action", comments="")
        commands = {"--help": 0.25, f"identify {log} --actions action": 0.8}
        return [
            (f"policyspace {words.split()[0]}", f"{_cpu_seconds(words.split()):.2f} CPU-s", f"≤ {wanted} CPU-s")
            for words, wanted in commands.items()
        ]


def _cpu_seconds(arguments: list[str]) -> float:
    """Of one command in a process of its own, the shortest of five."""
    best = float("inf")
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "policyspace", *arguments], capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best


def main() -> None:
    """Everything, in one run."""
    start = time.perf_counter()
    boltzmann(10**3, None)  # imports and first calls of the peers are not their speed
    show("Boltzmann, 16 features, 4 actions", [*boltzmann(10**4, None), *boltzmann(10**5, 40), *boltzmann(10**6, 80)])
    show("The same through `identify`", [*public(10**5, 60), *public(10**6, 100), *public(10**6, None, "ab")])
    show("Memory, supports, growth, start-up", [*memory(), *gaussian(), *growth(), *start_up()])
    print(f"({time.perf_counter() - start:.0f} s)")


if __name__ == "__main__":
    main()
