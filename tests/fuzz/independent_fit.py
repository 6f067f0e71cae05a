"""λ of every feature by a fit that shares nothing with ours: least squares, or SciPy's minimiser on the likelihood."""

from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp


def make(rng: np.random.Generator) -> dict[str, Any]:
    """A small well-posed problem as plain data: labels or amounts that depend on some of the features."""
    n, q = int(rng.integers(40, 90)), int(rng.integers(1, 4))
    states = rng.normal(size=(n, q)) * 10.0 ** rng.integers(-3, 4, q) + rng.normal(size=q)
    weights = rng.normal(size=q) * (rng.random(q) < 0.5)
    drive = (states - states.mean(0)) / states.std(0) @ weights
    if rng.random() < 0.5:
        return {"data": states.tolist(), "actions": (drive + rng.normal(size=n)).tolist()}
    k = int(rng.integers(2, 4))
    logits = np.outer(drive, rng.normal(size=k)) + rng.gumbel(size=(n, k))
    return {"data": states.tolist(), "actions": [f"a{a}" for a in logits.argmax(1)]}


def compare(said: dict[str, Any]) -> None:
    """Both λ agree, wherever the maximum is finite."""
    import policyspace

    states, actions = np.array(said["data"]), np.array(said["actions"])
    answer = policyspace.identify(states, actions, test="wilks")
    if answer.fit.separated:
        return
    fitted = _gaussian if actions.dtype.kind == "f" else _boltzmann
    everything = np.column_stack([np.ones(len(states)), (states - states.mean(0)) / states.std(0)])
    best = fitted(everything, actions)
    for j, test in enumerate(answer.groups):
        expected = 2 * (best - fitted(np.delete(everything, j + 1, axis=1), actions))
        if abs(test.statistic - expected) > 1e-5 * max(1.0, expected):
            raise AssertionError(f"λ of x{j} is {test.statistic}, an independent fit finds {expected}")


def _gaussian(columns: np.ndarray, actions: np.ndarray) -> float:
    left = actions - columns @ np.linalg.lstsq(columns, actions, rcond=None)[0]
    return -len(actions) / 2 * np.log(left @ left)


def _boltzmann(columns: np.ndarray, actions: np.ndarray) -> float:
    chosen = actions[:, None] == np.unique(actions)
    k, q = chosen.shape[1] - 1, columns.shape[1]

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        logits = np.column_stack([columns @ theta.reshape(k, q).T, np.zeros(len(columns))])
        log_p = logits - logsumexp(logits, axis=1, keepdims=True)
        return -log_p[chosen].sum(), ((np.exp(log_p) - chosen)[:, :k].T @ columns).ravel()

    return -minimize(loss, np.zeros(k * q), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-9}).fun
