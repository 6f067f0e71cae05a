"""The highest peak of a network's likelihood: random starts on some rows, a race of rough climbs, the best to the end."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from policyspace.fits.levenberg import TOLERANCE, Peak, climb
from policyspace.fits.network_rows import NetworkRows
from policyspace.policies.groups import Support
from policyspace.policies.network import Network

SAMPLE = 2000
"""Rows on which random starts are tried."""

GLANCE = 2.0
"""What a climb may leave undone, in log-likelihood, before the highest of them go on."""

CONTENDER = 5.0
"""How far below the highest, in log-likelihood, a rough climb may end and still be tried to the end."""


@dataclass(frozen=True)
class Effort:
    """How hard a maximum is sought: random starts on a sample of the rows, and how many of them on all rows."""

    num_starts: int = 8
    num_polished: int = 1
    max_steps: int = 100


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
        free = self.space.free(support)

        def go_on(start: np.ndarray, tolerance: float) -> Peak:
            return climb(self.rows, start, free, precision, tolerance, effort.max_steps)

        trials = self._random_peaks(support, effort, precision)
        starts = [*trials[: effort.num_polished], *(np.where(free, start, self.fixed) for start in warm)]
        rough = [go_on(start, GLANCE) for start in starts]
        top = max(peak.value for peak in rough)
        peaks = [go_on(peak.theta, TOLERANCE) if peak.value > top - CONTENDER else peak for peak in rough]
        best = max(peaks, key=lambda peak: peak.value)
        # How high would another search have come? The best random start that did not win says so, else a warm one.
        beaten = [peak.value for peak in peaks[: effort.num_polished] if peak is not best]
        beaten = beaten or [peak.value for peak in peaks if peak is not best]
        return Best(best, 2 * (best.value - max(beaten, default=best.value)))

    def _random_peaks(self, support: Support, effort: Effort, precision: np.ndarray) -> list[np.ndarray]:
        """Where random starts end on a sample of the rows, the most likely first; the better half climbs on."""
        free = self.space.free(support)
        rng = np.random.default_rng([self.seed, len(support), *sorted(support)])
        size = min(SAMPLE, len(self.rows))
        sample = self.rows.sample(np.sort(rng.choice(len(self.rows), size, replace=False)))
        share = precision * size / len(self.rows)
        starts = [np.where(free, self.random_start(rng), self.fixed) for _ in range(effort.num_starts)]
        first = sorted((climb(sample, start, free, share, 0.1, 10) for start in starts), key=lambda peak: -peak.value)
        kept = first[: max(-(-len(first) // 2), effort.num_polished)]
        last = sorted((climb(sample, peak.theta, free, share, 0.1, 20) for peak in kept), key=lambda peak: -peak.value)
        return [peak.theta for peak in last]

    def random_start(self, rng: np.random.Generator) -> np.ndarray:
        """Weights of variance 1/fan-in (twice that for relu), so that units start neither dead nor saturated."""
        theta = np.zeros(self.space.num_parameters)
        for weights, biases in self.space.layer_indices:
            gain = np.sqrt((2.0 if self.space.activation == "relu" else 1.0) / max(weights.shape[1], 1))
            theta[weights] = rng.normal(0.0, gain, weights.shape)
            theta[biases] = rng.normal(0.0, 0.3, biases.shape)
        return theta
