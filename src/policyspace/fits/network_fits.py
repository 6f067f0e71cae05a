"""The likelihood of a network: many starts, warm starts both ways, and fits that never contradict each other."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

import numpy as np

from policyspace.data.chunks import num_workers, single_threaded_blas
from policyspace.errors import InputError
from policyspace.fits.base import Fit, Likelihood
from policyspace.fits.law import ChiSquare
from policyspace.fits.levenberg import climb
from policyspace.fits.network_rows import BoltzmannRows, GaussianRows, Inputs, NetworkRows
from policyspace.fits.peaks import Best, Effort, PeakSearch
from policyspace.fits.shallow_rows import ShallowRows
from policyspace.policies.base import Policy
from policyspace.policies.groups import Support
from policyspace.policies.network import BoltzmannNetwork, GaussianNetwork, Network
from policyspace.progress import counted

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
        self.space, self.num_pairs, self.law = space, len(features), ChiSquare()
        self.total_weight = float(len(features) if weights is None else weights.sum())
        self.diverging = np.zeros(space.num_parameters, dtype=bool)
        self.inputs = Inputs.of(features, weights)
        self.rows: NetworkRows = rows_kind(space)(space, self.inputs.standardise(features), actions, weights)
        self._fixed = self.inputs.to_standardised(space, space.fixed)
        self._flat = np.zeros(space.num_parameters)  # the precision of no prior at all
        self._effort = effort  # for every support; by default a little more for the full one
        self._search = PeakSearch(self.rows, space, self._fixed, seed)
        self._peaks: dict[Support, Best] = {}
        self._first: dict[Support, np.ndarray] = {}
        self._given = [self.inputs.to_standardised(space, np.asarray(start)) for start in starts]
        start = np.where(space.free(frozenset()), self._search.random_start(np.random.default_rng(seed)), self._fixed)
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
                effort, warm = self._effort or Effort(12, 2, 150), self._neighbours(everything)
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
            self.fit_many([self.space.everything.difference(out) for out in absent])

    def penalised_policy(self, support: Support | None = None) -> Policy:
        """The most likely policy under a prior on the weights, biases free of it."""
        return Policy(self.space, self.ridge(self.space.everything if support is None else support, SPREAD))

    def bets(self, before: Sequence[Policy] = ()) -> list[Policy]:
        """One policy a prior, each learned on from its like of a smaller data set."""
        starts: list[np.ndarray | None] = [policy.theta for policy in before] or [None for _ in BETS]
        found = [self.ridge(self.space.everything, *pair) for pair in zip(BETS, starts, strict=True)]
        return [Policy(self.space, theta) for theta in found]

    def short_statistic(self, actions: np.ndarray, policy: Policy, support: Support) -> float | None:
        """λ_I by three climbs from this policy, the same for observed and simulated actions."""
        return self.nested_statistic(actions, policy.theta, support, SPREAD)

    def ridge(self, support: Support, spread: float, start: np.ndarray | None = None) -> np.ndarray:
        """The most likely θ inside Θ_I under a prior N(0, spread²) on the weights of standardised inputs.

        Output weights count in units of their action's spread. Reproducible where the maximum-likelihood fit is not.
        """
        precision = self.prior_precision(spread)
        starts = [] if start is None else [self.inputs.to_standardised(self.space, start)]
        with single_threaded_blas():
            best = self._search.highest(self._whole(support), Effort(2, 1, 60), starts, precision)
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
                    peak = climb(self.rows, beaten.peak.theta, self.space.free(support), self._flat)
                noise = own.noise + 2 * (peak.value - own.peak.value)
                self._peaks[support] = Best(peak, noise)

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
    if isinstance(space, BoltzmannNetwork):
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
        theta = NetworkLikelihood(space, x, a, None).ridge(space.everything, 1.0)
        residual = a - space.output(theta, x)
        covariance = residual.T @ residual / (len(a) - space.num_parameters / a.shape[1])
    return covariance
