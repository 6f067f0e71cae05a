"""What the test reads: checked inputs and actions in the order of time, standardised, with their episodes and subjects."""

from dataclasses import dataclass

import numpy as np

from policyspace.errors import InputError
from policyspace.inference.lean.standard import Spread, Standard


@dataclass(frozen=True)
class Rows:
    """Rows sorted by subject, then episode, each in the order given.

    `inputs` [n, q] and `actions` [n, k] are standardised. Rows of one episode or subject are neighbours.
    """

    inputs: np.ndarray
    actions: np.ndarray
    episode: np.ndarray
    subject: np.ndarray | None
    constant: np.ndarray
    two_valued: np.ndarray
    discrete: bool
    has_episodes: bool
    label_spread: np.ndarray
    """What one unit of each column of `actions` is in the action's own units [k]."""

    @property
    def num(self) -> int:
        """The number of rows."""
        return len(self.inputs)


def checked_rows(
    features: np.ndarray,
    actions: np.ndarray,
    num_labels: int | None = None,
    episodes: np.ndarray | None = None,
    subjects: np.ndarray | None = None,
    weights: np.ndarray | None = None,
    standard: Standard | None = None,
) -> Rows:
    """Check everything that was handed in, sort it and standardise it: by its own means and spreads unless told."""
    features = np.asarray(features, dtype=np.float64)
    if features.ndim != 2:
        raise InputError(f"features must be a table [rows, inputs], and have {features.ndim} dimensions: reshape them.")
    num, width = features.shape
    if weights is not None and not np.all(np.asarray(weights) == 1):
        raise InputError(
            "the lean test takes rows one by one and cannot weigh them, and weights other than 1 were given: repeat rows "
            "that stand for several, or use --test wilks."
        )
    if width == 0 or num < 20 or num < 2 * (width + 2):
        raise InputError(
            f"the lean test needs at least 20 rows and two rows an input, and found {num} rows of {width} inputs: "
            "record more rows or name fewer inputs."
        )
    if not np.isfinite(features).all():
        raise InputError("features must be finite numbers, and some are missing or infinite: drop those rows first.")
    order = _order(num, episodes, subjects)
    columns = _checked_actions(np.asarray(actions), num, num_labels)
    if standard is None:
        counts = None if num_labels is None else np.bincount(columns, minlength=num_labels)
        standard = Standard.of(Spread.of(features), Spread.of(columns) if counts is None else None, counts)
    inputs, numbers = standard.inputs(features), standard.actions(columns)
    del features
    if order is not None:
        inputs, numbers = inputs[order], numbers[order]
    low, high = inputs.min(axis=0), inputs.max(axis=0)
    two_valued = np.array([bool(np.all((c == a) | (c == b))) for c, a, b in zip(inputs.T, low, high, strict=True)])
    return Rows(
        inputs=inputs,
        actions=numbers,
        episode=np.zeros(num, dtype=np.intp) if episodes is None else _runs(np.asarray(episodes), order),
        subject=None if subjects is None else _runs(np.asarray(subjects), order),
        constant=low == high,
        two_valued=two_valued,
        discrete=num_labels is not None,
        has_episodes=episodes is not None,
        label_spread=standard.action_scale,
    )


def sample_of_episodes(episodes: np.ndarray | None, num: int, most: int) -> np.ndarray:
    """About `most` of the `num` rows: whole episodes, evenly spaced; the first rows where there are few episodes or none."""
    if num <= most:
        return np.arange(num)
    every = -(-num // most)
    rows = np.flatnonzero(episodes % every == 0) if episodes is not None and episodes.max() >= 9 else np.arange(most)
    return rows if len(rows) else np.arange(most)


def _order(num: int, episodes: np.ndarray | None, subjects: np.ndarray | None) -> np.ndarray | None:
    """The rows by subject, then by episode; None where they already are."""
    keys = []
    for name, codes in (("episodes", episodes), ("subjects", subjects)):
        if codes is None:
            continue
        if np.shape(codes) != (num,):
            raise InputError(f"{name} must be one code a row ({num}), and have shape {np.shape(codes)}: give one each.")
        keys.append(np.asarray(codes))
    order = np.lexsort(tuple(keys)) if keys else None
    return None if order is None or np.array_equal(order, np.arange(num)) else order


def _runs(codes: np.ndarray, order: np.ndarray | None) -> np.ndarray:
    """0, 1, 2, … for the runs of equal codes."""
    codes = codes if order is None else codes[order]
    return np.concatenate([[0], np.cumsum(codes[1:] != codes[:-1])]).astype(np.intp)


def _checked_actions(actions: np.ndarray, num: int, num_labels: int | None) -> np.ndarray:
    """Numbers [n, k], or codes of labels [n]."""
    if len(actions) != num:
        raise InputError(f"there must be one action a row, and there are {len(actions)} for {num} rows.")
    if num_labels is None:
        columns = np.asarray(actions, dtype=np.float64).reshape(num, -1)
        if not np.isfinite(columns).all():
            raise InputError("actions must be finite numbers, and some are missing or infinite: drop those rows first.")
        return columns
    labels = actions.reshape(-1)
    if labels.size != len(actions) or not np.issubdtype(labels.dtype, np.integer):
        raise InputError(
            f"discrete actions must be one whole-number code a row, and are {actions.dtype} of shape {actions.shape}."
        )
    if labels.min() < 0 or labels.max() >= num_labels:
        raise InputError(f"labels must be 0 to {num_labels - 1}, and range from {labels.min()} to {labels.max()}.")
    return labels
