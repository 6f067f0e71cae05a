"""Neural network policies: a Gaussian around the output, or a softmax of it.

θ is one flat vector, layer after layer: the weights [out, in] row by row, then the biases [out]. The weights that leave
the inputs therefore come first, and Θ_I is about them, as it is about the columns of a linear policy.
"""

import copy
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, final

import numpy as np

from policyspace.data.sample import Sample
from policyspace.data.validation import translate_constructor
from policyspace.errors import InputError
from policyspace.families.base import Array, Group, Groups, Key, PolicySpace, Support, linear_groups, whole_columns
from policyspace.families.gaussian import columns_of_noise, covariance_matrix, unlike_gaussian
from policyspace.families.softmax import choices, choose
from policyspace.runtime import check_limit
from policyspace.safe_io import JSON

NETWORK = "network"
"""The group of all the parameters that are not tested; assumed, like the intercept of a linear policy."""

Activation = Literal["tanh", "relu"]
NetworkGroups = Groups | Literal["input", "hidden", "output"]


class Network(PolicySpace):
    """A policy whose distribution depends on the state through z = W_L h(… h(W_1 φ + b_1) …) + b_L.

    The tested groups are the inputs (all the weights that leave one input, the default), the hidden units (all the
    weights that leave one unit) or the outputs (all the weights that enter one output). By default there is one hidden
    tanh layer of 8 units.
    """

    row_names: tuple[str, ...]  # what each output belongs to
    multimodal = True

    def __init__(
        self,
        features: Sequence[str] | None = None,
        actions: Sequence[str] | None = None,
        hidden: Sequence[int] | None = None,
        activation: Activation | None = None,
        groups: NetworkGroups | None = None,
        assume: Sequence[str] = (),
        fixed: Any = 0.0,
        blocks: dict[str, tuple[str, ...]] | None = None,
    ) -> None:
        if features is None:
            said = {"hidden": hidden, "activation": activation, "groups": groups, "assume": assume, "fixed": fixed}
            self.defer(actions, blocks, **said)
            return
        self.feature_names = tuple(features)
        self._name_actions(actions)
        self.hidden = (8,) if hidden is None else tuple(hidden)
        if any(isinstance(width, bool) or not isinstance(width, int) or width < 1 for width in self.hidden):
            raise InputError(f"the hidden layers must have one unit or more each, found hidden={self.hidden}.")
        self.activation: Activation = "tanh" if activation is None else activation
        if self.activation not in ("tanh", "relu"):
            raise InputError(f"the activation must be 'tanh' or 'relu', found {activation!r}.")
        self.sizes = (len(self.feature_names), *self.hidden, len(self.row_names))
        size = sum((inputs + 1) * outputs for inputs, outputs in zip(self.sizes[:-1], self.sizes[1:], strict=True))
        check_limit("MAX_PARAMETERS", size, "the weights of a network")
        groups = "input" if groups is None else groups
        self.groups, self.fixed = _network_groups(self, groups, tuple(assume), fixed, blocks or {})

    def _name_actions(self, actions: Sequence[str] | None) -> None:
        """Take the names of the actions, of which each has an output."""
        self.action_names = self.row_names = ("action",) if actions is None else tuple(actions)

    @property
    def layer_indices(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Where each layer's weights [out, in] and biases [out] are in θ."""
        indices, start = [], 0
        for inputs, outputs in zip(self.sizes[:-1], self.sizes[1:], strict=True):
            middle = start + inputs * outputs
            indices.append((np.arange(start, middle).reshape(outputs, inputs), np.arange(middle, middle + outputs)))
            start = middle + outputs
        return indices

    def layers(self, theta: Array) -> list[tuple[Array, Array]]:
        """θ [d] as the weights [out, in] and biases [out] of each layer."""
        return [
            (theta[w.min() : w.max() + 1].reshape(w.shape), theta[b.min() : b.max() + 1]) for w, b in self.layer_indices
        ]

    def group_columns(self) -> dict[int, tuple[int, ...]] | None:
        """Whole columns of the first layer, unless hidden units or outputs are tested."""
        columns = whole_columns(self.groups, self.sizes[1], self.sizes[0], 0)
        return columns if columns is not None and all(columns[number] for number in self.tested) else None

    def init(self, key: Key, scale: float = 0.01) -> Array:
        """Starting weights and biases, uniform on (−scale, scale)."""
        if isinstance(key, np.random.Generator):
            return key.uniform(-scale, scale, self.num_parameters)
        import jax

        return jax.random.uniform(key, (self.num_parameters,), np.float64, -scale, scale)

    def named(self, support: Support) -> list[str]:
        """The groups of a support by name, in order; the rest of the network goes without saying."""
        return [name for name in super().named(support) if name != NETWORK]

    @final
    def output(self, theta: Array, features: Array) -> Array:
        """The linear output z [..., k] of the last layer."""
        return self.forward(theta, features)[-1]

    @final
    def score(self, theta: Array, features: Array, actions: Array) -> Array:
        """∇_θ log π_θ(a|s) [..., d] by back-propagation, for every sample at once.

        With δ_L = ∂log π/∂z, layer l has ∂/∂W = δ_l ⊗ h_{l−1}, ∂/∂b = δ_l, and δ_{l−1} = (δ_l W_l) ⊙ h'.
        """
        xp = theta.__array_namespace__()
        *values, output = self.forward(theta, features)
        delta, parts = self.output_score(output, actions), []
        for value, (w, _) in zip(reversed(values), reversed(self.layers(theta)), strict=True):
            outer = delta[..., :, None] * value[..., None, :]
            parts += [delta, outer.reshape(*outer.shape[:-2], -1)]
            delta = (delta @ w) * self.slope(value)
        return xp.concatenate(parts[::-1], axis=-1)

    @abstractmethod
    def output_score(self, output: Array, actions: Array) -> Array:
        """∂log π/∂z [..., k]."""

    def forward(self, theta: Array, features: Array) -> list[Array]:
        """The values [..., width] of every layer, from the features to the output."""
        xp, values = theta.__array_namespace__(), [features]
        *inner, (w_last, b_last) = self.layers(theta)
        for w, b in inner:
            z = values[-1] @ w.T + b
            values.append(xp.tanh(z) if self.activation == "tanh" else xp.maximum(z, 0.0))
        return [*values, values[-1] @ w_last.T + b_last]

    def columns(self, theta: Array, features: Array) -> Array:
        """The output [k, …] for JAX features [q, …]: as `forward`, but samples are contiguous, which is faster."""
        import jax.numpy as jnp

        *inner, last = ((w, b.reshape(-1, *[1] * (features.ndim - 1))) for w, b in self.layers(theta))
        value = features
        for w, b in inner:
            z = jnp.tensordot(w, value, 1) + b
            value = jnp.tanh(z) if self.activation == "tanh" else jnp.maximum(z, 0.0)
        return jnp.tensordot(last[0], value, 1) + last[1]

    def activate(self, z: np.ndarray) -> np.ndarray:
        """The activation, in place; tanh z = 1 − 2/(1 + e^{2z}) to rounding, at half the price of the library's."""
        if self.activation == "relu":
            return np.maximum(z, 0.0, out=z)
        z *= 2.0
        np.minimum(z, 80.0, out=z)  # tanh is 1 there to the bit, and nothing overflows
        np.exp(z, out=z)
        z += 1.0
        np.divide(-2.0, z, out=z)
        z += 1.0
        return z

    def slope(self, value: Array) -> Array:
        """The derivative of the activation, from its value."""
        return 1.0 - value**2 if self.activation == "tanh" else value > 0


@final
@translate_constructor
class GaussianNetwork(Network):
    """Continuous actions of dimension k, a ~ N(z_θ(s), Σ) with a known covariance (the paper's car: 5→8→2, 0.1 I).

    Parameters
    ----------
    features : sequence of str, optional
        Names of the features; without them the space takes all names from the data that it is bound to.
    actions : sequence of str, optional
        Names of the components of an action; by default one, named "action".
    hidden : sequence of int, default (8,)
        Units of each hidden layer.
    covariance : float, array_like of shape (k,) or (k, k), or "estimate"
        Σ; by default 0.1 where the features are named, and estimated where the space is bound to data.
    activation : {"tanh", "relu"}, default "tanh"
        Of the hidden layers.
    groups : {"feature", "weight"} or mapping of names to features, default "feature"
        What is tested together: all weights out of an input, each of them, or those of several inputs.
    assume : sequence of str
        Groups that are taken to be used, and not tested.
    fixed : float or mapping of names to floats, default 0
        What a weight is worth that the agent does not use.
    blocks : mapping of names to features, optional
        The one-hot features of each category.

    Examples
    --------
    >>> import policyspace
    >>> space = policyspace.GaussianNetwork(["front", "left"], ["speed"], hidden=(4,))
    >>> space.num_parameters  # 2 → 4 → 1, with biases
    17
    """

    in_words = "Gaussian network"
    discrete = False
    unsaid: ClassVar[Mapping[str, Any]] = {"covariance": "estimate"}

    def __init__(
        self,
        features: Sequence[str] | None = None,
        actions: Sequence[str] | None = None,
        hidden: Sequence[int] | None = None,
        covariance: float | Sequence[Any] | np.ndarray | Literal["estimate"] | None = None,
        activation: Activation | None = None,
        groups: NetworkGroups | None = None,
        assume: Sequence[str] = (),
        fixed: Any = 0.0,
        blocks: dict[str, tuple[str, ...]] | None = None,
    ) -> None:
        if features is None:
            said = {"hidden": hidden, "covariance": covariance, "activation": activation, "groups": groups}
            self.defer(actions, blocks, **said, assume=assume, fixed=fixed)
            return
        super().__init__(features, actions, hidden, activation, groups, assume, fixed, blocks)
        if isinstance(covariance, str) and covariance == "estimate":
            self._missing = "this network does not know its covariance yet: give it as a number or a matrix."
        else:
            self._set_covariance(0.1 if covariance is None else covariance)

    def with_noise(self, estimate: Callable[["GaussianNetwork"], np.ndarray]) -> "GaussianNetwork":
        """The same network, with its covariance as estimated where it is not known; taken as known afterwards."""
        if self._missing is None:
            return self
        space = copy.copy(self)
        space._missing = None
        space._set_covariance(estimate(self))
        return space

    def _set_covariance(self, covariance: Any) -> None:
        self.covariance = covariance_matrix(covariance, len(self.action_names))
        self.precision = np.linalg.inv(self.covariance)

    def mean(self, theta: np.ndarray, features: np.ndarray) -> np.ndarray | None:
        """z_θ(s)."""
        return np.asarray(self.output(theta, features))

    def variance(self, theta: np.ndarray, features: np.ndarray) -> np.ndarray:
        """The diagonal of Σ."""
        return np.broadcast_to(np.diag(self.covariance), (len(features), len(self.action_names)))

    def cautions(self, data: Sample) -> list[str]:
        """As for a linear Gaussian policy."""
        return unlike_gaussian(data)

    def describe(self) -> dict[str, JSON]:
        """The hidden layers, the activation and the covariance."""
        shape = {"hidden": list(self.hidden), "activation": self.activation}
        return {"family": "gaussian-network", **shape, "covariance": self.covariance.tolist()}

    def output_score(self, output: Array, actions: Array) -> Array:
        """Σ⁻¹(a − z)."""
        return (actions - output) @ self.precision

    def log_prob(self, theta: Array, features: Array, actions: Array) -> Array:
        """The density, log π = −½ (a − z)ᵀΣ⁻¹(a − z) − ½ log det 2πΣ."""
        xp, mean = theta.__array_namespace__(), self.output(theta, features)
        log_det = float(np.linalg.slogdet(2 * np.pi * self.covariance)[1])
        return -0.5 * xp.sum(self.output_score(mean, actions) * (actions - mean), axis=-1) - 0.5 * log_det

    def sample(self, key: Key, theta: Array, features: Array) -> Array:
        """Actions a = z_θ(s) + Σ^½ε."""
        root = np.linalg.cholesky(self.covariance)
        if isinstance(key, np.random.Generator):
            mean = self.output(theta, features)
            return mean + key.standard_normal(mean.shape) @ root.T
        mean = self.columns(theta, features.T)
        return (mean + columns_of_noise(key, root, mean.shape)).T


@final
@translate_constructor
class SoftmaxNetwork(Network):
    """Discrete actions, π(a_i|s) ∝ exp z_i; as in the linear space, the last action is the reference with z = 0.

    Parameters
    ----------
    features, hidden, activation, groups, assume, fixed, blocks
        As in `GaussianNetwork`.
    actions : sequence of str, optional
        Names of the actions, in the order of their codes 0…k; the last one is the reference.

    Examples
    --------
    >>> import policyspace
    >>> space = policyspace.SoftmaxNetwork(["front", "left"], ["brake", "go", "turn"], hidden=(4,))
    >>> space.num_parameters  # 2 → 4 → 2, with biases
    22
    """

    in_words = "softmax network"
    discrete = True
    asymptotic = True
    link = "logit"
    variance_of_mean = True

    def _name_actions(self, actions: Sequence[str] | None) -> None:
        """Take the names of the actions, of which all but the last have an output."""
        self.action_names = choices(actions)
        self.row_names = self.action_names[:-1]

    def mean(self, theta: np.ndarray, features: np.ndarray) -> np.ndarray | None:
        """The probabilities of the first k actions."""
        return np.asarray(_probabilities(self.output(theta, features)))

    def variance(self, theta: np.ndarray, features: np.ndarray) -> np.ndarray:
        """p(1 − p)."""
        p = np.asarray(_probabilities(self.output(theta, features)))
        return p * (1 - p)

    def describe(self) -> dict[str, JSON]:
        """The hidden layers and the activation."""
        return {"family": "boltzmann-network", "hidden": list(self.hidden), "activation": self.activation}

    def logits(self, theta: Array, features: Array) -> Array:
        """The k+1 logits (z_1, …, z_k, 0)."""
        return _with_reference(self.output(theta, features))

    def output_score(self, output: Array, actions: Array) -> Array:
        """e_a − p over the first k actions."""
        xp = output.__array_namespace__()
        chosen = xp.where(actions[..., None] == xp.arange(output.shape[-1]), 1.0, 0.0)
        return chosen - _probabilities(output)

    def log_prob(self, theta: Array, features: Array, actions: Array) -> Array:
        """The probability, log π = z_a − log Σ exp z."""
        xp, logits = theta.__array_namespace__(), self.logits(theta, features)
        logits = logits - xp.max(logits, axis=-1, keepdims=True)
        chosen = xp.where(actions[..., None] == xp.arange(logits.shape[-1]), logits, 0.0)
        return xp.sum(chosen, axis=-1) - xp.log(xp.sum(xp.exp(logits), axis=-1))

    def sample(self, key: Key, theta: Array, features: Array) -> Array:
        """Action codes: with NumPy the largest of z + Gumbel noise, with JAX by inversion, one uniform number each."""
        if isinstance(key, np.random.Generator):
            logits = self.logits(theta, features)
            return np.argmax(logits + key.gumbel(size=logits.shape), axis=-1)
        return choose(key, self.columns(theta, features.T)).T


def _with_reference(output: Array) -> Array:
    xp = output.__array_namespace__()
    return xp.concatenate([output, xp.zeros_like(output[..., :1])], axis=-1)


def _probabilities(output: Array) -> Array:
    """Of the first k actions, from z [..., k]."""
    xp, logits = output.__array_namespace__(), _with_reference(output)
    odds = xp.exp(logits - xp.max(logits, axis=-1, keepdims=True))
    return (odds / xp.sum(odds, axis=-1, keepdims=True))[..., :-1]


def _network_groups(
    space: Network, groups: NetworkGroups, assume: tuple[str, ...], fixed: Any, blocks: dict[str, tuple[str, ...]]
) -> tuple[tuple[Group, ...], np.ndarray]:
    """The tested groups and, last, the group of everything else, which is assumed."""
    layers = space.layer_indices
    size = layers[-1][1][-1] + 1
    if groups in ("hidden", "output"):
        tested = _unit_groups(space, groups == "hidden", assume)
        values = np.broadcast_to(np.asarray(fixed, dtype=np.float64), size).copy()
    else:
        # The first layer is a linear map of the inputs: it is partitioned as a linear policy's weights are.
        of_inputs: Groups = "feature" if groups == "input" else groups  # type: ignore[assignment]
        units = tuple(f"unit_{i}" for i in range(space.sizes[1])) if space.hidden else space.row_names
        tested, inner = linear_groups(space.feature_names, units, of_inputs, assume, fixed, False, blocks)
        values = np.zeros(size)
        values[: inner.size] = inner
    taken = {i for group in tested for i in group.indices}
    rest = tuple(i for i in range(size) if i not in taken)
    if NETWORK in {group.name for group in tested}:
        raise InputError(f"a group is named '{NETWORK}', the name of the weights that are not tested: rename it.")
    return (*tested, Group(NETWORK, rest, assumed=True)), values


def _unit_groups(space: Network, hidden: bool, assume: tuple[str, ...]) -> tuple[Group, ...]:
    """One group a hidden unit (the weights that leave it), or one an output (the weights that enter it)."""
    layers = [weights for weights, _ in space.layer_indices]
    if hidden:
        deep = len(layers) > 2
        members = {
            (f"unit_{depth}_{i}" if deep else f"unit_{i}"): weights[:, i]
            for depth, weights in enumerate(layers[1:])
            for i in range(weights.shape[1])
        }
    else:
        members = dict(zip(space.row_names, layers[-1], strict=True))
    if unknown := [name for name in assume if name not in members]:
        raise InputError(f"assume names '{unknown[0]}', which is no group: valid names are {', '.join(members)}.")
    return tuple(Group(name, tuple(int(i) for i in where), name in assume) for name, where in members.items())
