"""The experiments on configuring grid worlds: their settings, and how one agent is observed, configured for and judged."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypedDict, cast

import numpy as np

from policyspace.families.base import PolicySpace
from policyspace.families.jax_backend import jax
from policyspace.study.designs import DESIGNS, PaperObjective
from policyspace.study.loop import Observe, configure
from policyspace.study.records import Round
from policyspace.worlds import make_world
from policyspace.worlds.agents import learn
from policyspace.worlds.base import Configuration, Key, Trajectories
from policyspace.worlds.confmdp import ConfMDP, rollout
from policyspace_paper.execution import Procedure, RunSetting, RunSize
from policyspace_paper.printed import (
    LITERAL,
    AdamOptions,
    LearningOptions,
    ObjectiveOptions,
    PaperSettings,
    PrintedAlgorithm,
    by_adam,
    in_closed_form,
    procedures,
)

# -- One agent, observed in one configuration after another: what a run of these experiments is.


class Way(TypedDict, total=False):
    """How rounds are made: by which design, and how often."""

    design: str
    design_options: ObjectiveOptions
    num_attempts: int | None
    budget: int  # episodes of all rounds
    flat_first: bool  # begin at the world's flat configuration, if it has one


class RoundsSetting(Way, RunSetting, total=False):
    """How an agent is observed, for so many episodes in each round, identified and configured for."""

    part: str
    guess: str  # what is guessed otherwise, in the literal procedure
    adam: AdamOptions | None


class ConfiguringSetting(RoundsSetting, total=False):
    """The same in a world, whose agents learn as they do by default, or as is said here."""

    world: str
    learning: LearningOptions
    controls: list[str]  # drawn by the seed where they are not named, as is the first configuration
    initial: Configuration
    keep_rounds: bool


class ErrorRates(TypedDict):
    """α̂: the share of uncontrolled units selected; β̂: the share of controlled units missed; none where there are none."""

    false_positive_rate: float | None
    false_negative_rate: float | None
    any_false: bool


class AgentResult(ErrorRates, total=False):
    """What was found of one agent."""

    truth: list[str]
    selected: list[str]
    num_rounds: int
    total_episodes: int
    rounds: list[Mapping[str, Any]]  # where they are kept, as a study's file holds them


Learned = Callable[[frozenset[str], Configuration, Key], np.ndarray]
"""θ of an agent that owns these features and learned in this configuration."""


@lru_cache
def world_and_space(name: str) -> tuple[ConfMDP, PolicySpace]:
    """One world and one space a process, so that what was compiled for them is used again."""
    world = make_world(name)
    return world, world.policy_space()


def learner(world: ConfMDP, space: PolicySpace, options: LearningOptions) -> Learned:
    """Agents that learn as its world's agents do, or by some options."""
    return lambda truth, omega, key: learn(world, space, truth, omega, key, **options).theta


def run(setting: ConfiguringSetting) -> AgentResult:
    """One agent of a grid world."""
    world, space = world_and_space(setting["world"])
    return observed_agent(setting, world, space, learner(world, space, setting.get("learning", {})))


def observed_agent(setting: RoundsSetting, world: ConfMDP, space: PolicySpace, learned: Learned) -> AgentResult:
    """One agent in a random first configuration, observed until the rounds or the budget end; α̂ and β̂ of what is found.

    The agent learns anew in every configuration. The seed decides controls, first configuration, learning and episodes,
    so that ways of configuring are compared on the same agents.
    """
    given = cast(ConfiguringSetting, setting)
    controls, start, rounds_key = jax.random.split(jax.random.key(setting["seed"]), 3)
    truth = frozenset(given["controls"]) if "controls" in given else world.random_controls(controls)
    named = "initial" in given
    initial = world.check_configuration(given["initial"]) if named else world.random_configuration(start)
    if setting.get("flat_first"):
        initial = world.flat_configuration() or initial
    rounds = rounds_of(setting, world, space, observer(world, space, truth, learned), rounds_key, initial)
    story = {"rounds": [r.to_dict() for r in rounds]} if given.get("keep_rounds") else {}
    return cast(
        AgentResult,
        {
            "truth": sorted(truth),
            "selected": list(rounds[-1].selected),
            "num_rounds": len(rounds),
            "total_episodes": rounds[-1].total_episodes,
            **error_rates(truth, set(rounds[-1].selected), world.feature_names),
            **story,
        },
    )


