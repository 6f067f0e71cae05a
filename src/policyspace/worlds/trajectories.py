"""Trajectories: what was seen of an agent in a world, and the configuration under which it was seen."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from policyspace.errors import InputError

if TYPE_CHECKING:
    from policyspace.data.demonstrations import Demonstrations

Array = Any  # a NumPy or a JAX array


@final
@dataclass(frozen=True)
class Trajectories:
    """m episodes of at most T steps, τ_i = (s_0, a_0, r_0, s_1, …), collected under `configuration` (the paper's ω₀).

    After an episode's end its state is frozen, its rewards are 0 and its mask is False; actions and features there
    mean nothing. `features[:, t]` is φ(s_t), what the action `actions[:, t]` was chosen from.
    """

    states: Any  # a pytree of [m, T+1, …]
    features: Array  # [m, T, q], without the constant
    actions: Array  # [m, T] codes or [m, T, k]
    rewards: Array  # [m, T]
    mask: Array  # [m, T], True while the episode lasts
    configuration: dict[str, Array]
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
    def of_pairs(cls, pairs: "Demonstrations", configuration: dict[str, Array]) -> "Trajectories":
        """Pairs with their episodes side by side, as far as pairs know them: no states, and rewards of zero."""
        if pairs.episodes is None:
            raise InputError("trajectories are made of episodes, found pairs without them: name the episode column.")
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
    def num_pairs(self) -> int:
        """The number of state–action pairs, Σ_i T_i."""
        return int(np.asarray(self.mask).sum())

    @property
    def lengths(self) -> np.ndarray:
        """The length T_i of each episode [m]."""
        return np.asarray(self.mask).sum(axis=1)

    def returns(self, discount: float = 1.0) -> Array:
        """Σ_t γ^t r_t of each episode [m]."""
        return self.rewards @ discount ** np.arange(self.rewards.shape[1])

    def pairs(
        self, names: Sequence[str], action_names: Sequence[str], metadata: dict[str, Any] | None = None
    ) -> "Demonstrations":
        """The state–action pairs before each episode's end: the only road from trajectories to demonstrations."""
        from policyspace.data.demonstrations import Demonstrations

        mask = np.asarray(self.mask, dtype=bool)
        return Demonstrations(
            features=np.asarray(self.features)[mask],
            actions=np.asarray(self.actions)[mask],
            names=tuple(names),
            action_names=tuple(action_names),
            episodes=np.nonzero(mask)[0],
            metadata=metadata or {},
        )
