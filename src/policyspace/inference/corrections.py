"""Many tests, one promise: p-values adjusted for their number."""

from collections.abc import Callable
from typing import Literal

import numpy as np

from policyspace.errors import InputError

Correction = Literal["holm", "bonferroni", "bh"]


def bonferroni(p_values: np.ndarray) -> np.ndarray:
    """min(1, d·p): the paper's split δ/d; family-wise error ≤ δ."""
    return np.minimum(len(p_values) * p_values, 1.0)


def holm(p_values: np.ndarray) -> np.ndarray:
    """Step-down Bonferroni: family-wise error ≤ δ, and never less powerful."""
    order = np.argsort(p_values, kind="stable")
    remaining = len(p_values) - np.arange(len(p_values))
    stepped = np.maximum.accumulate(np.minimum(p_values[order] * remaining, 1.0))
    return _back(stepped, order)


def benjamini_hochberg(p_values: np.ndarray) -> np.ndarray:
    """Step-up: the expected share of false ones among the rejected is ≤ δ; this is not δ-correctness."""
    order = np.argsort(p_values, kind="stable")[::-1]
    rank = len(p_values) - np.arange(len(p_values))
    stepped = np.minimum.accumulate(np.minimum(p_values[order] * len(p_values) / rank, 1.0))
    return _back(stepped, order)


CORRECTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "holm": holm,
    "bonferroni": bonferroni,
    "bh": benjamini_hochberg,
}


def _back(stepped: np.ndarray, order: np.ndarray) -> np.ndarray:
    adjusted = np.empty_like(stepped)
    adjusted[order] = stepped
    return adjusted


def check_share(value: float, what: str) -> None:
    """A probability strictly between 0 and 1."""
    if not (isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1):
        raise InputError(f"{what} must lie between 0 and 1, found {value!r}.")


def check_significance(significance: float) -> None:
    """δ must be a probability."""
    if not (isinstance(significance, int | float) and 0 < significance < 1):
        raise InputError(f"the significance must lie between 0 and 1, found {significance!r}: 0.05 is customary.")
