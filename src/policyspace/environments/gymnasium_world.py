"""A Gymnasium environment with settable parameters as a configurable world."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self, final

import gymnasium
import numpy as np
from gymnasium import Wrapper
from gymnasium.spaces import Box, Discrete, flatten
from gymnasium.wrappers import TimeLimit

from policyspace.environments.checks import (
    CORRECT,
    Blamed,
    CheckedEnvironment,
    close,
    feature_names,
    kept_numbers,
    levels_of,
    own_names,
    place,
)
from policyspace.environments.setters import (
    Environment,
    Make,
    Probe,
    Reached,
    RegisteredEnvironment,
    environment,
    followers,
    is_number,
    made,
)
from policyspace.environments.watching import Player
from policyspace.errors import InputError
from policyspace.families.base import PolicySpace
from policyspace.families.gaussian import GaussianLinear
from policyspace.families.softmax import SoftmaxLinear
from policyspace.safe_io import JSON, built
from policyspace.worlds.base import (
    Array,
    Configurable,
    Configuration,
    ConfigurationParameter,
    Key,
    Trajectories,
    generator,
)

# -- What an agent does in an environment: one of several actions, or numbers; as its space wants it, and as it is logged.

UNBOUNDED = 1e300
"""In place of infinity, which JSON does not have."""


def names_and_bounds(space: Any) -> tuple[tuple[str, ...], tuple[float, float] | None]:
    """Discrete actions by their numbers, or the components of a continuous one and the widest of their bounds."""
    if isinstance(space, Discrete):
        return tuple(str(int(space.start) + i) for i in range(int(space.n))), None
    if isinstance(space, Box) and len(space.shape) == 1:
        size = space.shape[0]
        names = ("action",) if size == 1 else tuple(f"action[{i}]" for i in range(size))
        return names, (max(float(space.low.min()), -UNBOUNDED), min(float(space.high.max()), UNBOUNDED))
    raise InputError(
        f"actions must be Discrete, or a Box of one row, found {space}: wrap the environment in a function."
    )


def to_environment_action(space: Any, action: Any, at: str) -> tuple[Any, Any]:
    """An action as the environment takes it, and as it is logged: a code from 0, or numbers that are never codes.

    What an agent returns may be of another type or shape, so long as it says the same.
    """
    try:
        found = np.asarray(action)
    except Exception as error:  # whatever an agent's own type does
        raise _refused(space, action, at) from error
    if found.dtype.kind not in "iufb" or found.size != math.prod(space.shape) or not np.isfinite(found).all():
        raise _refused(space, action, at)
    if isinstance(space, Discrete):
        code = found.item() - int(space.start)
        if code not in range(int(space.n)):
            raise _refused(space, action, at)
        return int(code + space.start), int(code)
    found = found.reshape(space.shape)
    if space.dtype.kind in "iu" and (found != np.rint(found)).any():
        raise _refused(space, action, at)
    if found.dtype.kind != "f" or space.dtype.kind in "iu":
        found = found.astype(space.dtype)
    return found, found.astype(found.dtype if found.dtype.kind == "f" else np.float64)  # a copy


def _refused(space: Any, action: Any, at: str) -> InputError:
    if isinstance(space, Discrete):
        wanted = f"one of the actions {int(space.start)} to {int(space.start + space.n) - 1}"
    else:
        whole, size = "whole " if space.dtype.kind in "iu" else "", math.prod(space.shape)
        wanted = f"{size} finite {whole}number{'s' if size > 1 else ''}"
    return InputError(f"the agent must choose {wanted}, found {action!r:.60} {at}: correct the agent.")


# -- What a user says of an environment, checked: parameters with bounds, names, and ways to reach it.


def checked_bounds(parameters: Mapping[str, Sequence[float]]) -> dict[str, tuple[float, float]]:
    """The bounds of every parameter."""
    if not isinstance(parameters, Mapping) or not all(isinstance(name, str) for name in parameters):
        raise InputError(
            f"parameters are names with bounds, {{'gravity': (5, 15)}}, found {parameters!r:.60}: write them so."
        )
    if not parameters:
        raise InputError("a world to configure needs a parameter, found none: name one with its bounds, gravity=5:15.")
    found = {}
    for name, given in parameters.items():
        listed = list(given) if isinstance(given, Sequence | np.ndarray) else []
        if len(listed) not in (2, 3) or not all(map(is_number, listed)) or not listed[0] < listed[1]:
            raise InputError(
                f"the parameter '{name}' needs bounds low < high, found {given!r:.40}: write (5, 15) or 5:15."
            )
        found[name] = float(listed[0]), float(listed[1])  # the third is the default
    return found


def checked_names(names: Sequence[str] | None) -> list[str] | None:
    """Names of the numbers and categories of an observation, if there are some."""
    if names is None:
        return None
    listed: list[Any] = list(names) if isinstance(names, Iterable) and not isinstance(names, str) else [None]
    if not all(isinstance(name, str) for name in listed):
        raise InputError(f"names are texts, ['east', 'north'], found {names!r:.60}: write them so.")
    return listed


def checked_ways(by: Mapping[str, str] | None) -> Mapping[str, str]:
    """How parameters reach an environment, as far as that is said."""
    if not isinstance(by, Mapping | None):
        raise InputError(f"by= is a way for each name, {{'gravity': 'attribute'}}, found {by!r:.60}: write it so.")
    return by or {}


# -- Episodes of an agent in a Gymnasium environment, played one after the other and kept as trajectories.

Act = Callable[[Any, bool], Any]
"""An agent while it acts: an action of the environment's own kind for an observation, and whether an episode starts."""