def observer(world: ConfMDP, space: PolicySpace, truth: frozenset[str], learned: Learned) -> Observe:
    """Watches an agent that learns anew in every configuration."""

    def observe(key: Key, configuration: Configuration, num_episodes: int) -> Trajectories:
        learning, acting = jax.random.split(key)
        theta = learned(truth, configuration, learning)
        return rollout(world, space, theta, configuration, acting, num_episodes)

    return observe


def rounds_of(
    setting: RoundsSetting, world: ConfMDP, space: PolicySpace, observe: Observe, key: Key, initial: Configuration
) -> list[Round]:
    """The rounds of the paper's Algorithm 4, or those that this library makes, δ kept over all of them."""
    if setting.get("procedure") == "literal":
        return algorithm(setting, world, space, observe, key).simplified(initial)
    design = DESIGNS[setting["design"]](**setting["design_options"])
    rounds = configure(
        world, observe, key, space, "simplified", setting["significance"], design,
        setting.get("num_episodes"), setting.get("num_attempts"), setting.get("budget"), initial,
    )  # fmt: skip
    return list(rounds)


def algorithm(
    setting: RoundsSetting, world: ConfMDP, space: PolicySpace, observe: Observe, key: Key
) -> PrintedAlgorithm:
    """The paper's algorithms by the settings of a cell."""
    adam, attempts = setting["adam"], setting["num_attempts"]
    assert attempts is not None  # stated wherever the paper configures
    return PrintedAlgorithm(
        world, space, observe, key, PaperObjective(**setting["design_options"]),
        in_closed_form(space) if adam is None else by_adam(space, adam),
        setting["significance"], setting["num_episodes"], attempts,
    )  # fmt: skip


def error_rates(truth: frozenset[str], selected: set[str], names: tuple[str, ...]) -> ErrorRates:
    """Of what was selected among all units of these names."""
    wrong, missed = selected - truth, truth - selected
    uncontrolled = len(names) - len(truth)
    return {
        "false_positive_rate": len(wrong) / uncontrolled if uncontrolled else None,
        "false_negative_rate": len(missed) / len(truth) if truth else None,
        "any_false": bool(wrong),
    }


# -- `gridworld` and `continuous-gridworld` (Figures 1 and 5, Appendix C): by episodes of a round, at equal totals, whole
# stories, and other guesses.

COMPARED: dict[str, ObjectiveOptions] = {
    "none": {},
    "uniform": {},
    "paper": {"joint": True},
    "d-optimal": {},
    "noncentrality": {},
}
"""The designs compared at equal totals; the paper's objective asks for all undecided units together there."""
OTHER_STARTS = {"none": True, "paper": True, "d-optimal": False}
"""Those that a world with a flat configuration is also compared by from the other first one: whether that is the flat one.

Without them a comparison of designs is one of first configurations, too.
"""


STILL: Way = {"design": "none", "design_options": {}, "num_attempts": 0}
"""No configuration."""
DEFAULT: Way = {"design": "d-optimal", "design_options": {}, "num_attempts": 3}
"""How this library configures where nobody says otherwise."""
STORIES = 10
"""Agents of the paper's example, that learn and act by other chances; the first is drawn."""
STORY_ATTEMPTS = 10
"""Rounds of our design in a story, which ends before them where all is selected."""
GUESS_EPISODES, GUESS_RUNS = 100, 10
"""Where guesses are varied: episodes of a round, and agents."""


