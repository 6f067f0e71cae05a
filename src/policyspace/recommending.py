"""Recommended configurations: expected return over the identified space, and its uncertainty."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np
from scipy.stats import t

from policyspace.display import Answer, TextTable, listed_names, plain_data, remembering_its_call
from policyspace.errors import InputError, escaped, number_of
from policyspace.identified import IdentifiedSpace
from policyspace.report.figures import GREY, INK, SERIES, bare, format_of, new_figure, save
from policyspace.report.pages import banner, ending, figure_html, header, paragraph, section, table
from policyspace.report.use_pages import given_or_new, titled
from policyspace.runtime import check_seed, say_progress
from policyspace.study.deciding import (
    Cube,
    Goal,
    Played,
    largest_regrets,
    play_in_environment,
    play_in_world,
    returns_by,
    spread_points,
)
from policyspace.study.figures import configuration_in_words
from policyspace.study.records import plain, same_configuration
from policyspace.worlds.base import Configurable, Configuration

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

    from policyspace.safe_io import JSON

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
    observed: bool = False
    """Are these returns of the agent itself, in the rounds of a study?"""
    made_by: str = ""

    @property
    def _values(self) -> np.ndarray:
        """Mean returns [sets, configurations]."""
        return np.array([[tried.value for tried in one.tried] for one in self.choices])

    @property
    def regrets(self) -> np.ndarray:
        """How much less each configuration returns than the best one, by set of features [sets, configurations]."""
        return np.array([one.regrets for one in self.choices])

    @property
    def minimax(self) -> int:
        """The number of the configuration whose largest regret is smallest."""
        return int(np.argmin(largest_regrets(self._values)))

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
        return self.tolerance is not None and float(largest_regrets(self._values)[self.minimax]) <= self.tolerance

    @property
    def sentence(self) -> str:
        """The configuration, its return, and what not knowing the features costs."""
        where = configuration_in_words(self.world, self.configuration)
        one = self.chosen
        if len(self.choices) == 1:
            using = listed_names(self.choices[0].support or ("nothing",))
            whom = "this agent" if self.observed else f"an agent that uses {using}"
            return (
                f"Best for {whom}: {where}; return {one.value:.3g} ({one.low:.3g} to {one.high:.3g}), "
                f"best of {len(self.choices[0].tried)} tried with probability {one.best_chance:.2f}."
            )
        worst = float(largest_regrets(self._values)[self.minimax])
        sets = number_of(len(self.choices), "set")
        return f"Choose {where}: whichever of {sets} of features the agent uses, at most {worst:.3g} of the return is lost."

    def table(self) -> TextTable:
        """One row a set of features: its own best, and what the choice returns."""
        rows = []
        for one in [*self.choices, *([self.everything] if self.everything else [])]:
            best, own = one.tried[one.best], one.tried[self.minimax]
            name = "all features" if one is self.everything else listed_names(one.support or ("nothing",))
            name = "what it uses" if self.observed else name
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
            f"What the agent itself returned in {number_of(tried, 'configuration')} of a study, in at least "
            f"{number_of(options.episodes, 'episode')} each."
            if self.observed
            else f"{number_of(tried, 'configuration')}, {number_of(options.learnings, 'learning')} in each, "
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
            "largest_regret": float(largest_regrets(self._values)[self.minimax]),
            "choices": [of(one) for one in self.choices],
            "everything": None if self.everything is None else of(self.everything),
            "undecided": plain_data(dict(self.undecided)),
            "tolerance": self.tolerance,
            "decided": self.decided,
            "observed": self.observed,
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
    world: Configurable | str | None,
    answer: Any,
    *,
    observed: bool = False,
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
        Where agents learn; one of our worlds by its name. None where a study's rounds are `observed`.
    answer : Identification, AskedAnswer, Study, path of their JSON, or list of names
        What the agent uses. Of a study or the combinatorial rule all minimal sets that were not rejected are taken.
    observed : bool
        The answer is a study of a real agent: compare what it returned in the rounds, and let no agents learn.
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
    if observed:
        if world is not None or learn is not None:
            raise InputError("returns that were observed are those of the study's world: name no world, nobody learns.")
        return of_study(answer, goal, discount, tolerance, seed)
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
    check_differ([one.value for every in found for one in every.tried], "these agents")
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


def check_differ(values: Sequence[float], whose: str) -> None:
    """Returns that are the same everywhere decide nothing."""
    if np.ptp(values) <= 1e-12 * max(np.abs(values).max(), 1e-300):
        raise InputError(
            f"the return of {whose} is {values[0]:.4g} in every configuration, so none is better: check the reward, or give "
            "another goal (--reward)."
        )


def of_study(answer: Any, goal: Goal | None, discount: float, tolerance: float | None, seed: int) -> Recommendation:
    """The configuration in which a real agent did best, of those in which a study has seen it."""
    from policyspace.study.study import Study

    if not isinstance(answer, Study):
        raise InputError(
            f"returns that were observed are kept by a study, found {type(answer).__name__}: give one (--from STUDY.sqlite)."
        )
    places, values = list[Mapping[str, Any]](), list[list[np.ndarray]]()
    for told in answer.rounds():
        seen = answer.episodes(told.number)
        if seen is None:
            raise InputError(
                f"round {told.number + 1} of the study was reported without rewards: tell logs with a column 'reward', as "
                "`policyspace watch` writes them, or let agents learn (without --observed)."
            )
        place = next((i for i, one in enumerate(places) if same_configuration(one, told.configuration)), len(places))
        if place == len(places):
            places.append(told.configuration)
            values.append([])
        values[place].append(returns_by(seen, goal, discount))
    rows = [np.concatenate(one)[None] for one in values]
    if len(rows) < 2:
        raise InputError(
            f"the agent was observed in {number_of(len(rows), 'configuration')}, so that none can be better than another: "
            "observe it in one more (`policyspace study ask`)."
        )
    if (few := min(one.shape[1] for one in rows)) < 2:
        raise InputError("a return needs at least two episodes a configuration, found one: observe it for longer.")
    check_differ(np.concatenate([one[0] for one in rows]).tolist(), "this agent")
    found = of_returns(IdentifiedSpace.of(answer).union, places, rows, seed)
    return Recommendation(
        answer.world.name, (found,), None, SearchOptions(max(len(rows), 2), 0, 1, 1, few, seed), tolerance,
        warnings=("if the agent learned anew in every round, the luck of learning is not in the intervals.",),
        observed=True,
    )  # fmt: skip


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
        margin = np.array([t.ppf(0.975, one.shape[1] - 1) for one in values]) * errors[:, 0]
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
        label = "all features" if one is found.everything else listed_names(one.support or ("nothing",))
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
