"""Any Gymnasium environment as a world that can be configured: no densities, only episodes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Self, final

import gymnasium
import numpy as np
from gymnasium.envs.registration import load_env_creator
from gymnasium.spaces import Box, Discrete, flatten

from policyspace.environments.episode_player import acting, play
from policyspace.environments.observations import feature_names, kept_numbers, levels_of, own_names
from policyspace.environments.own_code import imported_module
from policyspace.environments.reaching import Make, complete, followers, found_ways, made, own_value
from policyspace.errors import InputError, nearest
from policyspace.policies import BoltzmannLinear, GaussianLinear, PolicySpace
from policyspace.worlds.configurable import Array, Configurable, Configuration, Key, generator
from policyspace.worlds.configuration_parameters import ConfigurationParameter
from policyspace.worlds.trajectories import Trajectories

Environment = str | Make
"""A registered Gymnasium id, `module:function`, a function () → env, or a function make(configuration) → env."""

WORDS = {
    "keyword": "a keyword of its constructor",
    "attribute": "an attribute",
    "options": "reset(options=…)",
    "make": "your function",
}


@final
@dataclass(frozen=True)
class RegisteredEnvironment:
    """Makes environments of an id that Gymnasium knows."""

    id: str

    @cached_property
    def entry_point(self) -> Callable[..., Any]:
        """The class or function behind the id."""
        found = gymnasium.registry[self.id].entry_point
        creator: Callable[..., Any] = found if callable(found) else load_env_creator(found)
        return creator

    @property
    def keywords(self) -> Mapping[str, Any]:
        """What the id gives to its class."""
        found: Mapping[str, Any] = gymnasium.registry[self.id].kwargs
        return found

    def __call__(self, **keywords: Any) -> Any:
        """An environment."""
        return gymnasium.make(self.id, disable_env_checker=True, **keywords)


@final
@dataclass(frozen=True)
class Facts:
    """What is known of an environment without running it, as a file can hold it."""

    name: str
    parameters: tuple[ConfigurationParameter, ...]
    ways: Mapping[str, str]  # how each parameter reaches it
    feature_names: tuple[str, ...]
    action_names: tuple[str, ...]
    action_bounds: tuple[float, float] | None
    own_names: tuple[str, ...] = ()  # of what an observation is made of, as its tools call it; not in older files

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """What `to_dict` gave."""
        entries = tuple(ConfigurationParameter(**{**p, "shape": tuple(p["shape"])}) for p in given["parameters"])
        names = {word: tuple(given.get(word, ())) for word in ("feature_names", "action_names", "own_names")}
        limits = None if given["action_bounds"] is None else tuple(given["action_bounds"])
        return cls(**{**given, **names, "parameters": entries, "action_bounds": limits})


@final
@dataclass(frozen=True, eq=False)
class GymnasiumWorld(Configurable):
    """An environment, the parameters that can be set in it, and how each of them reaches it.

    Features are the numbers of an observation and, of its categories, all levels but the one that it starts in: these are
    one unit, as in `identify`. Its policy space is linear, and only a guess: no agent here is known to be
    of it, so every batch is tested without a policy model. `make` may be missing in a world that comes from a file: all
    but playing works without.
    """

    facts: Facts
    make: Make | None = None

    @classmethod
    def of(
        cls,
        env: Environment,
        parameters: Mapping[str, Sequence[float]],
        names: Sequence[str] | None = None,
        by: Mapping[str, str] | None = None,
    ) -> Self:
        """The world of an environment whose `parameters` lie between (low, high), or (low, high, default).

        How each reaches the environment is found out by playing: by a keyword of the constructor, an attribute, or
        reset(options=…), in this order; `by` says it instead. A function that needs one argument, which is no parameter,
        is make(configuration). `names` are those of the observation's numbers and categories. A parameter that changes
        nothing is refused.
        """
        name, make = environment(env)
        if not parameters:
            raise InputError(
                "a world to configure needs a parameter, found none: name one with its bounds, gravity=5:15."
            )
        bounds = {p: _bounds(p, given) for p, given in parameters.items()}
        middle = {p: (low + high) / 2 for p, (low, high) in bounds.items()}
        ways = found_ways(make, bounds, by or {}, middle)
        alone = complete(make, middle)
        entries = tuple(_parameter(alone, ways[p], p, bounds[p], list(parameters[p])[2:]) for p in bounds)
        example = made(make, ways, {p.name: p.default for p in entries})
        own = own_names(example.observation_space)
        features = feature_names(example, own if names is None else list(names))
        facts = Facts(name, entries, ways, features, *_actions(example), tuple(own))
        example.close()
        return cls(facts, make)

    @classmethod
    def from_facts(cls, facts: Facts, env: Environment | None = None) -> Self:
        """A world from a file. No code that a file names is imported: a user's own function must be given again."""
        if env is None:
            known = ":" not in facts.name and facts.name in gymnasium.registry
            return cls(facts, RegisteredEnvironment(facts.name) if known else None)
        found, make = environment(env)
        if found != facts.name:
            raise InputError(f"the study is about the environment '{facts.name}', found '{found}': give the same one.")
        return cls(facts, make)

    @property
    def name(self) -> str:
        """The id, or `module:function`."""
        return self.facts.name

    @property
    def parameters(self) -> tuple[ConfigurationParameter, ...]:
        """The entries of ω, each one number."""
        return self.facts.parameters

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The numbers of an observation, and the levels `state=3` of its categories."""
        return self.facts.feature_names

    @property
    def blocks(self) -> dict[str, tuple[str, ...]]:
        """The levels of each category by its name."""
        return levels_of(self.feature_names)

    @property
    def action_names(self) -> tuple[str, ...]:
        """Discrete actions by their numbers, or the components of a continuous one."""
        return self.facts.action_names

    @property
    def action_bounds(self) -> tuple[float, float] | None:
        """The smallest and the largest bound of a continuous action; None if actions are discrete."""
        return self.facts.action_bounds

    def policy_space(self, **options: Any) -> PolicySpace:
        """The linear space that fits the actions, as a guess."""
        kind: Any = BoltzmannLinear if self.action_bounds is None else GaussianLinear
        space: PolicySpace = kind(self.feature_names, self.action_names, **{"blocks": self.blocks} | options)
        return space.as_guess()

    def environment(self, configuration: Mapping[str, Any]) -> Any:
        """An environment at ω, as anybody may use it."""
        if self.make is None:
            raise InputError(
                f"the environment '{self.name}' must be played for this, and no code named in a file is run: give its "
                "function again, as env= or --env."
            )
        return made(self.make, self.facts.ways, self.check_configuration(configuration))

    def simulate(
        self, space: PolicySpace, theta: Array, configuration: Configuration, key: Key, num_episodes: int
    ) -> Trajectories:
        """Episodes of π_θ at ω; actions outside of the environment's bounds are clipped."""
        rng, env = generator(key), self.environment(configuration)
        theta, box = np.asarray(theta), env.action_space
        first, kept = int(getattr(box, "start", 0)), kept_numbers(env.observation_space, self.feature_names)

        def act(observation: Any, _: bool) -> Any:
            row = flatten(env.observation_space, observation)[kept].astype(np.float64)
            action = space.sample(rng, theta, row)
            return (
                first + int(action)
                if self.action_bounds is None
                else np.clip(action, box.low, box.high).astype(box.dtype)
            )

        try:
            seen = play(env, act, num_episodes, int(rng.integers(2**31)), configuration, MOST_SIMULATED_STEPS)
            return replace(seen, features=seen.features[..., kept])
        finally:
            env.close()

    def observe(
        self, agent: Any = None, learn: Callable[[Any], Any] | None = None
    ) -> Callable[[Key, Configuration, int], Trajectories]:
        """How an agent is observed: the same one everywhere, or one that `learn(env) → agent` trains at every ω."""
        if (agent is None) == (learn is None):
            raise InputError("say who acts: an agent, or a function learn(env) that returns one; one of the two.")

        def observed(key: Key, configuration: Configuration, num_episodes: int) -> Trajectories:
            seed = int(generator(key).integers(2**31))
            env = self.environment(configuration)
            try:
                someone = agent if learn is None else learn(env)
                seen = play(env, acting(someone, seed), num_episodes, seed, configuration)
                return replace(
                    seen, features=seen.features[..., kept_numbers(env.observation_space, self.feature_names)]
                )
            finally:
                env.close()

        return observed