@dataclass(frozen=True)
class Configuring:
    """The settings of one world: plain data from which its cells follow."""

    experiment: str
    quick_episodes: tuple[int, ...]  # n of the miniature
    totals: tuple[int, ...]  # of all episodes that are paid for
    story: Mapping[str, object]  # controls and first configuration of the agent whose rounds are drawn
    guesses: Mapping[str, Mapping[str, Mapping[str, object]]]  # other options where the paper is silent, by the guess
    has_flat_start: bool = False  # whether the world has a flat configuration, which a first round may be at

    @property
    def stated(self) -> PaperSettings:
        """The paper's settings."""
        return LITERAL[self.experiment]

    def settings(self, size: RunSize) -> Iterable[ConfiguringSetting]:
        """By both procedures, with and without configuring by episodes of a round, and the story of the paper's example; by
        the literal one, with other guesses, too; by ours, all designs at equal totals.

        The parts differ in what one round costs, never in the agents.
        """
        agents, stories = (range(size.num_runs(runs, 1)) for runs in (self.stated.runs.value, STORIES))
        stated = self.stated
        attempts = 1 if size.quick or stated.num_attempts is None else stated.num_attempts.value
        printed: Way = {"design": "paper", "design_options": stated.objective, "num_attempts": attempts}
        for procedure in procedures(size):
            literal = procedure == "literal"
            for n in self.quick_episodes if size.quick else self.stated.num_episodes.value:
                for way in (STILL, printed if literal else DEFAULT):
                    for seed in agents:
                        yield {**self._shared(size, procedure, seed), "part": "episodes", "num_episodes": n, **way}
            way = printed if literal else {**DEFAULT, "num_attempts": 1 if size.quick else STORY_ATTEMPTS}
            told = [self._story(size, procedure, seed, way) for seed in stories]
            yield from told
            if literal and not size.quick:
                yield from self._guessed(size, printed)
                for name in self.guesses:
                    yield from (self._changed(setting, name, "story-guesses") for setting in told)
        if not size.as_published:
            for total in self.totals[1:2] if size.quick else self.totals:
                for design in ("none", "uniform", "d-optimal") if size.quick else COMPARED:
                    way = {"design": design, "design_options": COMPARED[design], **rounds_at(total, design)}
                    ways = [way]
                    if self.has_flat_start and design in OTHER_STARTS:
                        ways.append({**way, "flat_first": OTHER_STARTS[design]})
                    for seed in agents:
                        for way in ways:
                            yield {**self._shared(size, "ours", seed), "part": "totals", **way}

    def _guessed(self, size: RunSize, printed: Way) -> Iterable[ConfiguringSetting]:
        """The literal procedure with one of its guesses changed, on the first of its agents; what it does not have stays."""
        for name in self.guesses:
            for way in (STILL, printed):
                for seed in range(size.num_runs(GUESS_RUNS, 1)):
                    shared = self._shared(size, "literal", seed)
                    yield self._changed({**shared, "num_episodes": GUESS_EPISODES, **way}, name, "guesses")

    def _changed(self, setting: ConfiguringSetting, guess: str, part: str) -> ConfiguringSetting:
        """The same but for one guess, in the options that it has."""
        options = cast(Mapping[str, Any], setting)
        other = {entry: {**options[entry], **new} for entry, new in self.guesses[guess].items() if options.get(entry)}
        return cast(ConfiguringSetting, {**options, "part": part, "guess": guess, **other})

    def _story(self, size: RunSize, procedure: Procedure, seed: int, way: Way) -> ConfiguringSetting:
        """An agent of the paper's example; 100 episodes, as a round of 1000 shows nearly everything at once."""
        story = {**self._shared(size, procedure, seed), "part": "story", **way, **self.story}
        return cast(ConfiguringSetting, story | {"num_episodes": 100, "keep_rounds": True})

    def _shared(self, size: RunSize, procedure: Procedure, seed: int) -> ConfiguringSetting:
        """What all cells of a procedure share; by the paper's the agent learns and is fitted as that says.

        In a miniature all agents learn as the paper's do, which takes least.
        """
        stated = self.stated
        common: ConfiguringSetting = {
            "procedure": procedure, "world": self.experiment, "significance": stated.significance.value, "seed": seed,
        }  # fmt: skip
        if procedure == "literal":
            return {**common, "learning": stated.learning, "adam": stated.adam}
        return {**common, "learning": stated.learning} if size.quick else common


