"""How often each test errs and how often it finds what is there, by simulation where the truth is known."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from policyspace.data.demonstrations import Demonstrations
from policyspace.errors import InputError
from policyspace.fits import likelihood_of
from policyspace.inference.choice import support_test
from policyspace.inference.eprocess import Follower, episodes_of
from policyspace.inference.mixture import Mixture
from policyspace.inference.rules import one_at_a_time
from policyspace.inference.wilks import WilksTest
from policyspace.policies.base import PolicySpace
from policyspace.policies.boltzmann import BoltzmannLinear
from policyspace.policies.network import GaussianNetwork


@dataclass(frozen=True)
class Scenario:
    """An agent whose controls are known, and how its data are looked at."""

    name: str
    controlled: tuple[str, ...]
    draw: Callable[[np.random.Generator], tuple[PolicySpace, Demonstrations]]
    peeking: bool = False  # a test after every episode, and the first rejection counts


@dataclass(frozen=True)
class Level:
    """What was measured: in how many runs anything false was found, and the share of the controlled that was found."""

    scenario: str
    test: str
    num_runs: int
    error: float  # the share of runs with any false "controlled"
    power: float

    @property
    def standard_error(self) -> float:
        """Of the error rate."""
        return float(np.sqrt(self.error * (1 - self.error) / self.num_runs))


def _choices(weights: np.ndarray, num_episodes: int, length: int) -> Callable[[np.random.Generator], tuple]:
    """A Boltzmann agent of weights [k, q]; the features that carry no weight are the unused ones."""

    def draw(rng: np.random.Generator) -> tuple[PolicySpace, Demonstrations]:
        k, q = weights.shape
        names, actions = tuple(f"x{j}" for j in range(q)), tuple(f"a{i}" for i in range(k + 1))
        space = BoltzmannLinear(names, actions)
        theta = np.hstack([np.zeros((k, 1)), weights]).ravel()
        features = rng.normal(size=(num_episodes * length, q))
        episodes = np.arange(num_episodes * length) // length
        return space, Demonstrations(features, space.sample(rng, theta, features), names, actions, episodes)

    return draw


def _network(num_pairs: int) -> Callable[[np.random.Generator], tuple]:
    """Eight tanh units, two of four inputs unused; the same network in every run, other states and actions."""
    names = ("x0", "x1", "x2", "x3")
    space = GaussianNetwork(names, ("a",), (8,), 0.1)
    theta = np.random.default_rng(7).normal(size=space.num_parameters)
    theta[[i for g in space.groups[2:4] for i in g.indices]] = 0.0
    theta[space.layer_indices[1][0]] *= 0.5

    def draw(rng: np.random.Generator) -> tuple[PolicySpace, Demonstrations]:
        features = rng.normal(size=(num_pairs, 4))
        actions = space.sample(rng, theta, features)
        return space, Demonstrations(features, actions, names, ("a",), np.arange(num_pairs) // 20)

    return draw


_LINEAR = np.array([[0.6, -0.3, 0, 0, 0], [0.3, 0.4, 0, 0, 0]])
_GREEDY = np.array([[12.0, -6.0, 0, 0, 0]])
_STREAM = np.array([[0.6, 0, 0]])

SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("linear", ("x0", "x1"), _choices(_LINEAR, num_episodes=15, length=20)),
        Scenario("linear-long", ("x0", "x1"), _choices(_LINEAR, num_episodes=75, length=20)),
        Scenario("separated", ("x0", "x1"), _choices(_GREEDY, num_episodes=8, length=6)),
        Scenario("network", ("x0", "x1"), _network(500)),
        Scenario("peeking", ("x0",), _choices(_STREAM, num_episodes=40, length=10), peeking=True),
    )
}


def measure(scenario: Scenario, test: str, num_runs: int, significance: float = 0.05, seed: int = 0) -> Level:
    """Rule 2 in `num_runs` simulated data sets; run r depends on the seed and r alone."""
    errors, found = 0, 0
    for run in range(num_runs):
        space, data = scenario.draw(np.random.default_rng([seed, run]))
        names = _peeked(space, data, test, significance) if scenario.peeking else _once(space, data, test, significance)
        errors += bool(names - set(scenario.controlled))
        found += len(names & set(scenario.controlled))
    return Level(scenario.name, test, num_runs, errors / num_runs, found / (num_runs * len(scenario.controlled)))


def _once(space: PolicySpace, data: Demonstrations, test: str, significance: float) -> set[str]:
    likelihood = likelihood_of(space, data, firth=test == "firth")
    decider = WilksTest(likelihood) if test == "firth" else support_test(test, likelihood, data, significance)
    verdicts = one_at_a_time(decider, significance)
    return {space.groups[g].name for g in verdicts.supports[0]}


def _peeked(space: PolicySpace, data: Demonstrations, test: str, significance: float) -> set[str]:
    """Everything that is rejected at any look, one look an episode."""
    found: set[str] = set()
    follower = Follower(space, significance)
    num_rows = 0
    for episode in episodes_of(data):
        num_rows += len(episode.features)
        if test == "eprocess":
            found |= set(follower.tell(episode).controlled)
            continue
        try:
            likelihood = likelihood_of(space, _first(data, num_rows))
            verdicts = one_at_a_time(WilksTest(likelihood) if test == "wilks" else Mixture(likelihood), significance)
        except InputError:
            continue  # too early to fit anything
        found |= {space.groups[g].name for g in verdicts.supports[0]}
    return found


def _first(data: Demonstrations, num_rows: int) -> Demonstrations:
    return Demonstrations(data.features[:num_rows], data.actions[:num_rows], data.names, data.action_names)