UNBOUNDED = 1e300
"""In place of infinity, which JSON does not have."""

MOST_SIMULATED_STEPS = 2500
"""Simulations for designs and forecasts begin no episode after so many steps."""


def environment(env: Environment) -> tuple[str, Make]:
    """The name under which an environment is stored, and what makes it."""
    if not isinstance(env, str):
        if not callable(env):
            raise InputError(f"an environment is a Gymnasium id or a function that makes one, found {env!r:.60}.")
        return f"{env.__module__}:{getattr(env, '__qualname__', type(env).__qualname__)}", env
    if ":" not in env:
        if env not in gymnasium.registry:
            raise InputError(f"Gymnasium knows no environment '{env}': {nearest(env, gymnasium.registry)}")
        return env, RegisteredEnvironment(env)
    module, _, name = env.partition(":")
    inside = vars(imported_module(module, "the environment"))
    if callable(inside.get(name)):
        return env, inside[name]
    if name in gymnasium.registry:
        return env, RegisteredEnvironment(name)
    raise InputError(f"the module '{module}' has no function and registers no environment '{name}': check the name.")


def _bounds(name: str, given: Sequence[float]) -> tuple[float, float]:
    try:
        low, high, *rest = (float(value) for value in given)
    except (TypeError, ValueError):
        rest, low, high = [0.0, 0.0], 1.0, 0.0
    if len(rest) > 1 or not np.isfinite([low, high]).all() or not low < high:
        raise InputError(f"the parameter '{name}' needs bounds low < high, found {given!r:.40}: write (5, 15) or 5:15.")
    return low, high


