"""The covariance of the statistics t(s, ·) of choices, added up over rows."""

import itertools

import numpy as np

from policyspace.fits.choice_columns import ChoiceColumns, Seen
from policyspace.fits.softmax import information


class Covariance:
    """Σ w_i E[t] [d] and Σ w_i Cov[t(s_i, ·)] [d, d], block of rows by block of rows.

    Attributes: Σ_b p_b z_b z_bᵀ − z̄ z̄ᵀ. The chooser's columns x have the Boltzmann policy's (diag p − p pᵀ) ⊗ x xᵀ, and
    with attributes x ⊗ p_a (z_a − z̄).
    """

    def __init__(self, columns: ChoiceColumns) -> None:
        self._columns, k, q, d = columns, columns.num_actions - 1, columns.own.width, columns.num_attributes
        self._own, self._own_mean = np.zeros((k * q, k * q)), np.zeros((k, q))
        self._mean, self._of_means, self._with_mean = np.zeros(d), np.zeros((d, d)), np.zeros((k, q, d))
        widths = [gathered.width for gathered in columns.attributes]
        self._squares = [np.zeros((width, width)) for width in widths]
        self._crossed = [np.zeros((q, width)) for width in widths[:-1]]
        self._pieces = [_pieces(places) for places in columns.places]

    def add(self, seen: Seen, p: np.ndarray) -> None:
        """Some rows, with the probabilities [·, c] of the actions in them."""
        k, x = len(self._own_mean), seen.own
        heavy = x if seen.weights is None else x * seen.weights[:, None]
        if x.shape[1]:
            self._own += information(x, p[:k], seen.weights)
            self._own_mean += p[:k] @ heavy
        if len(self._mean):
            mean = np.zeros((len(seen), len(self._mean)))
            for a, (z, shares) in enumerate(zip(seen.attributes, p, strict=False)):
                self._add_action(a, z, z * shares[:, None], mean, heavy, seen.weights)
            self._with_mean += np.matmul(heavy.T * p[:k, None, :], mean)
            whole = mean if seen.weights is None else mean * seen.weights[:, None]
            self._of_means += mean.T @ whole
            self._mean += np.ones(len(whole)) @ whole

    def _add_action(
        self, a: int, z: np.ndarray, share: np.ndarray, mean: np.ndarray, heavy: np.ndarray, weights: np.ndarray | None
    ) -> None:
        """What one action adds to z̄ [c, d] and to the sums, its share being p_a z_a [c, ·]."""
        for there, here in self._pieces[a]:
            mean[:, there] += share[:, here]
        if a < len(self._crossed):
            self._crossed[a] += heavy.T @ share
        self._squares[a] += z.T @ (share if weights is None else share * weights[:, None])

    def mean(self) -> np.ndarray:
        """Σ w E[t] [d]."""
        return np.concatenate([self._own_mean.ravel(), self._mean])

    def matrix(self) -> np.ndarray:
        """Σ w Cov[t] [d, d]."""
        places = self._columns.places
        attributes, cross = -self._of_means, -self._with_mean
        for own, square in zip(places, self._squares, strict=True):
            attributes[np.ix_(own, own)] += square
        for a, crossed in enumerate(self._crossed):
            cross[a][:, places[a]] += crossed
        both = cross.reshape(len(self._own), len(self._mean))
        return np.block([[self._own, both], [both.T, attributes]])


def _pieces(places: np.ndarray) -> list[tuple[slice, slice]]:
    """Neighbouring places as slices, each with where they come from: views are faster than lists of places."""
    cuts = [0, *(np.flatnonzero(np.diff(places) != 1) + 1).tolist(), len(places)]
    return [(slice(int(places[i]), int(places[j - 1]) + 1), slice(i, j)) for i, j in itertools.pairwise(cuts) if j > i]
