"""Decisions: what configurations are worth to agents that learn inside a support, and the round that helps to choose."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, final

import numpy as np
from scipy.stats import qmc

from policyspace.errors import InputError
from policyspace.families.base import PolicySpace
from policyspace.families.jax_backend import jax
from policyspace.families.likelihood import ChiSquare
from policyspace.planning import Wilks
from policyspace.runtime import say_progress
from policyspace.study.designs import DesignProblem, Proposal, gain, information_per_episode, sobol
from policyspace.study.forecast import beyond_others
from policyspace.worlds.base import CannotBePlayed, Configurable, Configuration, Trajectories, generator
from policyspace.worlds.confmdp import ConfMDP

Goal = Callable[[np.ndarray, np.ndarray, np.ndarray], float]
"""What a supervisor wants of an episode: from its features [T, q], actions [T] or [T, k], and rewards [T] a number."""

Played = Callable[[Configuration, tuple[str, ...], int], np.ndarray]
"""Returns of an agent that has learned, by configuration, what it uses, and the number of the learning."""

LEVEL = 0.05
"""Of a round, when its power is forecast."""


def spread_points(count: int, num_numbers: int, seed: int) -> np.ndarray:
    """Points of the unit cube [count, d], by Sobol's sequence with a random shift."""
    rounded = 1 << max(count - 1, 0).bit_length()
    return np.asarray(qmc.Sobol(num_numbers, seed=seed).random(rounded)[:count])


@final
@dataclass(frozen=True)
class Cube:
    """The configurations of a world as points of a unit cube."""

    world: Configurable

    @property
    def num_numbers(self) -> int:
        """How many numbers can be set."""
        return sum(int(np.prod(parameter.shape)) for parameter in self.world.parameters)

    def configuration(self, point: np.ndarray) -> Configuration:
        """ω at a point."""
        found, start = {}, 0
        for parameter in self.world.parameters:
            size = int(np.prod(parameter.shape))
            part = point[start : start + size].reshape(parameter.shape)
            found[parameter.name] = parameter.low + part * (parameter.high - parameter.low)
            start += size
        return self.world.check_configuration(found)


# -- Agents that learn inside a support, and what they return.


def play_in_world(world: Any, episodes: int, seed: int, goal: Goal | None, learning_steps: int | None) -> Played:
    """Agents of a world of ours; all act in the same episodes, as far as their policies let them."""
    from policyspace.worlds.agents import learn

    space = world.policy_space()

    def played(configuration: Configuration, support: tuple[str, ...], number: int) -> np.ndarray:
        key = jax.random.fold_in(jax.random.key(seed), number)
        agent = learn(world, space, support, configuration, key, num_steps=learning_steps)
        seen = agent.act(world, configuration, jax.random.key(seed + 1), episodes)
        return returns_by(seen, goal, world.discount)

    return played


def play_in_environment(
    world: Any, episodes: int, seed: int, goal: Goal | None, learn: Callable[[Any], Any], discount: float
) -> Played:
    """Agents that the user trains in a Gymnasium environment, which hides the other numbers of an observation."""
    from gymnasium import ObservationWrapper
    from gymnasium.spaces import Box

    from policyspace.environments.checks import Blamed, close, place
    from policyspace.environments.gymnasium_world import as_actor, play

    class Hiding(ObservationWrapper):  # type: ignore[misc]
        """An environment in which only some numbers of an observation are shown; the others are 0."""

        def __init__(self, env: Any, shown: np.ndarray) -> None:
            super().__init__(env)
            self.shown = shown

        def observation(self, observation: Any) -> Any:
            """What is shown."""
            return np.where(self.shown, observation, 0).astype(np.asarray(observation).dtype)

    def played(configuration: Configuration, support: tuple[str, ...], number: int) -> np.ndarray:
        env = world.environment(configuration)
        try:
            space = env.observation_space
            if not isinstance(space, Box) or len(space.shape) != 1 or space.shape[0] != len(world.feature_names):
                raise InputError(
                    f"features are hidden in observations that are one row of numbers, found {space}: wrap the environment."
                )
            hiding = Hiding(env, np.array([name in support for name in world.feature_names]))
            with Blamed(f"learn(env) failed {place(configuration)}", "correct that function"):
                agent = learn(hiding)
            seen = play(hiding, as_actor(agent, seed + number, configuration), episodes, seed + number, configuration)
            return returns_by(seen, goal, discount)
        finally:
            close(env)

    return played


