"""The interface of configurable worlds: parameters, configurations, trajectories."""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from policyspace.errors import InputError, nearest
from policyspace.families.base import PolicySpace
from policyspace.safe_io import JSON, parse_json, read_toml

if TYPE_CHECKING:
    from policyspace.data.origin import Origin
    from policyspace.data.sample import Sample


# -- Trajectories: what was seen of an agent in a world, and the configuration under which it was seen.

StepArray = Any  # a NumPy or a JAX array


@final
@dataclass(frozen=True)
class Trajectories:
    """m episodes of at most T steps, τ_i = (s_0, a_0, r_0, s_1, …), collected under one configuration (the paper's ω₀).

    After an episode's end its state is frozen, its rewards are 0 and its mask is False; actions and features there
    mean nothing.

    Parameters
    ----------
    states : pytree of arrays of shape (m, T + 1, …)
        s_0 to s_T.
    features : array of shape (m, T, q)
        φ(s_t), without the constant: what the action at t was chosen from.
    actions : array of shape (m, T) or (m, T, k)
        Codes or numbers.
    rewards, mask : array of shape (m, T)
        The rewards, and whether the episode still lasts.
    configuration : dict
        ω₀.
    notes : tuple of str
        Sentences about them that a reader must be told.

    Examples
    --------
    >>> import numpy as np
    >>> import policyspace
    >>> seen = policyspace.Trajectories(
    ...     (), np.zeros((2, 3, 1)), np.zeros((2, 3)), np.ones((2, 3)), np.array([[1, 1, 1], [1, 0, 0]], bool), {}
    ... )
    >>> seen.lengths.tolist(), seen.num_rows
    ([3, 1], 4)
    """

    states: Any  # a pytree of [m, T+1, …]
    features: StepArray  # [m, T, q], without the constant
    actions: StepArray  # [m, T] codes or [m, T, k]
    rewards: StepArray  # [m, T]
    mask: StepArray  # [m, T], True while the episode lasts
    configuration: dict[str, StepArray]
    notes: tuple[str, ...] = ()  # sentences about them that a reader must be told

    def __post_init__(self) -> None:
        shape = getattr(self.mask, "shape", None)
        if shape is None:  # JAX rebuilds this class around placeholders while it transforms functions
            return
        for name in ("features", "actions", "rewards"):
            found = getattr(getattr(self, name), "shape", shape)
            if found[: len(shape)] != shape:
                raise InputError(f"trajectories need {name} of shape {shape} + …, like their mask, found {found}.")

    @classmethod
    def of_pairs(cls, pairs: "Sample", configuration: dict[str, StepArray]) -> "Trajectories":
        """Pairs with their episodes side by side, as far as pairs know them: no states, and rewards of zero."""
        if pairs.episodes is None:
            raise InputError("trajectories are made of episodes, found rows without them: name the episode column.")
        _, episode, lengths = np.unique(pairs.episodes, return_inverse=True, return_counts=True)
        mask = np.arange(lengths.max())[None, :] < lengths[:, None]
        order = np.argsort(episode, kind="stable")
        features, actions = (np.zeros((*mask.shape, *a.shape[1:]), a.dtype) for a in (pairs.features, pairs.actions))
        features[mask], actions[mask] = pairs.features[order], pairs.actions[order]
        return cls((), features, actions, np.zeros(mask.shape), mask, configuration)

    @property
    def num_episodes(self) -> int:
        """The number of episodes m."""
        return int(self.mask.shape[0])

    @property
    def num_rows(self) -> int:
        """The number of state–action pairs, Σ_i T_i."""
        return int(np.asarray(self.mask).sum())

    @property
    def lengths(self) -> np.ndarray:
        """The length T_i of each episode [m]."""
        return np.asarray(self.mask).sum(axis=1)

    def returns(self, discount: float = 1.0) -> StepArray:
        """Σ_t γ^t r_t of each episode [m]."""
        return self.rewards @ discount ** np.arange(self.rewards.shape[1])

    def pairs(
        self,
        names: Sequence[str],
        action_names: Sequence[str],
        origin: "Origin | Mapping[str, Any] | None" = None,
    ) -> "Sample":
        """The state–action pairs before each episode's end: the only road from trajectories to demonstrations."""
        from policyspace.data.origin import Origin
        from policyspace.data.sample import Sample

        mask = np.asarray(self.mask, dtype=bool)
        return Sample(
            features=np.asarray(self.features)[mask],
            actions=np.asarray(self.actions)[mask],
            names=tuple(names),
            action_names=tuple(action_names),
            episodes=np.nonzero(mask)[0],
            origin=Origin.of(origin),
        )


# -- The entries of a configuration ω: their names, shapes and bounds, and how a user writes them.


@dataclass(frozen=True)
class ConfigurationParameter:
    """One named entry of ω, a number or an array, whose elements lie between `low` and `high`."""

    name: str
    shape: tuple[int, ...]
    low: float
    high: float
    default: float | tuple[Any, ...]
    description: str

    def default_array(self) -> np.ndarray:
        """The default as an array of the parameter's shape; one number fills it."""
        return np.broadcast_to(np.asarray(self.default, dtype=np.float64), self.shape).copy()