def rounds_at(total: int, design: str) -> Way:
    """Without configuration all episodes are one round, at full δ; the paper's begins where the agent is, and re-designs
    three times; others have as many rounds as the total pays for, the first at the flat configuration if there is one.
    """
    if design in ("none", "paper"):
        return {"budget": total, "num_attempts": 0 if design == "none" else 3}
    return {"budget": total, "flat_first": True}


GRIDWORLD = Configuring(
    experiment="gridworld",
    has_flat_start=True,
    quick_episodes=(10, 30),
    totals=(40, 120, 400),
    # The paper's example: all but the goal's column is known; starts lower left, goals lower right.
    story={
        "controls": [f"{name}_{level}" for name in ("row", "col", "goal_row") for level in range(4)],
        "initial": {
            name: [5.0 if level == peak else 1.0 for level in range(5)]
            for name, peak in (("row", 4), ("col", 0), ("goal_row", 4), ("goal_col", 4))
        },
    },
    guesses={
        "learning rate 0.03 instead of 0.1": {"learning": {"learning_rate": 0.03}},
        "configuration rate 0.1 instead of 0.01": {"design_options": {"learning_rate": 0.1}},
        "the best point of Adam's path instead of the last": {"adam": {"point": "best"}},
    },
)
CONTINUOUS = Configuring(
    experiment="continuous-gridworld",
    quick_episodes=(100,),
    totals=(40, 120, 400),
    # The paper's example: unknown to the agent are the goal's features in the two top rows.
    story={
        "controls": [
            *(f"agent_rbf_{i}_{j}" for i in range(5) for j in range(5)),
            *(f"goal_rbf_{i}_{j}" for i in range(5) for j in range(3)),
        ],
        "initial": {"x": -1.0, "y": -1.0, "goal_x": 1.0, "goal_y": 1.0},
    },
    guesses={
        "learning rate 0.1 instead of 0.01": {"learning": {"learning_rate": 0.1}},
        "configuration rate 0.1 instead of 0.01": {"design_options": {"learning_rate": 0.1}},
    },
)
STATED = GRIDWORLD.stated


# -- `gridworld-rule-1`: Rule 1 with configuration, by Algorithm 3 as printed and by ours, on the grid's four coordinates.

RULE_1_EPISODES = (30, 100, 300)
COORDINATES = ("row", "col", "goal_row", "goal_col")
"""The units: all features of a coordinate together, so that there are 16 sets to search and to configure for."""
NUM_ATTEMPTS = 3
"""N_conf for each set, as the paper has it for each feature of Rule 2; by ours, rounds of the joint design."""


class Rule1Result(TypedDict):
    """The true set, and the sets returned after the first round and at the end."""

    truth: list[str]
    first: list[list[str]]
    last: list[list[str]]
    num_rounds: int


def rule_1_settings(size: RunSize) -> Iterable[ConfiguringSetting]:
    """The same agents by both procedures."""
    literal = {"learning": STATED.learning, "adam": STATED.adam, "design_options": STATED.objective}
    ours = {"design": "d-optimal"}
    for procedure in procedures(size):
        for n in RULE_1_EPISODES[1:2] if size.quick else RULE_1_EPISODES:
            for seed in range(size.num_runs(STATED.runs.value, 1)):
                setting = {
                    "procedure": procedure,
                    "num_episodes": n,
                    "num_attempts": 1 if size.quick else NUM_ATTEMPTS,
                    "significance": STATED.significance.value,
                    "seed": seed,
                    **(literal if procedure == "literal" else ours),
                }
                yield cast(ConfiguringSetting, setting)


