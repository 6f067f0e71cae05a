"""Maximum likelihood inside the sub-spaces Θ_I of a policy space."""

from collections.abc import Callable
from typing import Any

import numpy as np

from policyspace.data.blocks import ArrayRows, Rows, check_size
from policyspace.data.demonstrations import Demonstrations
from policyspace.data.joint_moments import Moments, moments_of, shift_near
from policyspace.data.outstanding import Far
from policyspace.errors import InputError
from policyspace.fits.base import Fit, Likelihood
from policyspace.fits.boltzmann_fits import BoltzmannLikelihood
from policyspace.fits.choice_fits import ChoiceLikelihood
from policyspace.fits.firth import with_firth
from policyspace.fits.gaussian_fits import GaussianLikelihood
from policyspace.fits.network_fits import NetworkLikelihood
from policyspace.fits.no_fit import NoFit
from policyspace.fits.streamed_boltzmann import StreamedBoltzmann
from policyspace.policies.any_policy import AnyPolicy
from policyspace.policies.base import ExponentialFamily, PolicySpace
from policyspace.policies.boltzmann import BoltzmannLinear
from policyspace.policies.choice_linear import ChoiceLinear
from policyspace.policies.custom import CustomPolicy
from policyspace.policies.gaussian import GaussianLinear
from policyspace.policies.groups import Support
from policyspace.policies.network import Network

__all__ = ["Fit", "Likelihood", "fit", "likelihood_of", "likelihood_of_rows"]


def likelihood_of(space: PolicySpace, demonstrations: Demonstrations, firth: bool = False) -> Likelihood:
    """The likelihood of these demonstrations in this space; its `full` fit is made at the latest when it is read."""
    kind = next((kind for kind in LIKELIHOODS if isinstance(space, kind)), None)
    if kind is None:
        raise InputError(f"maximum likelihood needs a linear, network or custom policy, found {type(space).__name__}.")
    whole = demonstrations.whole
    if whole is not None and kind is not AnyPolicy:
        if firth:
            raise InputError(
                f"Firth's penalty needs all rows in memory, found {whole.num_rows} that are read in passes."
            )
        return likelihood_of_rows(space, whole.rows, whole.strata or demonstrations, whole.moments, whole.far)
    if kind is AnyPolicy:
        _check_names(space, demonstrations)
        _check_sizes(demonstrations)
    elif kind is not CustomPolicy:
        _check_match(space, demonstrations)
        _check_sizes(demonstrations)
    likelihood = LIKELIHOODS[kind](space, demonstrations)
    return with_firth(likelihood) if firth else likelihood


def likelihood_of_rows(
    space: PolicySpace, rows: Rows, sample: Demonstrations, moments: Moments | None = None, far: Far | None = None
) -> Likelihood:
    """The likelihood of rows that are not in memory: the same as of arrays, made by passes over them.

    `sample` holds some of the rows, rare actions more often than others, and weights that make up for it: fits start there.
    `moments` of features and actions, and rows `far` out, save the pass that finds them. Only the linear Gaussian and
    Boltzmann policies are sums over rows.
    """
    kind = next((kind for kind in SUMS_OVER_ROWS if isinstance(space, kind)), None)
    if kind is None:
        raise InputError(
            f"{type(space).__name__} needs all rows in memory, found {rows.num_rows} that are read from files: take the "
            "linear Gaussian or Boltzmann policy, or fewer rows."
        )
    _check_match(space, sample)
    _check_number(len(space.column_names), rows.num_rows)
    known = ArrayRows(sample.features, sample.actions, sample.weights)
    return SUMS_OVER_ROWS[kind](space, rows, moments, known, far)


def _linear(kind: Any) -> Callable[[Any, Demonstrations], Likelihood]:
    def likelihood(space: ExponentialFamily, data: Demonstrations) -> Likelihood:
        _check_number(len(space.column_names), data.num_pairs)
        return kind(space, ArrayRows(data.features, data.actions, data.weights))

    return likelihood


def _streamed_gaussian(
    space: GaussianLinear, rows: Rows, moments: Moments | None, known: ArrayRows, far: Far | None
) -> GaussianLikelihood:
    if moments is None:
        moments = moments_of(rows, shift=shift_near(known.features, known.actions))
    return GaussianLikelihood(space, rows, moments)