def returns_by(seen: Trajectories, goal: Goal | None, discount: float) -> np.ndarray:
    """The discounted return of each episode, or what the supervisor's goal makes of it [m]."""
    if goal is None:
        return np.asarray(seen.returns(discount))
    parts = (np.asarray(part) for part in (seen.features, seen.actions, seen.rewards))
    features, actions, rewards = parts
    found = []
    for i, size in enumerate(seen.lengths):
        value = goal(features[i, :size], actions[i, :size], rewards[i, :size])
        if not isinstance(value, int | float | np.number) or not np.isfinite(value):
            raise InputError(f"the goal must return a finite number for an episode, found {value!r:.60}: correct it.")
        found.append(float(value))
    return np.array(found)


# -- The decision, and the round that would make it safer.

MOST_SUBSETS = 4
"""Undecided features of which all subsets are looked at; of more each alone, all but each, none and all."""


def largest_regrets(values: np.ndarray) -> np.ndarray:
    """How much less each configuration returns than the best one, for the worst support, of [supports, configurations]."""
    return np.asarray((values.max(axis=1, keepdims=True) - values).max(axis=0))


def possible_supports(selected: Sequence[str], undecided: Sequence[str]) -> list[tuple[str, ...]]:
    """What an agent may use that surely uses what was selected."""
    size = len(undecided)
    sizes = range(size + 1) if size <= MOST_SUBSETS else (0, 1, size - 1, size)
    return [(*selected, *more) for count in dict.fromkeys(sizes) for more in combinations(undecided, count)]


@final
@dataclass(frozen=True, eq=False)
class ReturnTable:
    """Mean returns by support and configuration; agents learn when they are first asked for."""

    played: Played
    configurations: Sequence[Configuration]
    known: dict[tuple[frozenset[str], int], float] = field(default_factory=dict)

    def values(self, supports: Sequence[tuple[str, ...]]) -> np.ndarray:
        """[supports, configurations]."""
        wanted = [(frozenset(one), place) for one in supports for place in range(len(self.configurations))]
        new = [pair for pair in dict.fromkeys(wanted) if pair not in self.known]
        for done, (support, place) in enumerate(new):
            say_progress("agents learn", done, len(new))
            returns = self.played(self.configurations[place], tuple(sorted(support)), 0)
            self.known[support, place] = float(np.mean(returns))
        return np.array([self.known[pair] for pair in wanted]).reshape(len(supports), -1)


