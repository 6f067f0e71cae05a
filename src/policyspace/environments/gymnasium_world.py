"""Any Gymnasium environment as a world that can be configured: no densities, only episodes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self, final

import gymnasium
import numpy as np
from gymnasium.spaces import flatten

from policyspace.environments.actions import names_and_bounds
from policyspace.environments.arguments import checked_bounds, checked_names, checked_ways
from policyspace.environments.checked_environment import CORRECT, CheckedEnvironment, close, place
from policyspace.environments.episode_player import Act, acting, play
from policyspace.environments.makers import Environment, Make, RegisteredEnvironment, environment
from policyspace.environments.observations import feature_names, kept_numbers, levels_of, own_names
from policyspace.environments.own_code import Blamed
from policyspace.environments.player import Player
from policyspace.environments.probing import Probe, Reached
from policyspace.environments.reaching import followers, is_number, made
from policyspace.errors import InputError
from policyspace.policies import BoltzmannLinear, GaussianLinear, PolicySpace
from policyspace.worlds.configurable import Array, Configurable, Configuration, Key, generator
from policyspace.worlds.configuration_parameters import ConfigurationParameter
from policyspace.worlds.trajectories import Trajectories


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
        nothing is refused, unless `by` says how it gets there.
        """
        name, make = environment(env)
        bounds, listed = checked_bounds(parameters), checked_names(names)
        probe = Probe(make, bounds, checked_ways(by))
        own_names(probe.example.observation_space)  # what cannot be tested is refused before anything is played
        names_and_bounds(probe.example.action_space)
        reached = probe.reached()
        close(probe.example)
        entries = tuple(_parameter(probe, reached[p], p, bounds[p], list(parameters[p])[2:]) for p in bounds)
        ways, defaults = {p: reached[p].way for p in bounds}, {p.name: p.default for p in entries}
        example = CheckedEnvironment(made(make, ways, defaults), defaults)
        space = example.env.observation_space
        own = own_names(space)
        features = feature_names(space, example.reset(0).numbers, own if listed is None else listed)
        facts = Facts(name, entries, ways, features, *names_and_bounds(example.env.action_space), tuple(own))
        close(example.env)
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
        return made(self.make, self.facts.ways, self.check_configuration(configuration), GO_ON)

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
            seed = int(rng.integers(2**31))
            seen = play(env, act, num_episodes, seed, configuration, MOST_SIMULATED_STEPS, GO_ON)
            return replace(seen, features=seen.features[..., kept])
        finally:
            close(env)

    def observe(
        self, agent: Any = None, learn: Callable[[Any], Any] | None = None
    ) -> Callable[[Key, Configuration, int], Trajectories]:
        """How an agent is observed: the same one everywhere, or one that `learn(env) → agent` trains at every ω."""
        if (agent is None) == (learn is None):
            raise InputError("say who acts: an agent, or a function learn(env) that returns one; one of the two.")
        if learn is not None and not callable(learn):
            raise InputError(f"learn is a function learn(env) that returns an agent, found {learn!r:.60}: give one.")

        def observed(key: Key, configuration: Configuration, num_episodes: int) -> Trajectories:
            seed = int(generator(key).integers(2**31))
            env = self.environment(configuration)
            try:
                kept = kept_numbers(env.observation_space, self.feature_names)
                act = acting(agent, seed, configuration) if learn is None else _learned(learn, env, seed, configuration)
                seen = play(env, act, num_episodes, seed, configuration, to_do=GO_ON)
                return replace(seen, features=seen.features[..., kept])
            finally:
                close(env)

        return observed


MOST_SIMULATED_STEPS = 2500
"""Simulations for designs and forecasts begin no episode after so many steps."""

GO_ON = f"{CORRECT}; a study also goes on if it is told what was seen elsewhere (study tell, --configuration)"
"""What to do where an environment that worked at the bounds fails between them."""


def _learned(learn: Callable[[Any], Any], env: Any, seed: int, configuration: Configuration) -> Act:
    """The agent that is trained here."""
    at = place(configuration)
    with Blamed(f"learn(env) failed {at}", "correct that function"):
        agent = learn(env)
    try:
        Player(agent)
    except InputError as error:
        raise InputError(f"learn(env) must return an agent, found another thing {at}: {error}") from error
    return acting(agent, seed, configuration)


def _parameter(
    probe: Probe, reached: Reached, name: str, bounds: tuple[float, float], given: Sequence[float]
) -> ConfigurationParameter:
    """One entry of ω: its default is given, else the environment's own, else the middle."""
    own, (low, high) = probe.own[name].get(reached.way), bounds
    default = float(given[0] if given else own if is_number(own) and low <= own <= high else (low + high) / 2)
    if not low <= default <= high:
        raise InputError(
            f"the default of '{name}' must lie between {low:g} and {high:g}, found {default:g}: correct it."
        )
    also = followers(probe.alone, reached.way, name, bounds)
    follow = f"; {', '.join(also)} follow{'s' if len(also) == 1 else ''}" if also else ""
    return ConfigurationParameter(name, (), *bounds, default, f"{reached.words}{follow}")
