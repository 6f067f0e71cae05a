"""Recommended configurations: expected return over the identified space, and its uncertainty."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np
from scipy.stats import qmc, t

from policyspace.display import Answer, TextTable, listed_names, plain_data, remembering_its_call
from policyspace.errors import InputError, escaped, number_of
from policyspace.families.jax_backend import jax
from policyspace.identified import IdentifiedSpace
from policyspace.report.figures import GREY, INK, SERIES, bare, format_of, new_figure, save
from policyspace.report.pages import banner, ending, figure_html, header, paragraph, section, table
from policyspace.report.use_pages import given_or_new, titled
from policyspace.runtime import check_seed, say_progress
from policyspace.study.figures import configuration_in_words
from policyspace.study.records import plain
from policyspace.worlds.base import Configurable, Configuration, Trajectories

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

    from policyspace.safe_io import JSON

Goal = Callable[[np.ndarray, np.ndarray, np.ndarray], float]
"""What a supervisor wants of an episode: from its features [T, q], actions [T] or [T, k], and rewards [T] a number."""

Played = Callable[[Configuration, tuple[str, ...], int], np.ndarray]
"""Returns of an agent that has learned, by configuration, what it uses, and the number of the learning."""

# -- What is tried.


@final
@dataclass(frozen=True)
class SearchOptions:
    """How many configurations are tried, and how often an agent learns in each."""

    configurations: int = 8
    """Spread over all that can be set, by Sobol's sequence."""
    refinements: int = 3
    """How often more are tried around the best, each time in a box of a third of the width."""
    around: int = 4
    """So many each time."""
    learnings: int = 3
    """Of an agent in each configuration, from other chances; the same chances in all configurations."""
    episodes: int = 500
    """Of each agent that has learned."""
    seed: int = 0

    def __post_init__(self) -> None:
        check_seed(self.seed)
        for name, least in (
            ("configurations", 2),
            ("refinements", 0),
            ("around", 1),
            ("learnings", 1),
            ("episodes", 2),
        ):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise InputError(f"{name} must be a whole number of at least {least}, found {value!r}: correct it.")


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


# -- The answer.


@final
@dataclass(frozen=True)
class Tried:
    """A configuration, and the mean return of agents that learned in it with one support."""

    configuration: Mapping[str, Any]
    value: float
    low: float
    high: float
    """The interval holds the mean over learnings with a confidence of 95 %; of one learning, over its episodes."""
    best_chance: float
    """The chance that none of the other configurations is better, by drawing learnings and episodes anew."""


@final
@dataclass(frozen=True)
class OfSupport:
    """All configurations that were tried, for agents that use one set of features."""

    support: tuple[str, ...]
    tried: tuple[Tried, ...]

    @property
    def best(self) -> int:
        """The number of the configuration with the highest return."""
        return int(np.argmax([one.value for one in self.tried]))

    @property
    def regrets(self) -> np.ndarray:
        """How much less every configuration returns than the best one."""
        values = np.array([one.value for one in self.tried])
        return np.asarray(values.max() - values)