def _choice(space: ChoiceLinear, data: Demonstrations) -> Likelihood:
    return ChoiceLikelihood(space, data.features, data.actions, data.weights)


def _network(space: Network, data: Demonstrations) -> Likelihood:
    return NetworkLikelihood(space, data.features, data.actions, data.weights)


def _custom(space: CustomPolicy, data: Demonstrations) -> Likelihood:
    from policyspace.fits.custom_fits import CustomLikelihood  # JAX is only for those who bring their own policy

    return CustomLikelihood(space, data)


LIKELIHOODS: dict[Any, Callable[[Any, Demonstrations], Any]] = {
    GaussianLinear: _linear(GaussianLikelihood),
    BoltzmannLinear: _linear(BoltzmannLikelihood),
    ChoiceLinear: _choice,
    Network: _network,
    CustomPolicy: _custom,
    AnyPolicy: NoFit,
}
"""The likelihood of each family: a new family is one line here."""

SUMS_OVER_ROWS: dict[Any, Callable[[Any, Rows, Moments | None, ArrayRows, Far | None], Likelihood]] = {
    GaussianLinear: _streamed_gaussian,
    BoltzmannLinear: StreamedBoltzmann,
}
"""The families whose likelihood needs no rows in memory."""


def _check_number(num_columns: int, num_rows: int) -> None:
    """There must be as many rows as parameters of one action."""
    if num_rows < num_columns:
        raise InputError(
            f"{num_rows} rows are fewer than the {num_columns} parameters of one action: "
            "collect more rows, or test fewer features."
        )


def _check_names(space: PolicySpace, demonstrations: Demonstrations) -> None:
    """The space and the data must speak of the same features."""
    if demonstrations.names != space.feature_names:
        raise InputError(
            f"the policy space has the features {', '.join(space.feature_names)}, "
            f"the demonstrations {', '.join(demonstrations.names)}: they must be the same, in the same order."
        )


def _check_match(space: PolicySpace, demonstrations: Demonstrations) -> None:
    """They must speak of the same actions, too."""
    _check_names(space, demonstrations)
    if not space.discrete:
        if demonstrations.discrete:
            raise InputError("a Gaussian policy needs numbers as actions, found labels: use the Boltzmann policy.")
        if demonstrations.actions.shape[1] != len(space.action_names):
            raise InputError(
                f"the policy space has {len(space.action_names)} actions, the data {demonstrations.actions.shape[1]}."
            )
        return
    if not demonstrations.discrete:
        raise InputError("a Boltzmann policy needs discrete actions, found numbers: use the Gaussian policy.")
    if demonstrations.action_names != space.action_names:
        raise InputError(
            f"the policy space has the actions {', '.join(space.action_names)}, "
            f"the demonstrations {', '.join(demonstrations.action_names)}: they must be the same, in the same order."
        )


def _check_sizes(demonstrations: Demonstrations) -> None:
    """Sums of squares must neither overflow nor vanish."""
    sizes = list(zip(demonstrations.names, _largest(demonstrations.features), strict=True))
    if not demonstrations.discrete:
        sizes += zip(demonstrations.action_names, _largest(demonstrations.actions), strict=True)
    if demonstrations.weights is not None:
        sizes += [("weight", float(demonstrations.weights.max()))]
    for name, largest in sizes:
        check_size(name, largest)


def _largest(array: np.ndarray) -> list[float]:
    """The largest absolute value of each column."""
    return np.maximum(array.max(axis=0), -array.min(axis=0)).tolist()


def fit(
    space: PolicySpace,
    demonstrations: Demonstrations,
    support: Support | None = None,
    start: np.ndarray | None = None,
    firth: bool = False,
) -> Fit:
    """θ̂_I = argmax Σ log π_θ(a_i|s_i) over θ ∈ Θ_I, by default over all of Θ (Section 2)."""
    likelihood = likelihood_of(space, demonstrations, firth)
    return (
        likelihood.full
        if support is None and start is None
        else likelihood.fit(space.everything if support is None else support, start)
    )