def checked_configuration(
    parameters: Sequence[ConfigurationParameter], given: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    """ω complete and valid: what is not given keeps its default; `name[i]` (or `name[i,j]`) sets one element."""
    known = {parameter.name: parameter for parameter in parameters}
    configuration = {parameter.name: parameter.default_array() for parameter in parameters}
    # Whole parameters first, so that `row[2]=5, row=[…]` does not depend on the order of writing.
    for name, value in sorted(given.items(), key=lambda item: "[" in item[0]):
        match = re.fullmatch(r"([^\[\]]+)\[\s*(\d{1,9}(?:\s*,\s*\d{1,9})*)\s*\]", name)  # row[2]
        base, index = (match[1].strip(), tuple(map(int, match[2].split(",")))) if match else (name, None)
        if base not in known:
            raise InputError(
                f"the configuration names '{name}', which this world does not have: {nearest(base, known)}"
            )
        shape = known[base].shape
        if index is None:
            configuration[base] = _numbers(name, value, shape)
        elif len(index) != len(shape) or any(not 0 <= i < size for i, size in zip(index, shape, strict=True)):
            raise InputError(f"the configuration sets '{name}', but '{base}' has shape {shape}: indices start at 0.")
        else:
            configuration[base][index] = _numbers(name, value, ())
    for name, value in configuration.items():
        low, high = known[name].low, known[name].high
        if not np.isfinite(value).all():
            raise InputError(f"the configuration's '{name}' must be finite, found NaN or infinity.")
        if (outside := value[(value < low) | (value > high)]).size:
            raise InputError(
                f"the configuration's '{name}' must lie between {low:g} and {high:g}, found {outside[0]:g}."
            )
    return configuration


def parse_configuration(text: str | Path) -> Mapping[str, Any]:
    """What a user wrote: `name=value,…` (`row[2]=5, col=[1,1,5,1,1]`) or the path of a TOML file."""
    if isinstance(text, Path) or str(text).endswith(".toml"):
        try:
            return read_toml(text)
        except InputError as error:
            raise InputError(f"the configuration file '{text}': {error}") from error
    given = dict[str, JSON]()
    # A comma parts two entries only where another `name=` follows: the others are inside an array.
    for entry in re.split(r",\s*(?=[A-Za-z_][\w\-]*(?:\[[\d,\s]*\])?\s*=)", text.strip()):
        name, equals, value = entry.partition("=")
        name = name.strip()
        if not equals or not name:
            raise InputError(f"a configuration is written name=value,… or is a .toml file, found '{entry}'.")
        if name in given:
            raise InputError(f"the configuration sets '{name}' twice: give one value.")
        try:
            given[name] = parse_json(value, finite=False)
        except InputError as error:
            raise InputError(
                f"the configuration's '{name}' must be a number or [numbers], found '{value:.60}'."
            ) from error
    return given


def _numbers(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        found = f"{value!r:.60}" if not isinstance(value, int) else "a whole number beyond 64-bit floats"
        raise InputError(f"the configuration's '{name}' must be made of numbers, found {found}.") from error
    if array.shape != shape:
        wanted = "one number" if shape == () else f"numbers of shape {shape}"
        raise InputError(f"the configuration's '{name}' must be {wanted}, found shape {array.shape}.")
    return array


# -- What a loop of configuring must know of a world: what can be set, what agents perceive and do, and how to watch one.

Array = Any  # a NumPy or a JAX array
Key = Any  # a JAX random key
Configuration = dict[str, Array]
"""ω: one array a configuration parameter, by name."""


class CannotBePlayed(InputError):
    """A world does not work at some configuration, though that lies between the bounds."""


class Configurable(ABC):
    """A world that can be configured and simulated; densities, which importance weights need, are a `ConfMDP`'s."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What the command line and reports call the world."""

    @property
    @abstractmethod
    def feature_names(self) -> tuple[str, ...]:
        """The features φ that agents may perceive, without the constant."""

    @property
    @abstractmethod
    def action_names(self) -> tuple[str, ...]:
        """The actions, or the components of a continuous action."""

    @property
    @abstractmethod
    def parameters(self) -> tuple[ConfigurationParameter, ...]:
        """The entries of ω."""

    @property
    def action_bounds(self) -> tuple[float, float] | None:
        """The interval that matters for the components of an action; None if actions are discrete, codes 0, 1, …"""
        return None

    @abstractmethod
    def policy_space(self, **options: Any) -> PolicySpace:
        """The policy space in which this world's agents are sought; options go to its constructor."""

    @abstractmethod
    def simulate(
        self, space: PolicySpace, theta: Array, configuration: Configuration, key: Key, num_episodes: int
    ) -> Trajectories:
        """Episodes of π_θ at ω; `CannotBePlayed` where there are none."""

    def check_configuration(self, given: Mapping[str, Any]) -> Configuration:
        """ω from what a user gave: names, shapes, finiteness and bounds checked; what is missing has its default."""
        return checked_configuration(self.parameters, given)

    def flat_configuration(self) -> Configuration | None:
        """The one ω that shows everything at least sometimes, where the world has such a one."""
        return None

    def uniform_configuration(self, key: Key) -> Configuration:
        """The ω that plays no favourites: uniform between the bounds, unless the world has a flat one."""
        rng = generator(key)
        return {p.name: rng.uniform(p.low, p.high, p.shape) for p in self.parameters}


def generator(key: Key) -> np.random.Generator:
    """NumPy's random numbers from a JAX key: the same key, the same numbers."""
    from policyspace.families.jax_backend import jax

    return np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
