"""What a fitted policy leaves of the actions, row by row."""

from dataclasses import dataclass, replace

import numpy as np

from policyspace.data.demonstrations import Demonstrations
from policyspace.fits.base import Likelihood

CERTAIN = 1e-2
"""Standardised residuals below which a fit counts as perfect in a row: one of labels has a chance of 1e-4 to be wrong."""


@dataclass(frozen=True)
class Residuals:
    """What the fitted policy leaves of the actions, row by row, divided by the noise that it assumes."""

    features: np.ndarray  # [n, q], standardised
    fitted: np.ndarray  # [n, k], the expected action, standardised
    values: np.ndarray  # [n, k]
    episodes: np.ndarray  # [n], one label where the data name none
    clusters: np.ndarray | None  # [n], subjects, or episodes, where the data name any
    dispersion: float  # mean square of the values: 1 where the assumed noise is right
    noise_is_given: bool
    discrete: bool
    actions: np.ndarray  # [n, k], those that were taken

    def uncertain(self) -> "Residuals":
        """Those of the rows, and of the labels, of which the fit leaves something to chance."""
        open_ = np.abs(self.values) > CERTAIN
        kept, labels = open_.any(axis=1), open_.any(axis=0)
        same = {name: getattr(self, name)[kept] for name in ("features", "fitted", "episodes", "actions")}
        clusters = None if self.clusters is None else self.clusters[kept]
        return replace(self, values=self.values[kept][:, labels], clusters=clusters, **same)


def residuals_of(likelihood: Likelihood, data: Demonstrations, rows: np.ndarray) -> Residuals | None:
    """Those of some rows, sorted by episode; None where the policy cannot say what it expects."""
    features, space = data.features[rows], likelihood.space
    expected = space.expected_action(likelihood.full.theta, features)
    if expected is None:
        return None
    if space.discrete:
        seen = (data.actions[rows][:, None] == np.arange(expected.shape[1])) * 1.0
        scale = np.sqrt(np.maximum(expected * (1 - expected), 1e-4))
    else:
        seen = data.actions[rows]
        scale = np.sqrt(np.maximum(((seen - expected) ** 2).mean(axis=0), np.finfo(float).tiny))
    given = not space.discrete and not getattr(space, "estimated", False)
    values = (seen - expected) / scale
    dispersion = float((values**2).mean())
    if given:
        assumed = np.diag(np.asarray(space.describe()["covariance"], dtype=np.float64).reshape(values.shape[1], -1))
        dispersion = float((((seen - expected) ** 2) / assumed).mean())
    episodes = np.zeros(len(rows), dtype=np.int64) if data.episodes is None else data.episodes[rows]
    order = np.argsort(episodes, kind="stable")
    clusters = data.episodes if data.subjects is None else data.subjects
    return Residuals(
        _standardised(features)[order], _standardised(expected)[order], values[order], episodes[order],
        None if clusters is None else clusters[rows][order], dispersion, given, data.discrete, seen[order],
    )  # fmt: skip


def _standardised(values: np.ndarray) -> np.ndarray:
    spread = values.std(axis=0)
    return np.clip((values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0), -4.0, 4.0)
