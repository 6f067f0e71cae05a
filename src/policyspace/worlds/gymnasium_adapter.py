"""Any configurable world as a Gymnasium environment."""

from collections.abc import Mapping
from functools import partial
from typing import Any, final

import gymnasium
import numpy as np
from gymnasium import spaces

from policyspace.errors import InputError
from policyspace.policies.jax_setup import jax
from policyspace.worlds import make_world
from policyspace.worlds.configuration_parameters import parse_configuration
from policyspace.worlds.confmdp import Array, Configuration, ConfMDP, Key, State


@final
class WorldEnv(gymnasium.Env):  # type: ignore[misc]
    """A thin shell around a `ConfMDP`: observations are the numbers of the state, float64; `info` has the features.

    Continuous actions come in [−1, 1], which is stretched to the world's `action_bounds` (the same, but for minigolf).
    `configuration` (a table of names, or text such as `bend=50`) sets ω for good, `reset(options={"configuration": …})`
    for the episodes from then on. Other keywords are the settings of the world.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012 (Gymnasium's own convention)

    def __init__(
        self,
        world: str | ConfMDP,
        configuration: Mapping[str, Any] | str | None = None,
        render_mode: str | None = None,
        **settings: Any,
    ) -> None:
        if render_mode not in (None, "rgb_array"):
            raise InputError(f"worlds render as 'rgb_array' or not at all, found the render mode '{render_mode}'.")
        self.world = make_world(world, **settings) if isinstance(world, str) else world
        self.render_mode = render_mode
        self.configuration = self._configuration(configuration)
        low, high = self.world.observation_bounds()
        self.observation_space = spaces.Box(low, high, dtype=np.float64)
        self.action_space = _action_space(self.world)
        self._path: list[np.ndarray] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        """Start an episode, s_0 ~ μ_ω."""
        super().reset(seed=seed)
        if options and "configuration" in options:
            self.configuration = self._configuration(options["configuration"])
        self._key = jax.random.key(int(self.np_random.integers(2**63)))
        self._key, key = jax.random.split(self._key)
        self._state = _start(self.world, key, self.configuration)
        self._path = [_numbers(self._state)]
        return self._path[-1].copy(), self._info()

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        """One step s' ~ p_ω(·|s, a); an episode that reaches the horizon is truncated."""
        self._key, key = jax.random.split(self._key)
        action = _world_action(self.world, action)
        self._state, reward, end = _advance(self.world, key, self._state, action, self.configuration)
        self._path.append(_numbers(self._state))
        late = len(self._path) > self.world.horizon
        return self._path[-1].copy(), float(reward), bool(end), late and not bool(end), self._info()

    def render(self) -> np.ndarray | None:
        """A picture of the episode so far [height, width, 3]."""
        if self.render_mode is None:
            return None
        from policyspace.worlds.pictures import picture

        return picture(self.world, np.stack(self._path), self.configuration)

    def _info(self) -> dict[str, Any]:
        return {"features": np.asarray(_features(self.world, self._state))}

    def _configuration(self, given: Mapping[str, Any] | str | None) -> Configuration:
        return self.world.check_configuration(parse_configuration(given) if isinstance(given, str) else given or {})


def _action_space(world: ConfMDP) -> spaces.Space:
    if world.action_bounds is None:
        return spaces.Discrete(len(world.action_names))
    return spaces.Box(-1.0, 1.0, shape=(len(world.action_names),), dtype=np.float64)


def _world_action(world: ConfMDP, action: Any) -> np.ndarray:
    """From Gymnasium's units to the world's."""
    if world.action_bounds is None:
        return np.asarray(action)
    low, high = world.action_bounds
    return low + (np.asarray(action, dtype=np.float64) + 1.0) / 2.0 * (high - low)


def _numbers(state: State) -> np.ndarray:
    """All numbers of a state in one row."""
    return np.concatenate([np.asarray(leaf, dtype=np.float64).ravel() for leaf in jax.tree.leaves(state)])


def _move(
    world: ConfMDP, key: Key, state: State, action: Array, configuration: Configuration
) -> tuple[State, Array, Array]:
    following = world.transition(key, state, action, configuration)
    return following, world.reward(state, action, following), world.terminal(following)


_compile = partial(jax.jit, static_argnums=0)
_start = _compile(lambda world, key, configuration: world.initial(key, configuration))
_features = _compile(lambda world, state: world.features(state))
_advance = _compile(_move)