@lru_cache
def grouped() -> tuple[ConfMDP, PolicySpace]:
    """The grid world, and its space with a group a coordinate."""
    world = world_and_space("gridworld")[0]
    groups = {
        name: [f for f in world.feature_names if f.rpartition("_")[0] == name and f[-1].isdigit()]
        for name in COORDINATES
    }
    return world, world.policy_space(groups=groups)


def run_rule_1(setting: ConfiguringSetting) -> Rule1Result:
    """One agent that sees each coordinate with probability ½."""
    world, space = grouped()
    controls, start, key = jax.random.split(jax.random.key(setting["seed"]), 3)
    seen = np.asarray(jax.random.bernoulli(controls, 0.5, (len(COORDINATES),)))
    truth = frozenset(name for name, own in zip(COORDINATES, seen, strict=True) if own)
    observe = observer(world, space, truth, learner(world, space, setting.get("learning", {})))
    initial = world.random_configuration(start)
    if setting["procedure"] == "literal":
        found = algorithm(setting, world, space, observe, key).combinatorial(initial)
    else:
        rounds = configure(
            world, observe, key, space, "combinatorial", setting["significance"], DESIGNS[setting["design"]](),
            setting["num_episodes"], setting["num_attempts"], None, initial,
        )  # fmt: skip
        found = [one.supports for one in rounds]
    ordered = [name for name in COORDINATES if name in truth]
    return {"truth": ordered, "first": found[0], "last": found[-1], "num_rounds": len(found)}


# -- `gridworld-weights`: the discrete grid world with each scalar weight tested alone, as Rule 2 is written (Figure 1).

WEIGHTS_EPISODES = (10, 100, 1000)
"""Every other number of `gridworld`: a run of Algorithm 4 has up to 144 rounds here."""


def weights_settings(size: RunSize) -> Iterable[ConfiguringSetting]:
    """The agents of `gridworld` with and without configuration, by both procedures. A miniature leaves Algorithm 4 out."""
    assert STATED.num_attempts is not None
    literal = {"learning": STATED.learning, "adam": STATED.adam, "design_options": STATED.objective}
    rounds = {"design": "paper", "num_attempts": STATED.num_attempts.value}
    ways = {"literal": (STILL | literal, literal | rounds)[: 1 if size.quick else 2], "ours": (STILL, DEFAULT)}
    for procedure in procedures(size):
        for n in GRIDWORLD.quick_episodes if size.quick else WEIGHTS_EPISODES:
            for way in ways[procedure]:
                for seed in range(size.num_runs(STATED.runs.value, 1)):
                    common = {"procedure": procedure, "significance": STATED.significance.value, "num_episodes": n}
                    yield cast(ConfiguringSetting, common | {"seed": seed, **way})


@lru_cache
def weights_space() -> PolicySpace:
    """The space whose units are single weights: 48 of them, and the constants."""
    return world_and_space("gridworld")[0].policy_space(groups="parameter")


def run_weights(setting: ConfiguringSetting) -> AgentResult:
    """One agent, whose weights of a feature that it owns are all controlled; α̂ and β̂ over single weights."""
    world, space = world_and_space("gridworld")
    weights = weights_space()
    controls, start, rounds_key = jax.random.split(jax.random.key(setting["seed"]), 3)
    owned = world.random_controls(controls)
    observe = observer(world, space, owned, learner(world, space, setting.get("learning", {})))
    rounds = rounds_of(setting, world, weights, observe, rounds_key, world.random_configuration(start))
    names = tuple(weights.groups[g].name for g in weights.tested)
    truth = frozenset(name for name in names if name.partition("[")[0] in owned)
    return cast(AgentResult, {"num_rounds": len(rounds), **error_rates(truth, set(rounds[-1].selected), names)})
