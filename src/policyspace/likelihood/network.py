"""The likelihood of a network: many starts, warm starts both ways, and fits that never contradict each other."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from policyspace.errors import InputError
from policyspace.likelihood.base import Fit, Likelihood
from policyspace.likelihood.chunks import num_workers, single_threaded_blas
from policyspace.likelihood.law import ChiSquare
from policyspace.likelihood.levenberg import TOLERANCE, Peak, climb
from policyspace.likelihood.network_rows import BoltzmannRows, GaussianRows, Inputs, NetworkRows
from policyspace.likelihood.shallow_rows import ShallowRows
from policyspace.policies.groups import Support
from policyspace.policies.neural import BoltzmannNetwork, GaussianNetwork, Network

SAMPLE = 2000
"""Rows on which random starts are tried."""

ROUGHLY = 0.5
"""What a first climb may leave undone, in log-likelihood: far less than what it is compared with."""

GLANCE = 2.0
"""The same for the climbs of a search before the highest of them go on."""

CONTENDER = 5.0
"""How far below the highest, in log-likelihood, a rough climb may end and still be tried to the end."""

TOGETHER = 6
"""Groups whose 2^D supports are all fitted at once, so that each fit can help every other."""


@dataclass(frozen=True)
class Effort:
    """How hard a maximum is sought: random starts on a sample of the rows, and how many of them on all rows."""

    num_starts: int = 8
    num_polished: int = 1
    max_steps: int = 100


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
        self.space, self.num_pairs, self.law = space, len(features), ChiSquare()
        self.total_weight = float(len(features) if weights is None else weights.sum())
        self.diverging = np.zeros(space.num_parameters, dtype=bool)
        self.inputs = Inputs.of(features, weights)
        self.rows: NetworkRows = rows_kind(space)(space, self.inputs.standardise(features), actions, weights)
        self._fixed = self.inputs.to_standardised(space, space.fixed)
        self._flat = np.zeros(space.num_parameters)  # the precision of no prior at all
        self._effort = effort  # for every support; by default a little more for the full one
        self._seed, self._peaks = seed, {}  # type: int, dict[Support, _Best]
        self._first: dict[Support, np.ndarray] = {}
        self._given = [self.inputs.to_standardised(space, np.asarray(start)) for start in starts]
        start = np.where(space.free(frozenset()), self._random_start(np.random.default_rng(seed)), self._fixed)
        if not np.isfinite(self.rows.at(start, np.zeros(len(start), dtype=bool), self._flat).value):
            raise InputError(
                "the network's output is not finite on these features: look for values of enormous size, or rescale them."
            )

    @property
    def full(self) -> Fit:  # type: ignore[override]
        """The fit in all of Θ, made when it is first asked for; some tests never do."""
        everything = self.space.everything
        if everything not in self._peaks:
            with single_threaded_blas():
                self._peaks[everything] = self._search(
                    everything, self._effort or Effort(12, 2, 150), self._neighbours(everything)
                )
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
            self.fit_many([self.space.everything.difference(out) for out in absent])

    def regularised(self, support: Support, spread: float, start: np.ndarray | None = None) -> np.ndarray:
        """The most likely θ inside Θ_I under a prior N(0, spread²) on the weights of standardised inputs.

        Output weights count in units of their action's spread. Reproducible where the maximum-likelihood fit is not.
        """
        precision = self.prior_precision(spread)
        starts = [] if start is None else [self.inputs.to_standardised(self.space, start)]
        with single_threaded_blas():
            best = self._search(self._whole(support), Effort(2, 1, 60), starts, precision)
        return self._raw(best.peak.theta, self.space.free(support))

    def first_climb(self, support: Support, start: np.ndarray) -> float:
        """log L after one climb inside Θ_I: no search, but sup_{Θ_I} log L is at least that; later searches go on there."""
        free, whole = self.space.free(support), self._whole(support)
        theta = np.where(free, self.inputs.to_standardised(self.space, start), self._fixed)
        with single_threaded_blas():
            peak = climb(self.rows, theta, free, self._flat, ROUGHLY, Effort().max_steps)
        self._first[whole] = peak.theta
        return peak.value

    def prior_precision(self, spread: float) -> np.ndarray:
        """1/spread² for weights, zero for biases [d]."""
        precision = np.zeros(self.space.num_parameters)
        for where, _ in self.space.layer_indices:
            precision[where] = spread**-2
        if isinstance(self.rows, GaussianRows):
            where = self.space.layer_indices[-1][0]
            deviation = np.maximum(self.rows.actions.std(axis=0), np.finfo(float).tiny)
            precision[where] = (spread * deviation[:, None]) ** -2.0
        return precision

    def nested_statistic(self, actions: np.ndarray, start: np.ndarray, support: Support, spread: float) -> float:
        """λ_I of any actions on these states by one short protocol, the same for observed and for simulated ones.

        From `start` inside Θ_I under the prior, on without it, on in the whole space: three climbs, no random starts.
        """
        free, everything = self.space.free(support), np.ones(self.space.num_parameters, dtype=bool)
        rows = type(self.rows)(self.space, self.rows.x, actions, self.rows.weights)
        theta = np.where(free, self.inputs.to_standardised(self.space, start), self._fixed)
        with single_threaded_blas():
            theta = climb(rows, theta, free, self.prior_precision(spread), max_steps=30).theta
            restricted = climb(rows, theta, free, self._flat, max_steps=40)
            full = climb(rows, restricted.theta, everything, self._flat, max_steps=40)
        return 2 * (full.value - restricted.value)

    def _fit_level(self, supports: Iterable[Support], starts: Sequence[np.ndarray] = ()) -> None:
        """Several supports side by side; what each starts from was known before the first of them."""
        jobs = [(support, [*self._neighbours(support), *starts, *self._given]) for support in supports]
        with single_threaded_blas(), ThreadPoolExecutor(num_workers()) as pool:
            found = list(pool.map(lambda job: self._search(job[0], self._effort or Effort(), job[1]), jobs))
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

    def _search(
        self, support: Support, effort: Effort, warm: Sequence[np.ndarray], precision: np.ndarray | None = None
    ) -> "_Best":
        """Random starts on a sample, the best of them and the warm ones on all rows; keeps the highest peak.

        All climb roughly at first, and only those that are then near the highest go on to the end.
        """
        precision = self._flat if precision is None else precision
        free = self.space.free(support)

        def go_on(start: np.ndarray, tolerance: float) -> Peak:
            return climb(self.rows, start, free, precision, tolerance, effort.max_steps)

        trials = self._random_peaks(support, effort, precision)
        starts = [*trials[: effort.num_polished], *(np.where(free, start, self._fixed) for start in warm)]
        rough = [go_on(start, GLANCE) for start in starts]
        top = max(peak.value for peak in rough)
        peaks = [go_on(peak.theta, TOLERANCE) if peak.value > top - CONTENDER else peak for peak in rough]
        best = max(peaks, key=lambda peak: peak.value)
        # How high would another search have come? The best random start that did not win says so, else a warm one.
        beaten = [peak.value for peak in peaks[: effort.num_polished] if peak is not best]
        beaten = beaten or [peak.value for peak in peaks if peak is not best]
        return _Best(best, 2 * (best.value - max(beaten, default=best.value)))

    def _random_peaks(self, support: Support, effort: Effort, precision: np.ndarray) -> list[np.ndarray]:
        """Where random starts end on a sample of the rows, the most likely first; the better half climbs on."""
        free = self.space.free(support)
        rng = np.random.default_rng([self._seed, len(support), *sorted(support)])
        size = min(SAMPLE, len(self.rows))
        sample = self.rows.sample(np.sort(rng.choice(len(self.rows), size, replace=False)))
        share = precision * size / len(self.rows)
        starts = [np.where(free, self._random_start(rng), self._fixed) for _ in range(effort.num_starts)]
        first = sorted((climb(sample, start, free, share, 0.1, 10) for start in starts), key=lambda peak: -peak.value)
        kept = first[: max(-(-len(first) // 2), effort.num_polished)]
        last = sorted((climb(sample, peak.theta, free, share, 0.1, 20) for peak in kept), key=lambda peak: -peak.value)
        return [peak.theta for peak in last]

    def _random_start(self, rng: np.random.Generator) -> np.ndarray:
        """Weights of variance 1/fan-in (twice that for relu), so that units start neither dead nor saturated."""
        theta = np.zeros(self.space.num_parameters)
        for weights, biases in self.space.layer_indices:
            gain = np.sqrt((2.0 if self.space.activation == "relu" else 1.0) / max(weights.shape[1], 1))
            theta[weights] = rng.normal(0.0, gain, weights.shape)
            theta[biases] = rng.normal(0.0, 0.3, biases.shape)
        return theta

    def _close(self) -> None:
        """Refit, small ones first, every support that one of its subsets beats: then λ is monotone, and never negative."""
        for support in sorted(self._peaks, key=lambda s: (len(s), sorted(s))):
            below = [s for s in self._peaks if s < support]
            best = max(below, key=lambda s: self._peaks[s].peak.value, default=support)
            own, beaten = self._peaks[support], self._peaks[best]
            if beaten.peak.value > own.peak.value:
                with single_threaded_blas():
                    peak = climb(self.rows, beaten.peak.theta, self.space.free(support), self._flat)
                noise = own.noise + 2 * (peak.value - own.peak.value)
                self._peaks[support] = _Best(peak, noise)

    def adopt(self, restricted: Fit) -> None:
        """Nothing is left to do: a fit never beats the full one, which was started from it."""

    def _whole(self, support: Support) -> Support:
        """The support with the groups that are always controlled, so that one support has one name."""
        return support | {i for i, group in enumerate(self.space.groups) if group.always}

    def _as_fit(self, support: Support) -> Fit:
        best = self._peaks[self._whole(support)]
        theta = self._raw(best.peak.theta, self.space.free(support))
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
        return int(self.space.free(support).sum())

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
    if isinstance(space, BoltzmannNetwork):
        return BoltzmannRows
    return ShallowRows if len(space.hidden) == 1 else GaussianRows


@dataclass(frozen=True)
class _Best:
    """The highest peak of a support, and the restart noise: how much lower, in λ, the next independent climb ended.

    A climb that was given up roughly, more than `CONTENDER` below, counts as it stood: such noise is an upper bound.
    """

    peak: Peak
    noise: float


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
        theta = NetworkLikelihood(space, x, a, None).regularised(space.everything, 1.0)
        residual = a - space.mean(theta, x)
        covariance = residual.T @ residual / (len(a) - space.num_parameters / a.shape[1])
    return covariance
