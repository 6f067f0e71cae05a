"""Maximum likelihood inside the sub-spaces Θ_I of a policy space."""

import numpy as np

from policyspace.data.demonstrations import Demonstrations
from policyspace.errors import InputError
from policyspace.fits.base import Fit, Likelihood
from policyspace.fits.boltzmann_fits import BoltzmannLikelihood
from policyspace.fits.firth import FirthLikelihood
from policyspace.fits.gaussian_fits import GaussianLikelihood
from policyspace.fits.network_fits import NetworkLikelihood
from policyspace.policies.base import ExponentialFamily, PolicySpace
from policyspace.policies.boltzmann import BoltzmannLinear
from policyspace.policies.custom import CustomPolicy
from policyspace.policies.gaussian import GaussianLinear
from policyspace.policies.groups import Support
from policyspace.policies.network import BoltzmannNetwork, GaussianNetwork, Network

LARGEST = 1e60
"""The size of a feature or an action beyond which its moments could overflow (and below whose inverse, vanish)."""

__all__ = ["Fit", "Likelihood", "fit", "likelihood_of"]


def likelihood_of(space: PolicySpace, demonstrations: Demonstrations, firth: bool = False) -> Likelihood:
    """The likelihood of these demonstrations in this space; its `full` fit is made at the latest when it is read."""
    if firth and not isinstance(space, BoltzmannLinear):
        raise InputError(
            f"Firth's penalty is for the linear Boltzmann policy, found {type(space).__name__}: leave it out."
        )
    if isinstance(space, CustomPolicy):
        from policyspace.fits.custom_fits import CustomLikelihood  # JAX is only for those who bring their own policy

        return CustomLikelihood(space, demonstrations)
    if not isinstance(space, ExponentialFamily | Network):
        raise InputError(f"maximum likelihood needs a linear, network or custom policy, found {type(space).__name__}.")
    _check_match(space, demonstrations)
    _check_size(demonstrations)
    features, actions, weights = demonstrations.features, demonstrations.actions, demonstrations.weights
    if isinstance(space, Network):
        return NetworkLikelihood(space, features, actions, weights)
    if features.shape[0] < features.shape[1] + space.intercept:
        raise InputError(
            f"{features.shape[0]} rows are fewer than the {features.shape[1] + space.intercept} parameters of one action: "
            "collect more rows, or test fewer features."
        )
    if isinstance(space, GaussianLinear):
        return GaussianLikelihood(space, features, actions, weights)
    assert isinstance(space, BoltzmannLinear)
    plain = BoltzmannLikelihood(space, features, actions, weights)
    return FirthLikelihood(plain) if firth else plain


def _check_match(space: ExponentialFamily | Network, demonstrations: Demonstrations) -> None:
    """The space and the data must speak of the same features and the same actions."""
    if demonstrations.names != space.feature_names:
        raise InputError(
            f"the policy space has the features {', '.join(space.feature_names)}, "
            f"the demonstrations {', '.join(demonstrations.names)}: they must be the same, in the same order."
        )
    if isinstance(space, GaussianLinear | GaussianNetwork):
        if demonstrations.discrete:
            raise InputError("a Gaussian policy needs numbers as actions, found labels: use the Boltzmann policy.")
        if demonstrations.actions.shape[1] != len(space.row_names):
            raise InputError(
                f"the policy space has {len(space.row_names)} actions, the data {demonstrations.actions.shape[1]}."
            )
        return
    assert isinstance(space, BoltzmannLinear | BoltzmannNetwork)
    if not demonstrations.discrete:
        raise InputError("a Boltzmann policy needs discrete actions, found numbers: use the Gaussian policy.")
    if demonstrations.action_names != space.action_names:
        raise InputError(
            f"the policy space has the actions {', '.join(space.action_names)}, "
            f"the demonstrations {', '.join(demonstrations.action_names)}: they must be the same, in the same order."
        )


def _check_size(demonstrations: Demonstrations) -> None:
    """Sums of squares must neither overflow nor vanish."""
    columns = list(zip(demonstrations.names, demonstrations.features.T, strict=True))
    if not demonstrations.discrete:
        columns += zip(demonstrations.action_names, demonstrations.actions.T, strict=True)
    if demonstrations.weights is not None:
        columns.append(("weight", demonstrations.weights))
    for name, column in columns:
        largest = max(float(column.max()), -float(column.min()))
        if largest > LARGEST or 0 < largest < 1 / LARGEST:
            raise InputError(
                f"'{name}' has values of size {largest:.1g}, beyond what sums of squares can hold ({1 / LARGEST:g} to "
                f"{LARGEST:g}): measure it in other units."
            )


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