@final
@dataclass(frozen=True, eq=False)
class DecisionDesign:
    """The round that most lowers the regret of the decision which configuration is best for the agent.

    The decision is the minimax-regret choice over all supports that are possible. A round that shows a feature to be used
    leaves fewer supports, and a smaller regret; what a round is worth is the sum over undecided features of that fall, each
    times the power of the round to show the feature, if weights are as uncertain as the data leave them.
    """

    world: Configurable
    learn: Callable[[Any], Any] | None = None
    tolerance: float | None = None
    table: ReturnTable | None = None
    num_configurations: int = 8
    num_learned_episodes: int = 500
    num_candidates: int = 16
    num_simulated: int = 16
    name: str = "decision"
    joint: bool = True

    def __post_init__(self) -> None:
        if self.tolerance is not None and not self.tolerance >= 0:
            raise InputError(f"the tolerance must be at least 0, found {self.tolerance!r}: correct it.")

    def returns(self) -> ReturnTable:
        """Of agents in configurations that are spread out."""
        if self.table is not None:
            return self.table
        if isinstance(self.world, ConfMDP):
            played = play_in_world(self.world, self.num_learned_episodes, 0, None, None)
        elif self.learn is not None:
            played = play_in_environment(self.world, self.num_learned_episodes, 0, None, self.learn, 1.0)
        else:
            raise InputError(
                "the design 'decision' lets agents learn: give learn(env), which returns one that has learned (--learn)."
            )
        cube = Cube(self.world)
        places = [cube.configuration(point) for point in spread_points(self.num_configurations, cube.num_numbers, 0)]
        table = ReturnTable(played, places)
        object.__setattr__(self, "table", table)  # agents learn once
        return table

    def worth(self, space: PolicySpace, units: Sequence[int]) -> tuple[float, np.ndarray]:
        """The largest regret of the decision now, and how far it falls if a unit is shown to be used [units]."""
        undecided = [space.groups[u].name for u in units]
        selected = [name for name in space.named(space.full_support) if name not in undecided]
        supports = possible_supports(selected, undecided)
        values = self.returns().values(supports)
        now = float(largest_regrets(values).min())
        left = [largest_regrets(values[[name in one for one in supports]]).min() for name in undecided]
        return now, np.maximum(now - np.array(left), 0.0)

    def propose(self, question: DesignProblem) -> Proposal:
        """The candidate that is worth most; of candidates that are worth the same, the one that tells most."""
        low, high = question.box.bounds
        home = np.asarray(question.box.vector(question.logged.configuration), dtype=np.float64)
        unit = (home - low) / (high - low)
        points = np.vstack([unit, sobol(len(low), self.num_candidates, generator(question.key))])
        now, falls = self.worth(question.space, question.units)
        told, failed = [], list[CannotBePlayed]()
        for point in points:
            omega = question.box.configuration(low + (high - low) * point)
            try:
                seen = question.world.simulate(question.space, question.theta, omega, question.key, self.num_simulated)
                told.append(information_per_episode(question.space, question.theta, seen))
            except CannotBePlayed as error:
                failed.append(error)
                told.append(np.zeros(2 * (question.space.num_parameters,)))
        if len(failed) == len(points):
            raise failed[-1]
        typical = np.mean([np.diag(one) for one in told], axis=0)
        guess = np.diag(np.where(typical > 0, typical, 1.0))
        seen_so_far = question.logged.num_episodes * information_per_episode(
            question.space, question.theta, question.logged
        )
        uncertain = np.linalg.inv(seen_so_far + guess)
        values = [float(falls @ self._powers(question, one, uncertain)) for one in told]
        gains = [gain(question, one, guess) for one in told]
        best = max(range(len(points)), key=lambda i: (round(values[i], 9), gains[i]))
        warnings = [] if self.tolerance is None or now > self.tolerance else [
            f"no undecided feature changes the return of the best configuration by more than {now:.3g}, the tolerance is "
            f"{self.tolerance:g}: the study may stop."
        ]  # fmt: skip
        if not falls.any():
            warnings.append(
                "showing one more feature does not make the decision safer: the round tells most about all."
            )
        path = np.array([home, low + (high - low) * points[best]])
        omega = {name: np.asarray(entry) for name, entry in question.box.configuration(path[1]).items()}
        return Proposal(
            omega, self.name, question.names, values[best], now, 0.0, float(self.num_simulated), 1.0, path,
            np.array([values[0], values[best]]), warnings,
        )  # fmt: skip

    def _powers(self, question: DesignProblem, information: np.ndarray, uncertain: np.ndarray) -> np.ndarray:
        """The chance that the round shows each unit, at the effect that is expected of weights θ̂ ± their uncertainty."""
        space, count = question.space, question.num_episodes
        test = Wilks(ChiSquare(), LEVEL / max(len(question.units), 1))
        powers = []
        for u in question.units:
            mine = list(space.groups[u].indices)
            own, effect = beyond_others(information, space, u), question.theta[mine] - space.fixed[mine]
            rate = float(effect @ own @ effect + np.trace(own @ uncertain[np.ix_(mine, mine)]))
            powers.append(test.power(count, max(rate, 0.0), len(mine)))
        return np.array(powers)
