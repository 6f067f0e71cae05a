"""What a batch can speak about: actions that were played, features that vary, and an estimate that is always finite."""

from typing import Any

import numpy as np

from policyspace.data.demonstrations import Demonstrations
from policyspace.errors import InputError
from policyspace.fits import likelihood_of
from policyspace.fits.subsets import COLLINEAR
from policyspace.policies import PolicySpace
from policyspace.worlds.configurable import Configurable
from policyspace.worlds.trajectories import Trajectories

Batch = Demonstrations | Trajectories


def pairs_of(world: Configurable, batch: Batch) -> Demonstrations | str:
    """The pairs of a batch, or why it has none worth the name: few episodes may show a single action."""
    if isinstance(batch, Demonstrations):
        return batch
    try:
        return batch.pairs(world.feature_names, world.action_names)
    except InputError as error:
        return str(error)


def without_unplayed_actions(space: PolicySpace, data: Demonstrations) -> tuple[PolicySpace, Demonstrations, list[str]]:
    """Space and data without the actions that this batch never shows, and a sentence about them.

    Such actions have no parameters to test here. A space that cannot be made smaller stays as it is.
    """
    seen = np.unique(data.actions) if data.discrete else np.arange(len(data.action_names))
    if len(seen) == len(data.action_names):
        return space, data, []
    names = tuple(data.action_names[code] for code in seen)
    missing = [name for name in data.action_names if name not in names]
    always = [g.name for g in space.groups if g.always and g.name != "intercept"]
    reduced = space.smaller(data.names, names, always)
    if reduced is None or {g.name for g in reduced.groups} != {g.name for g in space.groups}:
        return space, data, []
    reduced = reduced.as_guess() if space.guess else reduced
    smaller = Demonstrations(
        data.features, np.searchsorted(seen, data.actions), data.names, names, data.episodes, data.weights, data.blocks
    )
    return reduced, smaller, [f"never played in this batch: {', '.join(missing)}."]


def without_dependent_features(space: PolicySpace, data: Demonstrations) -> tuple[PolicySpace, Demonstrations] | None:
    """Space and data without what Firth's penalty cannot take, collinear features; None where nothing could be tested.

    Constant ones drop out, of dependent ones so many that the others are not, and none of those is tested: this batch
    cannot tell them apart.
    """
    if not {g.name for g in space.groups}.issuperset(data.names):
        return None  # groups of several features: what could drop out is not theirs alone
    if space.smaller(data.names, data.action_names, ()) is None:
        return None
    kept, dependent = _independent(data.features)
    names = tuple(data.names[j] for j in kept)
    declared = {g.name for g in space.groups if g.always}
    always = [data.names[j] for j in kept if j in dependent or data.names[j] in declared]
    smaller = None if len(always) == len(names) else space.smaller(names, data.action_names, always)
    if smaller is None:
        return None
    part = Demonstrations(data.features[:, kept], data.actions, names, data.action_names, data.episodes, data.weights)
    return smaller, part


def estimated_theta(space: PolicySpace, data: Demonstrations | str) -> np.ndarray:
    """θ̂ for a design: finite even where the data are separated, zero where a batch says nothing."""
    if isinstance(data, str):
        return space.fixed.copy()
    reduced, smaller, _ = without_unplayed_actions(space, data)
    try:
        theta = likelihood_of(reduced, smaller).finite_theta()
    except InputError:
        return space.fixed.copy()
    return theta if reduced is space else _with_unplayed_actions(space, reduced, theta)


def _with_unplayed_actions(space: Any, reduced: Any, theta: np.ndarray) -> np.ndarray:
    """θ of the full space: an action never played gets a low constant against the others."""
    weights = reduced.weights(theta)
    logits = np.zeros((len(space.action_names), weights.shape[1]))
    logits[:, 0] = -3.0 if space.intercept else 0.0
    for row, name in enumerate(reduced.action_names):
        logits[space.action_names.index(name)] = weights[row] if row < len(weights) else 0.0
    return (logits[:-1] - logits[-1]).ravel()


def _independent(features: np.ndarray) -> tuple[list[int], set[int]]:
    """Columns that vary and are independent, and those of them that columns left out depend on."""
    varies = np.flatnonzero(np.ptp(features, axis=0) > 0)
    if not len(varies):
        return [], set()
    columns = (features - features.mean(axis=0))[:, varies]
    num_rows = len(columns)
    # The triangle of a QR decomposition has the dependences of all rows.
    columns = np.asarray(np.linalg.qr(columns / columns.std(axis=0), mode="r"))
    eigenvalues, vectors = np.linalg.eigh(columns.T @ columns / num_rows)
    involved = np.abs(vectors[:, eigenvalues < COLLINEAR]).max(axis=1, initial=0.0) > 1e-6
    chosen = list(np.flatnonzero(~involved))
    for j in np.flatnonzero(involved):
        if np.linalg.matrix_rank(columns[:, [*chosen, j]], tol=1e-8 * np.sqrt(num_rows)) > len(chosen):
            chosen.append(j)
    return sorted(varies[chosen].tolist()), set(varies[involved].tolist())