def _parameter(
    make: Make, way: str, name: str, bounds: tuple[float, float], given: Sequence[float]
) -> ConfigurationParameter:
    """One entry of ω: its default is given, else the environment's own, else the middle."""
    own = own_value(make, way, name)
    default = (
        float(given[0]) if given else own if own is not None and bounds[0] <= own <= bounds[1] else sum(bounds) / 2
    )
    if not bounds[0] <= default <= bounds[1]:
        raise InputError(
            f"the default of '{name}' must lie between {bounds[0]:g} and {bounds[1]:g}, found {default:g}: correct it."
        )
    also = followers(make, way, name, bounds)
    follow = f"; {', '.join(also)} follow{'s' if len(also) == 1 else ''}" if also else ""
    return ConfigurationParameter(name, (), *bounds, default, f"reaches the environment by {WORDS[way]}{follow}")


def _actions(env: Any) -> tuple[tuple[str, ...], tuple[float, float] | None]:
    space = env.action_space
    if isinstance(space, Discrete):
        return tuple(str(int(space.start) + i) for i in range(int(space.n))), None
    if isinstance(space, Box) and len(space.shape) == 1:
        size = space.shape[0]
        names = ("action",) if size == 1 else tuple(f"action[{i}]" for i in range(size))
        return names, (max(float(space.low.min()), -UNBOUNDED), min(float(space.high.max()), UNBOUNDED))
    raise InputError(
        f"actions must be Discrete, or a Box of one row, found {space}: wrap the environment in a function."
    )