LONGEST = 1000
"""Steps after which an episode is cut off if it is simulated, or if its environment sets no limit."""


def as_actor(agent: Any, seed: int, configuration: Mapping[str, Any] | None = None) -> Act:
    """What an agent does: a function of the observation, or anything with a `predict` like stable-baselines3's models.

    A model draws its actions by its own chances, which begin at the seed where it can set them.
    """
    player = Player(agent)
    failed = f"the agent {player.name} failed {place(configuration or {})}"
    to_do = "correct it, or let one act that is made for this environment"

    def act(observation: Any, starts: bool) -> Any:
        with Blamed(failed, to_do):
            return player.act(observation, np.array([starts]))

    with Blamed(failed, to_do):
        player.seed(seed)
    return act


def play(
    env: Any,
    act: Act,
    num_episodes: int,
    seed: int,
    configuration: Mapping[str, Any] | None = None,
    most_steps: int | None = None,
    to_do: str = CORRECT,
) -> Trajectories:
    """Episodes at one configuration; the first one is seeded.

    With `most_steps`, as in simulations, no episode begins once there are so many, and none is longer than `LONGEST`.
    Observations are flattened to numbers before the agent has them; discrete actions become codes from 0. `to_do` is
    what is said of an environment that fails.
    """
    stage = CheckedEnvironment(env, configuration or {}, to_do)
    own = own_limit(env)
    longest = LONGEST if own is None or most_steps is not None else own
    rows: list[list[np.ndarray]] = []
    actions: list[list[Any]] = []
    rewards: list[list[float]] = []
    cut = 0
    while len(rows) < num_episodes and (most_steps is None or sum(map(len, rows)) < most_steps):
        now = stage.reset(seed if not rows else None)
        rows.append([])
        actions.append([])
        rewards.append([])
        while not (now.terminated or now.truncated) and len(rows[-1]) < longest:
            rows[-1].append(now.numbers)
            action, logged = to_environment_action(env.action_space, act(now.observation, len(rows[-1]) == 1), stage.at)
            now = stage.step(action)
            actions[-1].append(logged)
            rewards[-1].append(now.reward)
        cut += not (now.terminated or now.truncated)
    mask = np.arange(max(map(len, rows)))[None, :] < np.array([len(row) for row in rows])[:, None]
    known = {name: np.asarray(value, dtype=np.float64) for name, value in (configuration or {}).items()}
    seen, done, worth = (_padded(values, mask) for values in (rows, actions, rewards))
    words = (
        f"{cut} of {num_episodes} episodes were cut off after {LONGEST} steps, for the environment sets no limit: give it "
        "one (gymnasium.wrappers.TimeLimit).",
    )
    return Trajectories((), seen, done, worth, mask, known, words if cut and own is None else ())


