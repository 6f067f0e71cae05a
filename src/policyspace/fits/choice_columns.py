"""What is seen of each action in some rows: columns of the chooser and of the action, and whether it can be chosen."""

from dataclasses import dataclass

import numpy as np

from policyspace.fits.softmax import SAFE, probabilities
from policyspace.policies.choice_linear import ChoiceLinear


class Gathered:
    """Some columns of the features, shifted, the constant in front: a view where nothing has to be done to them."""

    def __init__(self, columns: np.ndarray, shift: np.ndarray, constant: bool = False) -> None:
        self.constant, self.width = constant, len(columns) + constant
        self._runs, self._shift = _runs(columns.tolist()), shift
        beside = len(self._runs) == 1 and self._runs[0].step == 1
        self._plain = beside and not constant and not shift[columns].any()

    def __call__(self, block: np.ndarray) -> np.ndarray:
        """Features [c, q] → columns [c, ·]."""
        if self._plain:
            return block[:, self._runs[0]]
        made = np.empty((len(block), self.width))
        made[:, : self.constant] = 1.0
        end = int(self.constant)
        for run in self._runs:
            start, end = end, end + len(self._shift[run])
            np.subtract(block[:, run], self._shift[run], out=made[:, start:end])
        return made


def _runs(columns: list[int]) -> list[slice]:
    """Columns as evenly spaced runs, as few as possible."""
    runs = []
    while columns:
        step = columns[1] - columns[0] if len(columns) > 1 else 1
        size = next((i for i in range(1, len(columns)) if columns[i] - columns[i - 1] != step), len(columns))
        runs.append(slice(columns[0], columns[size - 1] + 1, step))
        columns = columns[size:]
    return runs


@dataclass(frozen=True)
class Seen:
    """Some rows: columns of the chooser, of every action, who is missing where, and what is known of whom."""

    own: np.ndarray  # [c, q]
    attributes: list[np.ndarray]  # [c, ·] of each action
    missing: dict[int, np.ndarray]  # [c] by action
    known: dict[int, np.ndarray]  # [c] by action
    weights: np.ndarray | None  # [c]

    def __len__(self) -> int:
        return len(self.own)


@dataclass(frozen=True)
class Coefficients:
    """θ at several points as the columns are multiplied by it."""

    own: np.ndarray  # [k, q, m]
    attributes: list[np.ndarray]  # [·, m] of each action


class ChoiceColumns:
    """Where everything about the actions stands in a block of features, and its coefficients in θ.

    θ begins with the weights [k, q] of the constant and the features of the chooser, as in a Boltzmann policy; those of
    attributes follow.
    """

    def __init__(self, space: ChoiceLinear, shift: np.ndarray, offset: bool) -> None:
        self.num_actions = len(space.terms)
        own = [j for j, name in enumerate(space.feature_names) if name in space.own_features]
        self.own = Gathered(np.array(own, dtype=np.intp), shift, space.constants)
        self.num_own = (self.num_actions - 1) * self.own.width
        self.num_attributes = space.num_parameters - self.num_own
        inside = [terms.parameters >= self.num_own for terms in space.terms]
        both = list(zip(space.terms, inside, strict=True))
        self.attributes = [Gathered(terms.columns[some] - 1, shift) for terms, some in both]
        self.places = [terms.parameters[some] - self.num_own for terms, some in both]
        place = {name: j for j, name in enumerate(space.feature_names)}
        names = enumerate(space.action_names)
        self.available = {a: place[space.available[name]] for a, name in names if name in space.available}
        known = enumerate(space.offset_columns) if offset else ()
        self.offset = {a: list(columns) for a, columns in known if columns}
        last = self.num_actions - 1
        # An action that is always there, and of which nothing is seen, has the natural parameter 0.
        self.zero = not (len(self.places[last]) or last in self.available or last in self.offset)
        self.num_natural = self.num_actions - self.zero

    @property
    def width(self) -> int:
        """Numbers that are seen in a row."""
        return self.own.width + sum(gathered.width for gathered in self.attributes)

    def seen(self, block: np.ndarray, weights: np.ndarray | None = None) -> Seen:
        """Everything in some rows of the features [c, q]."""
        if self.num_attributes:
            block = block.copy()  # memory is read faster in one go than action by action
        missing = {a: block[:, j] <= 0 for a, j in self.available.items()}
        known = {a: block[:, columns].sum(axis=1) for a, columns in self.offset.items()}
        return Seen(self.own(block), [gathered(block) for gathered in self.attributes], missing, known, weights)

    def coefficients(self, thetas: np.ndarray) -> Coefficients:
        """Of θ [m, d]."""
        columns = np.ascontiguousarray(thetas.T)
        own, attributes = columns[: self.num_own], columns[self.num_own :]
        return Coefficients(
            own.reshape(self.num_actions - 1, self.own.width, len(thetas)), [attributes[j] for j in self.places]
        )

    def probabilities(self, seen: Seen, theta: Coefficients, out: np.ndarray) -> np.ndarray:
        """Of all actions but one whose natural parameter is 0, written to `out` [·, c, m]; Σ w log-partitions [m]."""
        k, q, _ = theta.own.shape
        of_each = zip(seen.attributes, theta.attributes, out, strict=False)
        if q > 1:
            np.matmul(seen.own, theta.own, out=out[:k])
            out[k:] = 0.0
            for z, columns, eta in of_each:
                if len(columns):
                    eta += z @ columns
        else:
            for z, columns, eta in of_each:
                np.matmul(z, columns, out=eta)
            if q:
                out[:k] += theta.own if self.own.constant else seen.own * theta.own
        for a, known in seen.known.items():
            out[a] += known[:, None]
        return normalise(out, seen.missing, seen.weights, self.zero)


def normalise(eta: np.ndarray, missing: dict[int, np.ndarray], weights: np.ndarray | None, zero: bool) -> np.ndarray:
    """Natural parameters [·, c, m] become probabilities in place; Σ w log-partitions [m] is returned.

    An action that is missing in a row has probability 0 there; `zero` says that there is one more, whose parameter is 0.
    """
    top: np.ndarray | None = None
    if eta.max() > SAFE or (not zero and eta.min() < -SAFE):
        for a, gone in missing.items():
            eta[a][gone] = -np.inf
        top = np.maximum(eta.max(axis=0), 0.0) if zero else eta.max(axis=0)
        eta -= top
    np.exp(eta, out=eta)
    for a, gone in missing.items():
        eta[a][gone] = 0.0
    total = eta[0] + (np.exp(-top) if top is not None else 1.0) if zero else eta[0].copy()
    for odds in eta[1:]:
        total += odds
    return probabilities(eta, total, top, weights)
