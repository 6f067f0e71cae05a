"""The likelihood of network policies: multi-start Levenberg-Marquardt fits."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from policyspace.errors import InputError
from policyspace.families.base import Policy, Support
from policyspace.families.likelihood import ChiSquare, Fit, Likelihood
from policyspace.families.network import GaussianNetwork, Network
from policyspace.families.network_sums import (
    TINY,
    BoltzmannRows,
    GaussianRows,
    NetworkInputs,
    NetworkRows,
    ShallowRows,
    solve_scaled,
)
from policyspace.runtime import counted, num_workers, single_threaded_blas

# -- Levenberg–Marquardt on the free coordinates of a network's log-likelihood.

TOLERANCE = 0.02
"""A climb ends when it gains less log-likelihood than this in `PATIENCE` steps: far less than restarts differ by."""

PATIENCE = 4

LOOK_BACK = 10
"""Steps of L-BFGS, which are shorter, in which it gains as little."""


@dataclass(frozen=True)
class Peak:
    """Where a climb ended."""

    theta: np.ndarray  # standardised
    value: float
    gradient_norm: float
    converged: bool
    num_steps: int


def levenberg_marquardt(
    rows: NetworkRows,
    theta: np.ndarray,
    free: np.ndarray,
    precision: np.ndarray,
    tolerance: float = TOLERANCE,
    max_steps: int = 200,
) -> Peak:
    """argmax log L(θ) − ½ θᵀdiag(precision)θ over the free coordinates, from θ on.

    (JᵀCJ + P + μD) step = ∇, D scaled as the diagonal. Output weights that are solved exactly at every point are not
    damped, so that the step of the others is that of variable projection (Kaufman's). μ follows the gain ratio.
    """
    damped = np.ones(len(free), dtype=bool)
    if rows.solves_output:
        damped[rows.last] = False
    damped = damped[free]
    point = rows.at(theta, free, precision)
    damping, growth = 1e-2, 2.0
    gains: list[float] = []
    scale = np.zeros(int(free.sum()))
    gradient = np.zeros_like(scale)
    stuck = False
    while len(gains) < max_steps and not stuck:
        gradient, gram = rows.system(point, free, steering=True)
        gradient = gradient - (precision * point.theta)[free]
        diagonal = gram.diagonal() + precision[free]
        # Never below the largest seen: a unit that saturates must not run away.
        scale = np.maximum(scale, diagonal)
        damped_scale = np.where(damped, np.maximum(scale, 1e-8 * scale.max(initial=0.0)), 0.0)
        stuck = True
        for _ in range(12):
            gram.flat[:: len(gram) + 1] = diagonal + damping * damped_scale
            step = solve_scaled(gram, gradient, 1e-12)
            trial = point.theta.copy()
            trial[free] += step
            proposal = rows.at(trial, free, precision)
            gain = proposal.value - point.value
            # The model without the damping: step @ gradient − ½ step @ gram @ step, as the step solves the damped system.
            promised = 0.5 * float(step @ (gradient + damping * damped_scale * step))
            if gain > 0 and np.isfinite(proposal.value):
                ratio = gain / max(promised, TINY)
                damping *= max(1 / 3, 1 - (2 * min(ratio, 2.0) - 1) ** 3)
                damping, growth, stuck = max(damping, 1e-12), 2.0, False
                point = proposal
                gains.append(gain)
                break
            if promised < tolerance / PATIENCE:
                break
            damping *= growth
            growth *= 2
        if len(gains) >= PATIENCE and sum(gains[-PATIENCE:]) < tolerance:
            break
    norm = float(np.abs(gradient).max(initial=0.0))
    return Peak(point.theta, point.value, norm, len(gains) < max_steps, len(gains))


def quasi_newton(
    rows: NetworkRows, theta: np.ndarray, free: np.ndarray, precision: np.ndarray, max_steps: int = 500
) -> Peak:
    """The same maximum by L-BFGS from θ on: all free weights move, and the only curvature is that of its own steps.

    Where actions are all but certain, the Fisher information vanishes, and the steps of Fisher scoring creep.
    """
    from scipy.optimize import OptimizeResult, minimize

    nothing = np.zeros(len(free), dtype=bool)  # no output weights are moved to their best

    def loss(some: np.ndarray) -> tuple[float, np.ndarray]:
        whole = theta.copy()
        whole[free] = some
        point = rows.at(whole, nothing, precision)
        return -point.value, (precision * whole)[free] - rows.gradient(point, free)

    losses: list[float] = []

    def stop(intermediate_result: OptimizeResult) -> None:
        losses.append(intermediate_result.fun)
        if len(losses) > LOOK_BACK and losses[-LOOK_BACK - 1] - losses[-1] < TOLERANCE:
            raise StopIteration

    options = {"maxiter": max_steps, "maxcor": 20, "ftol": 0.0}
    found = minimize(loss, theta[free], jac=True, method="L-BFGS-B", callback=stop, options=options)
    best = theta.copy()
    best[free] = found.x
    return Peak(best, -float(found.fun), float(np.abs(found.jac).max(initial=0.0)), found.nit < max_steps, found.nit)


# -- The highest peak of a network's likelihood: random starts on some rows, a race of rough climbs, the best to the end.

SAMPLE = 2000
"""Rows on which random starts are tried."""

GLANCE = 2.0
"""What a climb may leave undone, in log-likelihood, before the highest of them go on."""

CONTENDER = 5.0
"""How far below the highest, in log-likelihood, a rough climb may end and still be tried to the end."""


@dataclass(frozen=True)
class Effort:
    """How hard a maximum is sought: random starts on a sample of the rows, and how many of them on all rows.

    Beside these, some random starts are taken to the end by L-BFGS on the sample, whatever the others find.
    """

    num_starts: int = 8
    num_polished: int = 1
    max_steps: int = 100
    num_descents: int = 1


@dataclass(frozen=True)
class Best:
    """The highest peak of a support, and the restart noise: how much lower, in λ, the next independent climb ended.

    A climb that was given up roughly, more than `CONTENDER` below, counts as it stood: such noise is an upper bound.
    """

    peak: Peak
    noise: float


@dataclass(frozen=True)
class PeakSearch:
    """Searches inside any Θ_I; the same seed finds the same peaks, in whatever order they are sought."""

    rows: NetworkRows
    space: Network
    fixed: np.ndarray  # [d], standardised
    seed: int

    def highest(self, support: Support, effort: Effort, warm: Sequence[np.ndarray], precision: np.ndarray) -> Best:
        """The best random starts and the warm ones on all rows, and the highest peak of them.

        All climb roughly at first, and only those that are then near the highest go on to the end.
        """
        free = self.space.free_mask(support)

        def go_on(start: np.ndarray, tolerance: float) -> Peak:
            return levenberg_marquardt(self.rows, start, free, precision, tolerance, effort.max_steps)

        def finish(peak: Peak) -> Peak:
            return (
                go_on(peak.theta, TOLERANCE)
                if self.rows.solves_output
                else quasi_newton(self.rows, peak.theta, free, precision)
            )

        random = self._random_peaks(free, support, effort, precision)
        rough = [go_on(start, GLANCE) for start in (*random, *(np.where(free, start, self.fixed) for start in warm))]
        top = max(peak.value for peak in rough)
        peaks = [finish(peak) if peak.value > top - CONTENDER else peak for peak in rough]
        best = max(peaks, key=lambda peak: peak.value)
        # How high would another search have come? The best random start that did not win says so, else a warm one.
        beaten = [peak.value for peak in peaks[: len(random)] if peak is not best]
        beaten = beaten or [peak.value for peak in peaks if peak is not best]
        return Best(best, 2 * (best.value - max(beaten, default=best.value)))

    def _random_peaks(
        self, free: np.ndarray, support: Support, effort: Effort, precision: np.ndarray
    ) -> list[np.ndarray]:
        """Where the best random starts end on a sample of the rows, the most likely first, then those of L-BFGS."""
        rng = np.random.default_rng([self.seed, len(support), *sorted(support)])
        size = min(SAMPLE, len(self.rows))
        sample = self.rows.sample(np.sort(rng.choice(len(self.rows), size, replace=False)))
        share = precision * size / len(self.rows)

        def random_starts(number: int) -> list[np.ndarray]:
            return [np.where(free, self.random_start(rng), self.fixed) for _ in range(number)]

        def best_climbs(starts: list[np.ndarray], kept: int, max_steps: int) -> list[np.ndarray]:
            peaks = [levenberg_marquardt(sample, start, free, share, 0.1, max_steps) for start in starts]
            return [peak.theta for peak in sorted(peaks, key=lambda peak: -peak.value)[:kept]]

        better_half = max(-(-effort.num_starts // 2), effort.num_polished)
        climbed = best_climbs(random_starts(effort.num_starts), better_half, 10)
        descended = [quasi_newton(sample, start, free, share).theta for start in random_starts(effort.num_descents)]
        return [*best_climbs(climbed, effort.num_polished, 20), *descended]

    def random_start(self, rng: np.random.Generator) -> np.ndarray:
        """Weights of variance 1/fan-in (twice that for relu), so that units start neither dead nor saturated."""
        theta = np.zeros(self.space.num_parameters)
        for weights, biases in self.space.layer_indices:
            gain = np.sqrt((2.0 if self.space.activation == "relu" else 1.0) / max(weights.shape[1], 1))
            theta[weights] = rng.normal(0.0, gain, weights.shape)
            theta[biases] = rng.normal(0.0, 0.3, biases.shape)
        return theta


# -- The likelihood of a network: many starts, warm starts both ways, and fits that never contradict each other.

ROUGHLY = 0.5
"""What a first climb may leave undone, in log-likelihood: far less than what it is compared with."""

SPREAD = 0.25
"""The prior's standard deviation for the weights of a network, whose maximum-likelihood fit is not reproducible."""

BETS = (SPREAD, 1.0)
"""The spreads a bettor divides its wealth over: the first learns smooth agents best, the second sharp ones."""

TOGETHER = 6
"""Groups whose 2^D supports are all fitted at once, so that each fit can help every other."""


class NetworkLikelihood(Likelihood):
    """Maximum likelihood by variable projection inside Levenberg–Marquardt (Gaussian) or Fisher scoring (Boltzmann).

    The likelihood of a network has many peaks: a fit is the best peak found, never less likely than that of any subset
    fitted so far, and says by how much λ moves with other random starts.
    """

    space: Network

    def __init__(
        self,
        space: Network,
        features: np.ndarray,
        actions: np.ndarray,
        weights: np.ndarray | None,
        seed: int = 0,
        starts: Sequence[np.ndarray] = (),
        effort: Effort | None = None,
    ) -> None:
        if len(features) <= space.num_parameters:
            raise InputError(
                f"{len(features)} rows are too few for a network of {space.num_parameters} weights: collect more rows, "
                "or use fewer hidden units."
            )
        self.space, self.num_rows, self.law = space, len(features), ChiSquare()
        self.total_weight = float(len(features) if weights is None else weights.sum())
        self.diverging = np.zeros(space.num_parameters, dtype=bool)
        self.inputs = NetworkInputs.of(features, weights)
        self.rows: NetworkRows = rows_kind(space)(space, self.inputs.standardise(features), actions, weights)
        self._fixed = self.inputs.to_standardised(space, space.fixed)
        self._flat = np.zeros(space.num_parameters)  # the precision of no prior at all
        self._effort = effort  # for every support; by default a little more for the full one
        self._search = PeakSearch(self.rows, space, self._fixed, seed)
        self._peaks: dict[Support, Best] = {}
        self._first: dict[Support, np.ndarray] = {}
        self._given = [self.inputs.to_standardised(space, np.asarray(start)) for start in starts]
        start = np.where(
            space.free_mask(frozenset()), self._search.random_start(np.random.default_rng(seed)), self._fixed
        )
        if not np.isfinite(self.rows.at(start, np.zeros(len(start), dtype=bool), self._flat).value):
            raise InputError(
                "the network's output is not finite on these features: look for values of enormous size, or rescale them."
            )

    @property
    def full(self) -> Fit:  # type: ignore[override]
        """The fit in all of Θ, made when it is first asked for; some tests never do."""
        everything = self.space.full_support
        if everything not in self._peaks:
            with single_threaded_blas():
                effort, warm = self._effort or Effort(12, 2, 150, 6), self._neighbours(everything)
                self._peaks[everything] = self._search.highest(everything, effort, warm, self._flat)
            self._close()
        return self._as_fit(everything)

    # -- fits -----------------------------------------------------------------------------------------------------

    def fit(self, support: Support, start: np.ndarray | None = None) -> Fit:
        """The best peak inside Θ_I; a start is one more place to climb from."""
        if start is None:
            return self.fit_many([support])[0]
        self._fit_level([self._whole(support)], [self.inputs.to_standardised(self.space, start)])
        self._close()
        return self._as_fit(support)

    def fit_many(self, supports: Sequence[Support]) -> list[Fit]:
        """Large supports first, each started from its supersets too; at last every support from its better subsets."""
        wanted = {self._whole(support) for support in supports} - set(self._peaks)
        if len(wanted) > 1:
            _ = self.full  # the best place for the others to start from
        for size in sorted({len(support) for support in wanted}, reverse=True):
            self._fit_level(sorted((s for s in wanted if len(s) == size), key=sorted))
        if wanted:
            self._close()
        return [self._as_fit(support) for support in supports]

    def prepare(self, groups: Sequence[int]) -> None:
        """All supports at once, where they are few."""
        if len(groups) <= TOGETHER:
            absent = [[g for bit, g in enumerate(groups) if mask >> bit & 1] for mask in range(2 ** len(groups))]
            self.fit_many([self.space.full_support.difference(out) for out in absent])

    def penalised_policy(self, support: Support | None = None) -> Policy:
        """The most likely policy under a prior on the weights, biases free of it."""
        return self.shrunken_policy(self.space.full_support if support is None else support, SPREAD**-2)

    def shrunken_policy(self, support: Support, penalty: float | np.ndarray) -> Policy:
        """With one penalty for all weights, biases free of it."""
        return Policy(self.space, self.ridge(support, float(np.max(penalty) ** -0.5)))

    def prior_predictive_policies(self, before: Sequence[Policy] = ()) -> list[Policy]:
        """One policy a prior, each learned on from its like of a smaller data set."""
        starts: list[np.ndarray | None] = [policy.theta for policy in before] or [None for _ in BETS]
        found = [self.ridge(self.space.full_support, *pair) for pair in zip(BETS, starts, strict=True)]
        return [Policy(self.space, theta) for theta in found]

    def quick_statistic(self, actions: np.ndarray, policy: Policy, support: Support) -> float | None:
        """λ_I by three climbs from this policy, the same for observed and simulated actions."""
        return self.nested_statistic(actions, policy.theta, support, SPREAD)

    def ridge(self, support: Support, spread: float, start: np.ndarray | None = None) -> np.ndarray:
        """The most likely θ inside Θ_I under a prior N(0, spread²) on the weights of standardised inputs.

        Output weights count in units of their action's spread. Reproducible where the maximum-likelihood fit is not.
        """
        precision = self.prior_precision(spread)
        starts = [] if start is None else [self.inputs.to_standardised(self.space, start)]
        with single_threaded_blas():
            best = self._search.highest(self._whole(support), Effort(2, 1, 60, 0), starts, precision)
        return self._raw(best.peak.theta, self.space.free_mask(support))

    def approximate_max(self, support: Support, start: np.ndarray) -> float:
        """log L after one climb inside Θ_I: no search, but sup_{Θ_I} log L is at least that; later searches go on there."""
        free, whole = self.space.free_mask(support), self._whole(support)
        theta = np.where(free, self.inputs.to_standardised(self.space, start), self._fixed)
        with single_threaded_blas():
            peak = levenberg_marquardt(self.rows, theta, free, self._flat, ROUGHLY, Effort().max_steps)
        self._first[whole] = peak.theta
        return peak.value

    def prior_precision(self, spread: float) -> np.ndarray:
        """1/spread² for weights, zero for biases [d]."""
        precision = np.zeros(self.space.num_parameters)
        for where, _ in self.space.layer_indices:
            precision[where] = spread**-2
        if self.rows.solves_output:
            where = self.space.layer_indices[-1][0]
            deviation = np.maximum(self.rows.actions.std(axis=0), np.finfo(float).tiny)
            precision[where] = (spread * deviation[:, None]) ** -2.0
        return precision

    def nested_statistic(self, actions: np.ndarray, start: np.ndarray, support: Support, spread: float) -> float:
        """λ_I of any actions on these states by one short protocol, the same for observed and for simulated ones.

        From `start` inside Θ_I under the prior, on without it, on in the whole space: three climbs, no random starts.
        """
        free, everything = self.space.free_mask(support), np.ones(self.space.num_parameters, dtype=bool)
        rows = type(self.rows)(self.space, self.rows.x, actions, self.rows.weights)
        theta = np.where(free, self.inputs.to_standardised(self.space, start), self._fixed)
        with single_threaded_blas():
            theta = levenberg_marquardt(rows, theta, free, self.prior_precision(spread), max_steps=30).theta
            restricted = levenberg_marquardt(rows, theta, free, self._flat, max_steps=40)
            full = levenberg_marquardt(rows, restricted.theta, everything, self._flat, max_steps=40)
        return 2 * (full.value - restricted.value)

    def _fit_level(self, supports: Iterable[Support], starts: Sequence[np.ndarray] = ()) -> None:
        """Several supports side by side; what each starts from was known before the first of them."""
        jobs = [(support, [*self._neighbours(support), *starts, *self._given]) for support in supports]
        effort = self._effort or Effort()
        with single_threaded_blas(), ThreadPoolExecutor(num_workers()) as pool:
            results = pool.map(lambda job: self._search.highest(job[0], effort, job[1], self._flat), jobs)
            found = [next(results) for _ in counted(jobs, "fitting networks")]
        for (support, _), best in zip(jobs, found, strict=True):
            known = self._peaks.get(support)
            self._peaks[support] = best if known is None or best.peak.value > known.peak.value else known

    def _neighbours(self, support: Support) -> list[np.ndarray]:
        """What is known of a support, the nearest fits above (their surplus groups are then fixed), the best below."""
        above = [s for s in self._peaks if support < s]
        nearest = min((len(s) for s in above), default=0)
        above = [s for s in above if len(s) == nearest]
        below = [s for s in self._peaks if s <= support]
        chosen = [max(family, key=lambda s: self._peaks[s].peak.value) for family in (above, below) if family]
        first = [self._first[support]] if support in self._first else []
        return [*first, *(self._peaks[s].peak.theta for s in chosen)]

    def _close(self) -> None:
        """Refit, small ones first, every support that one of its subsets beats: then λ is monotone, and never negative."""
        for support in sorted(self._peaks, key=lambda s: (len(s), sorted(s))):
            below = [s for s in self._peaks if s < support]
            best = max(below, key=lambda s: self._peaks[s].peak.value, default=support)
            own, beaten = self._peaks[support], self._peaks[best]
            if beaten.peak.value > own.peak.value:
                with single_threaded_blas():
                    peak = levenberg_marquardt(self.rows, beaten.peak.theta, self.space.free_mask(support), self._flat)
                noise = own.noise + 2 * (peak.value - own.peak.value)
                self._peaks[support] = Best(peak, noise)

    def replace_full_fit_if_better(self, restricted: Fit) -> None:
        """Nothing is left to do: a fit never beats the full one, which was started from it."""

    def _whole(self, support: Support) -> Support:
        """The support with the groups that are assumed, so that one support has one name."""
        return support | {i for i, group in enumerate(self.space.groups) if group.assumed}

    def _as_fit(self, support: Support) -> Fit:
        best = self._peaks[self._whole(support)]
        theta = self._raw(best.peak.theta, self.space.free_mask(support))
        return Fit(
            theta, support, best.peak.value, best.peak.gradient_norm, best.peak.converged, False,
            self.num_free(support), self.law, best.noise,
        )  # fmt: skip

    def _raw(self, theta: np.ndarray, free: np.ndarray) -> np.ndarray:
        # A coordinate that is not free keeps its fixed value to the bit.
        return np.where(free, self.inputs.to_raw(self.space, theta), self.space.fixed)

    # -- what the space is on these states ------------------------------------------------------------------------

    def num_free(self, support: Support) -> int:
        """The number of free weights, as if the network were identifiable."""
        return int(self.space.free_mask(support).sum())

    @property
    def identifiable(self) -> bool:
        """Never with hidden units: they can trade places, and one that nothing leaves may be anything."""
        return not self.space.hidden and self._full_rank

    @cached_property
    def _full_rank(self) -> bool:
        x = np.hstack([self.rows.x, np.ones((len(self.rows), 1))])
        return bool(np.linalg.matrix_rank(x) == x.shape[1])

    def information(self) -> np.ndarray:
        """F̂ = mean JᵀCJ at the full fit, J = ∂z/∂θ in raw coordinates and C the Fisher information of the output."""
        free, move = np.ones(self.space.num_parameters, dtype=bool), self._flat
        point = self.rows.at(self.inputs.to_standardised(self.space, self.full.theta), free, move)
        gram = self.rows.system(point, free)[1] / self.total_weight
        origin = self.inputs.to_standardised(self.space, move)
        jacobian = np.column_stack([self.inputs.to_standardised(self.space, e) - origin for e in np.eye(len(free))])
        return jacobian.T @ gram @ jacobian

    @property
    def num_fits(self) -> int:
        """The supports that were searched so far."""
        return len(self._peaks)

    @property
    def restart_noise(self) -> float:
        """By how much λ moves with other random starts, at worst over the fits made so far."""
        return max((best.noise for best in self._peaks.values()), default=0.0)

    def remarks(self) -> list[str]:
        """What a reader must know about these fits."""
        values = self.space.forward(self.inputs.to_standardised(self.space, self.full.theta), self.rows.x)
        dead = [
            f"{name}"
            for depth, value in enumerate(values[1:-1])
            for name, spread in zip(self._unit_names(depth, value.shape[1]), value.std(axis=0), strict=True)
            if spread < 1e-6
        ]
        found = [f"hidden {', '.join(dead)} never changed on these states (dead or saturated)."] if dead else []
        if self.restart_noise > 1.0:
            found.append(
                "the network's likelihood has many peaks: with other random starts λ moves by up to "
                f"{self.restart_noise:.1f}."
            )
        return found

    def _unit_names(self, depth: int, width: int) -> list[str]:
        return [f"unit_{depth}_{i}" if len(self.space.hidden) > 1 else f"unit_{i}" for i in range(width)]


def rows_kind(space: Network) -> type[NetworkRows]:
    """What sums over rows for a network."""
    if space.link == "logit":
        return BoltzmannRows
    return ShallowRows if len(space.hidden) == 1 else GaussianRows


def residual_covariance(
    features: Sequence[str], actions: Sequence[str], hidden: tuple[int, ...], x: np.ndarray, a: np.ndarray
) -> np.ndarray:
    """Σ̂ of what a network leaves unexplained, for a policy whose noise nobody knows; taken as known afterwards.

    One reweighting is enough: Σ only weighs the actions against each other.
    """
    covariance = np.cov(a, rowvar=False).reshape(a.shape[1], a.shape[1])
    for _ in range(2):
        if np.linalg.eigvalsh(covariance)[0] <= 1e-12 * np.trace(covariance) or not covariance.any():
            raise InputError(
                "the actions are a function of the features or of each other: no noise is left to estimate the "
                "covariance from, so give the covariance."
            )
        space = GaussianNetwork(features, actions, hidden, covariance)
        theta = NetworkLikelihood(space, x, a, None).ridge(space.full_support, 1.0)
        residual = a - space.output(theta, x)
        covariance = residual.T @ residual / (len(a) - space.num_parameters / a.shape[1])
    return covariance