def own_limit(env: Any) -> int | None:
    """The steps after which an environment itself ends an episode, if it says so."""
    limits = [getattr(env.spec, "max_episode_steps", None)]
    while isinstance(env, Wrapper):
        if isinstance(env, TimeLimit):
            limits.append(env._max_episode_steps)
        env = env.env
    return max((limit for limit in limits if limit is not None and limit > 0), default=None)


def _padded(episodes: list[Any], mask: np.ndarray) -> np.ndarray:
    """Lists of different lengths as one array, zero behind an episode's end."""
    values = np.array([value for episode in episodes for value in episode])
    padded = np.zeros((*mask.shape, *values.shape[1:]), dtype=values.dtype)
    padded[mask] = values
    return padded


# -- Any Gymnasium environment as a world that can be configured: no densities, only episodes.


@final
@dataclass(frozen=True)
class EnvironmentSpec:
    """What is known of an environment without running it, as a file can hold it."""

    name: str
    parameters: tuple[ConfigurationParameter, ...]
    ways: Mapping[str, str]  # how each parameter reaches it
    feature_names: tuple[str, ...]
    action_names: tuple[str, ...]
    action_bounds: tuple[float, float] | None
    own_names: tuple[str, ...] = ()  # of what an observation is made of, as its tools call it; not in older files

    def to_dict(self) -> dict[str, JSON]:
        """As JSON can hold it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, given: Mapping[str, JSON]) -> Self:
        """What `to_dict` gave."""
        made: Self = built(given, cls)
        return made


@final
@dataclass(frozen=True, eq=False)
class GymnasiumWorld(Configurable):
    """An environment, the parameters that can be set in it, and how each of them reaches it; `of` makes it.

    Features are the numbers of an observation and, of its categories, all levels but the one that it starts in: these are
    one unit, as in `identify`. Its policy space is linear, and only a guess: no agent here is known to be
    of it, so every batch is tested without a policy model.

    Parameters
    ----------
    facts : EnvironmentSpec
        All that is known of the environment.
    make : callable, optional
        Makes it; missing in a world that comes from a file, where all but playing works without.

    Examples
    --------
    >>> import policyspace
    >>> world = policyspace.GymnasiumWorld.of("Pendulum-v1", {"g": (5, 15)})
    >>> [parameter.name for parameter in world.parameters], len(world.feature_names)
    (['g'], 3)
    """

    facts: EnvironmentSpec
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
        facts = EnvironmentSpec(name, entries, ways, features, *names_and_bounds(example.env.action_space), tuple(own))
        close(example.env)
        return cls(facts, make)

    @classmethod
    def from_facts(cls, facts: EnvironmentSpec, env: Environment | None = None) -> Self:
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
        kind: Any = SoftmaxLinear if self.action_bounds is None else GaussianLinear
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
        self,
        agent: Any = None,
        learn: Callable[[Any], Any] | None = None,
        wrap: Callable[[Any], Any] | None = None,
    ) -> Callable[[Key, Configuration, int], Trajectories]:
        """How an agent is observed: the same one everywhere, or one that `learn(env) → agent` trains at every ω.

        With `wrap` it then acts in what that makes of the environment.
        """
        if (agent is None) == (learn is None):
            raise InputError("say who acts: an agent, or a function learn(env) that returns one; one of the two.")
        if learn is not None and not callable(learn):
            raise InputError(f"learn is a function learn(env) that returns an agent, found {learn!r:.60}: give one.")

        def observed(key: Key, configuration: Configuration, num_episodes: int) -> Trajectories:
            seed = int(generator(key).integers(2**31))
            env = self.environment(configuration)
            try:
                kept = kept_numbers(env.observation_space, self.feature_names)
                act = (
                    as_actor(agent, seed, configuration) if learn is None else _learned(learn, env, seed, configuration)
                )
                seen = play(wrap(env) if wrap else env, act, num_episodes, seed, configuration, to_do=GO_ON)
                return replace(seen, features=seen.features[..., kept])
            finally:
                close(env)

        return observed


MOST_SIMULATED_STEPS = 2500
"""Simulations for designs and forecasts begin no episode after so many steps."""

GO_ON = f"{CORRECT}; a study also goes on with data that were observed elsewhere (study tell, --configuration)"
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
    return as_actor(agent, seed, configuration)


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