@final
@dataclass(frozen=True)
class Recommendation(Answer):
    """The configuration to choose for an agent, for every set of features that it may use and for all of them together.

    Examples
    --------
    >>> import policyspace
    >>> world = policyspace.make_world("minigolf")
    >>> found = policyspace.recommend(
    ...     world, ["x", "sqrt_x"], configurations=2, refinements=0, learnings=1, learning_steps=20, episodes=50
    ... )
    >>> sorted(found.configuration)
    ['putter_length']
    """

    page: ClassVar[str] = "policyspace.recommending:recommend_page"
    ruled: ClassVar[bool] = True
    world: str
    choices: tuple[OfSupport, ...]
    """One for every set of features that was not rejected."""
    everything: OfSupport | None
    """For an agent that uses all features, as larger sets than those found are never rejected."""
    options: SearchOptions
    tolerance: float | None = None
    undecided: Mapping[str, float] = field(default_factory=dict)
    """By feature that may be used or not: the return that is lost at most by choosing as if it were the other way."""
    warnings: tuple[str, ...] = ()
    made_by: str = ""

    @property
    def regrets(self) -> np.ndarray:
        """How much less each configuration returns than the best one, by set of features [sets, configurations]."""
        return np.array([one.regrets for one in self.choices])

    @property
    def minimax(self) -> int:
        """The number of the configuration whose largest regret is smallest."""
        return int(np.argmin(self.regrets.max(axis=0)))

    @property
    def expected(self) -> int:
        """The number of the configuration whose mean regret is smallest, if all sets are as likely."""
        return int(np.argmin(self.regrets.mean(axis=0)))

    @property
    def chosen(self) -> Tried:
        """The recommended configuration, with the return of the first set of features."""
        return self.choices[0].tried[self.minimax]

    @property
    def configuration(self) -> Mapping[str, Any]:
        """The recommended ω: best for the one set of features, or the minimax choice over several."""
        return self.chosen.configuration

    @property
    def decided(self) -> bool:
        """Can no undecided feature change the return by more than the tolerance? False where none was given."""
        return self.tolerance is not None and float(self.regrets.max(axis=0)[self.minimax]) <= self.tolerance

    @property
    def sentence(self) -> str:
        """The configuration, its return, and what not knowing the features costs."""
        where = configuration_in_words(self.world, self.configuration)
        one = self.chosen
        if len(self.choices) == 1:
            using = listed_names(self.choices[0].support)
            return (
                f"Best for an agent that uses {using}: {where}; return {one.value:.3g} ({one.low:.3g} to {one.high:.3g}), "
                f"best of {len(self.choices[0].tried)} tried with probability {one.best_chance:.2f}."
            )
        worst = float(self.regrets.max(axis=0)[self.minimax])
        sets = number_of(len(self.choices), "set")
        return f"Choose {where}: whichever of {sets} of features the agent uses, at most {worst:.3g} of the return is lost."

    def table(self) -> TextTable:
        """One row a set of features: its own best, and what the choice returns."""
        rows = []
        for one in [*self.choices, *([self.everything] if self.everything else [])]:
            best, own = one.tried[one.best], one.tried[self.minimax]
            name = "all features" if one is self.everything else listed_names(one.support)
            rows.append(
                (
                    name,
                    configuration_in_words(self.world, best.configuration),
                    f"{best.value:.4g} ({best.low:.4g} to {best.high:.4g})",
                    f"{best.best_chance:.2f}",
                    f"{own.value:.4g}",
                    f"{one.regrets[self.minimax]:.3g}",
                )
            )
        columns = ("the agent uses", "best configuration", "return", "chance", "return of the choice", "lost")
        return TextTable(columns, rows)

    def notes(self) -> list[str]:
        """What must be read with the table."""
        options, tried = self.options, len(self.choices[0].tried)
        lines = [
            f"{number_of(tried, 'configuration')}, {number_of(options.learnings, 'learning')} in each, "
            f"{number_of(options.episodes, 'episode')} of each agent; the same chances in all configurations.",
            "Chance: that no other configuration that was tried is better, for an agent with these features.",
        ]
        if len(self.choices) > 1:
            where = configuration_in_words(self.world, self.choices[0].tried[self.expected].configuration)
            lines.append(f"The smallest mean loss over these sets, all as likely: {where}.")
        for name, loss in self.undecided.items():
            lines.append(f"Not knowing whether the agent uses {name} can cost {loss:.3g} of the return.")
        if self.everything is not None:
            lost = self.everything.regrets[self.minimax]
            lines.append(f"If the agent uses all features after all, the choice loses {lost:.3g} of the return.")
        if self.decided:
            lines.append(
                f"No undecided feature changes the return by more than the tolerance {self.tolerance:g}: a study may stop."
            )
        return lines + [f"Warning: {warning}" for warning in self.warnings]

    def to_dict(self) -> "dict[str, JSON]":
        """Everything as plain data."""

        def of(one: OfSupport) -> "dict[str, JSON]":
            tried = [plain_data({**asdict(a), "configuration": plain(a.configuration)}) for a in one.tried]
            return {"support": list(one.support), "best": one.best, "tried": tried}

        return {
            "answer": self.sentence,
            "world": self.world,
            "configuration": plain_data(plain(self.configuration)),
            "minimax": self.minimax,
            "expected": self.expected,
            "largest_regret": float(self.regrets.max(axis=0)[self.minimax]),
            "choices": [of(one) for one in self.choices],
            "everything": None if self.everything is None else of(self.everything),
            "undecided": plain_data(dict(self.undecided)),
            "tolerance": self.tolerance,
            "decided": self.decided,
            "options": plain_data(asdict(self.options)),
            "warnings": list(self.warnings),
        }

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the return against the configuration, one line a set of features, and mark the choice."""
        axes = given_or_new(ax, 4.6)
        fill_returns(axes, self)
        return titled(axes, self)


# -- The search.


@remembering_its_call
def recommend(
    world: Configurable | str,
    answer: Any,
    *,
    learn: Callable[[Any], Any] | None = None,
    goal: Goal | None = None,
    configurations: int = 8,
    refinements: int = 3,
    around: int = 4,
    learnings: int = 3,
    episodes: int = 500,
    learning_steps: int | None = None,
    discount: float = 1.0,
    everything: bool = True,
    tolerance: float | None = None,
    seed: int = 0,
) -> Recommendation:
    """Recommend the configuration in which an agent with the identified space does best.

    Agents learn inside each set of features that was not rejected, in configurations that are spread out and then refined
    around the best; the choice is the best one or, over several sets, the one that loses least in the worst case.

    Parameters
    ----------
    world : ConfMDP, GymnasiumWorld or str
        Where agents learn; one of our worlds by its name.
    answer : Identification, AskedAnswer, Study, path of their JSON, or list of names
        What the agent uses. Of a study or the combinatorial rule all minimal sets that were not rejected are taken.
    learn : callable, optional
        Of a Gymnasium environment: `learn(env)` returns an agent that it has trained there.
    goal : callable, optional
        What you want of an episode instead of the agent's own return: `goal(features, actions, rewards)`, a number.
    configurations, refinements, around : int
        How many configurations are spread out, how often more are tried around the best, and how many each time.
    learnings, episodes : int
        Of agents in each configuration, and of each agent.
    learning_steps : int, optional
        Of agents in our worlds; by default what the world needs.
    discount : float
        γ of returns in a Gymnasium environment; our worlds have their own.
    everything : bool
        Also say what an agent that uses all features would do.
    tolerance : float, optional
        A loss of return that does not matter: where no undecided feature can cause more, the answer says so.
    seed : int
        Same seed, same answer.

    Returns
    -------
    Recommendation
        The configuration, returns with intervals, and the regret over all sets of features.

    Raises
    ------
    InputError
        If nothing was identified, or the answer is about features that the world does not have.

    Examples
    --------
    >>> import policyspace
    >>> found = policyspace.recommend(
    ...     "minigolf", ["x", "sqrt_x"], configurations=2, refinements=0, learnings=1, learning_steps=20, episodes=50
    ... )
    >>> found.choices[0].support
    ('x', 'sqrt_x')
    """
    from policyspace.study.study import world_of
    from policyspace.worlds.confmdp import ConfMDP

    options = SearchOptions(configurations, refinements, around, learnings, episodes, seed)
    if tolerance is not None and not tolerance >= 0:
        raise InputError(f"the tolerance must be at least 0, found {tolerance!r}: correct it.")
    place = world if isinstance(world, ConfMDP) else world_of(world)
    if isinstance(place, ConfMDP):
        if learn is not None:
            raise InputError("learn= trains agents in a Gymnasium environment, found a world of ours: leave it out.")
        played = play_in_world(place, episodes, seed, goal, learning_steps)
    else:
        if learn is None:
            raise InputError("agents must learn in every configuration: give learn(env), which returns one (--learn).")
        played = play_in_environment(place, episodes, seed, goal, learn, discount)
    space = place.policy_space()
    if not place.parameters:
        raise InputError(f"nothing can be set in {place.name}: name its parameters with bounds.")
    known = IdentifiedSpace.of(answer).checked(space, f"the world {place.name}", "choose a configuration for")
    supports = [tuple(space.named(known.indices(space, one))) for one in known.supports]
    full = tuple(space.named(space.full_support))
    more = [full] if everything and full not in supports else []
    found = search(Cube(place), played, supports, more, options)
    choices = tuple(found[: len(supports)])
    # What is lost at most where the configuration is the best one of the other case.
    undecided = {
        name: max(
            float(one.regrets[other.best])
            for one in choices
            for other in choices
            if (name in one.support) != (name in other.support)
        )
        for name in known.undecided
    }
    warnings = [] if known.exhaustive else ["one set of features is known that explains the agent; others may exist."]
    if options.learnings == 1:
        warnings.append(
            "one learning a configuration says nothing of how learnings differ: intervals are of its episodes."
        )
    return Recommendation(
        place.name, choices, found[-1] if more else None, options, tolerance, undecided, tuple(warnings)
    )


def search(
    cube: Cube,
    played: Played,
    supports: Sequence[tuple[str, ...]],
    more: Sequence[tuple[str, ...]],
    options: SearchOptions,
) -> list[OfSupport]:
    """Spread configurations, and then more around the best of each set and around the choice over all sets."""
    size, every = cube.num_numbers, [*supports, *more]
    points = list(spread_points(options.configurations, size, options.seed))
    returns: list[list[np.ndarray]] = [[] for _ in every]  # by set and configuration [learnings, episodes]
    planned = len(points) + options.refinements * options.around
    total, done = planned * len(every) * options.learnings, 0

    def observe(configuration: Configuration) -> None:
        nonlocal done
        for values, support in zip(returns, every, strict=True):
            rows = []
            for number in range(options.learnings):
                say_progress("agents learn", done, total)
                rows.append(played(configuration, support, number))
                done += 1
            size = min(map(len, rows))
            values.append(np.array([row[:size] for row in rows]))

    for point in points:
        observe(cube.configuration(point))
    width = 1.0
    for refinement in range(options.refinements):
        width /= 3
        means = np.array([[one.mean() for one in values] for values in returns[: len(supports)]])
        regrets = means.max(axis=1, keepdims=True) - means
        centres = list(dict.fromkeys([int(regrets.max(axis=0).argmin()), *means.argmax(axis=1).tolist()]))
        for number, offset in enumerate(spread_points(options.around, size, options.seed + 1 + refinement)):
            centre = points[centres[number % len(centres)]]
            low = np.clip(centre - width / 2, 0.0, 1.0 - width)
            points.append(low + width * offset)
            observe(cube.configuration(points[-1]))
    places = [plain(cube.configuration(point)) for point in points]
    return [of_returns(support, places, values, options.seed) for support, values in zip(every, returns, strict=True)]


DRAWS = 1000
"""Of learnings and episodes, for the chance that a configuration is the best."""


def of_returns(
    support: tuple[str, ...], places: Sequence[Mapping[str, Any]], values: Sequence[np.ndarray], seed: int
) -> OfSupport:
    """Means, intervals and chances from the returns [learnings, episodes] in each configuration."""
    rng = np.random.default_rng(seed)
    means = np.array([one.mean(axis=1) for one in values])  # [configurations, learnings]
    learnings = means.shape[1]
    errors = np.array([one.std(axis=1, ddof=1) / np.sqrt(one.shape[1]) for one in values])
    if learnings > 1:
        margin = t.ppf(0.975, learnings - 1) * means.std(axis=1, ddof=1) / np.sqrt(learnings)
    else:
        margin = 1.96 * errors[:, 0]
    drawn = rng.integers(learnings, size=(DRAWS, learnings))
    noise = rng.normal(size=(DRAWS, *means.shape)) * errors
    again = np.stack([(means + one)[:, who].mean(axis=1) for one, who in zip(noise, drawn, strict=True)])
    chance = np.bincount(again.argmax(axis=1), minlength=len(values)) / DRAWS
    centre = means.mean(axis=1)
    return OfSupport(
        support,
        tuple(
            Tried(place, float(c), float(c - m), float(c + m), float(p))
            for place, c, m, p in zip(places, centre, margin, chance, strict=True)
        ),
    )


# -- Picture and page.

MOST_SHOWN = 12
"""Configurations of several numbers in a picture: the best ones."""


def plot_returns(found: Recommendation, path: "str | Path") -> None:
    """Save the picture; the suffix of the file names the format."""
    format_of(path)
    figure = new_figure(4.8, width=8.2)
    found.plot(figure.add_subplot())
    save(figure, path)


def fill_returns(axes: "Axes", found: Recommendation) -> None:
    """Against the one number that is set; of several numbers, the best configurations from left to right."""
    everyone = [*found.choices, *([found.everything] if found.everything else [])]
    names = list(found.configuration)
    single = len(names) == 1 and np.ndim(found.configuration[names[0]]) == 0
    values = np.array([one.value for one in found.choices[0].tried])
    if single:
        at = np.array([float(one.configuration[names[0]]) for one in found.choices[0].tried])
        order = np.argsort(at)
    else:
        at = np.argsort(np.argsort(-values)).astype(float) + 1
        order = np.argsort(at)[:MOST_SHOWN]
    for number, one in enumerate(everyone):
        colour = GREY if one is found.everything else SERIES[number % len(SERIES)]
        label = "all features" if one is found.everything else listed_names(one.support)
        middle, low, high = (np.array([getattr(a, end) for a in one.tried])[order] for end in ("value", "low", "high"))
        axes.plot(at[order], middle, "o-", color=colour, markersize=4, linewidth=1.6, label=label, zorder=3)
        axes.fill_between(at[order], low, high, color=colour, alpha=0.15, linewidth=0)
    axes.axvline(at[found.minimax], color=INK, linewidth=1, linestyle=(0, (4, 3)), label="the choice")
    shown = np.concatenate([[one.tried[i].value for i in order] for one in everyone])
    reach = np.ptp(shown) or 1.0
    axes.set_ylim(float(shown.min() - 0.15 * reach), float(shown.max() + 0.15 * reach))
    axes.set_xlabel(names[0] if single else "configurations, by their return for the first set", fontsize=9, color=INK)
    axes.set_ylabel("return of agents that learned there", fontsize=9, color=INK)
    bare(axes)
    axes.legend(frameon=False, fontsize=9, labelcolor=INK)


def recommend_page(found: Recommendation) -> Iterator[str]:
    """The parts of the page."""
    yield header(found.sentence, escaped(f"Agents learned in {found.world}."), "recommendation")
    yield from banner(escaped(f"Warning: {warning}") for warning in found.warnings)
    figure = new_figure(4.2, width=6.8)
    fill_returns(figure.add_subplot(), found)
    yield section(
        "Returns",
        figure_html(figure, "returns", "Return against the configuration, one line a set of features."),
        table(found.table(), "Every set of features, its best configuration and what the choice returns"),
    )
    yield section("How to read it", *(paragraph(note) for note in found.notes() if not note.startswith("Warning:")))
    rows = [
        (configuration_in_words(found.world, one.configuration), f"{one.value:.4g} ({one.low:.4g} to {one.high:.4g})")
        for one in found.choices[0].tried
    ]
    yield section("All that was tried", table(TextTable(("configuration", "return"), rows), "Every configuration"))
    settings = {name.replace("_", " "): str(value) for name, value in asdict(found.options).items()}
    yield from ending(settings, found.made_by, "The same world, answer and settings give the same page.")
