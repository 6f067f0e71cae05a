"""Two answers beside each other: of two agents (`compare`), or of asking an agent and watching it (`audit`)."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal, final

import numpy as np
from scipy.stats import norm

from policyspace.answer import Identification
from policyspace.asking.agents import AskedAgent, as_agent
from policyspace.asking.answer import AskedAnswer, AskedGroup, AskOptions, Cost, Effect, Witness, count_of
from policyspace.asking.inputs import Groups
from policyspace.asking.inside import Questions
from policyspace.asking.states import Counted
from policyspace.asking.ways import AskRequest, choose_way, prepared
from policyspace.data.validation import explain_arguments
from policyspace.display import Answer, TextTable, listed_names, plain_data, remembering_its_call
from policyspace.errors import InputError, nearest, number_of
from policyspace.identification import identify
from policyspace.runtime import say_progress

Change = Literal["added", "dropped", "more", "less", "alike", "neither", "no evidence"]

WORDS: dict[Change, str] = {
    "added": "also reacts to {}",
    "dropped": "never reacts to {} any more",
    "more": "reacts more to {}",
    "less": "reacts less to {}",
}


@final
@dataclass(frozen=True)
class ComparedGroup:
    """What two agents do with one input, by the same questions."""

    group: str
    change: Change
    first: AskedGroup
    second: AskedGroup
    difference: Effect
    """Of the effects of any reading, second less first, state by state; the intervals of all inputs hold together."""


@final
@dataclass(frozen=True)
class Comparison(Answer):
    """Which inputs two agents react to, by the same questions in the same states.

    Examples
    --------
    >>> import policyspace
    >>> old, new = (lambda seen: int(seen[2] > 0)), (lambda seen: int(seen[2] + seen[3] > 0))
    >>> policyspace.compare(old, new, "CartPole-v1").added
    ('angular_velocity',)
    """

    ruled: ClassVar[bool] = True
    groups: tuple[ComparedGroup, ...]
    agents: tuple[str, str]
    apart: Effect
    """How far the actions of the two are apart in the same states."""
    environment: str | None
    num_states: int
    options: AskOptions
    cost: Cost
    made_by: str = ""

    def of_change(self, change: Change) -> tuple[str, ...]:
        """The inputs whose use has changed so."""
        return tuple(group.group for group in self.groups if group.change == change)

    @property
    def added(self) -> tuple[str, ...]:
        """The inputs that the second agent reacts to and the first never did."""
        return self.of_change("added")

    @property
    def dropped(self) -> tuple[str, ...]:
        """The inputs that the first agent reacts to and the second never did."""
        return self.of_change("dropped")

    def witness(self, name: str) -> Witness:
        """The state that shows the agent reacting that reacts more to an input."""
        found = {group.group: group for group in self.groups}
        if name not in found:
            raise InputError(f"there is no input '{name}': {nearest(name, found)}")
        both = [one.witness for one in (found[name].first, found[name].second) if one.witness is not None]
        if not both:
            raise InputError(f"neither agent was shown to react to '{name}'.")
        return max(both, key=lambda witness: witness.change)

    @property
    def sentence(self) -> str:
        """The answer in one plain sentence."""
        parts = [
            words.format(listed_names(names)) for change, words in WORDS.items() if (names := self.of_change(change))
        ]
        if not parts:
            return "Both agents react to the same inputs, as much as far as these questions show."
        return f"The second agent {', '.join(parts)}."

    def table(self) -> TextTable:
        """One row an input; effects of any reading in per cent."""
        rows = [
            (
                one.group,
                one.change,
                *("–" if group.effect_any is None else str(group.effect_any) for group in (one.first, one.second)),
                str(one.difference),
            )
            for one in self.groups
        ]
        return TextTable(("input", "change", "first, %", "second, %", "difference, %"), rows)

    def notes(self) -> list[str]:
        """What must be read with the table."""
        where = "" if self.environment is None else f" in {self.environment}"
        asked = max((max(group.first.questions, group.second.questions) for group in self.groups), default=0)
        return [
            f"{self.agents[0]} and {self.agents[1]}{where}, {self.num_states} states of both; their actions differ by "
            f"{self.apart} %.",
            f"Both were asked the same {count_of(asked)} questions about each input; 'added' and 'dropped' have a witness. "
            f"P(any false 'more' or 'less') ≤ {100 * self.options.significance:.4g} % in these states.",
        ]

    def to_dict(self) -> dict:
        """Everything as plain data."""
        rows = []
        for one in self.groups:
            effects = {
                name: None if group.effect_any is None else asdict(group.effect_any)
                for name, group in (("first", one.first), ("second", one.second))
            }
            rows.append({"group": one.group, "change": one.change, **effects, "difference": asdict(one.difference)})
        return plain_data(
            {
                "answer": self.sentence,
                "agents": self.agents,
                "added": self.added,
                "dropped": self.dropped,
                "groups": rows,
                "apart": asdict(self.apart),
                "environment": self.environment,
                "num_states": self.num_states,
                "cost": {"questions": self.cost.questions, "steps": self.cost.steps},
            }
        )


@explain_arguments
@remembering_its_call
def compare(
    first: Any,
    second: Any,
    env: Any = None,
    log: Any = None,
    *,
    features: Sequence[str] | None = None,
    groups: Groups | None = None,
    episodes: int | None = None,
    memory: int | None = None,
    significance: float = 0.05,
    budget: int | None = None,
    deterministic: bool = False,
    trust: bool = False,
    seed: int = 0,
) -> Comparison:
    """Which inputs one agent reacts to and another does not: what retraining added or dropped.

    Both are asked the same questions in the same states, which are those of the play of both.

    Parameters
    ----------
    first, second : object, function or path
        Agents as of `ask`, for the same observations and actions.
    env : str, gymnasium.Env or vector environment, optional
        Where both play.
    log : array_like, dict of these, Sample or path, optional
        Observations to ask in, instead of those of their own play.
    features, groups, episodes, memory, budget, deterministic, trust, seed
        As of `ask`.
    significance : float, default 0.05
        The chance of any false "more" or "less".

    Returns
    -------
    Comparison
        With `added`, `dropped`, and the difference of the effects of each input.

    Raises
    ------
    InputError
        If one of them cannot be asked inside, or they do not fit each other.

    Examples
    --------
    >>> import policyspace
    >>> old, new = (lambda seen: int(seen[2] > 0)), (lambda seen: int(seen[2] + seen[3] > 0))
    >>> print(policyspace.compare(old, new, "CartPole-v1", episodes=3).sentence)
    The second agent also reacts to angular_velocity, reacts less to angle.
    """
    options = AskOptions(("any",), memory, significance, budget, seed)
    said = AskRequest("inside", features, groups, episodes, deterministic, None, seed, trust)
    with prepared(first, env, log, said) as ready:
        agents = [ready.agent, as_agent(second, ready.env, deterministic=deterministic, trust=trust)]
        _check_alike(*agents)
        states = ready.states
        if log is None:
            with prepared(agents[1], ready.env, None, said) as other:
                states = states.and_those_of(other.states)
        choose_way(agents[1], states, "inside")
        asked = [
            Questions(Counted(agent), states, ready.inputs, options, np.random.default_rng(seed)) for agent in agents
        ]
        found = []
        for done, name in enumerate(ready.inputs.groups):
            say_progress("comparing", done, len(ready.inputs.groups))
            both = [one.ask(name) for one in asked]
            changes = [one.changes.get(name, np.zeros(len(one.rows))) for one in asked]
            found.append(compared(both[0], both[1], changes[1] - changes[0], significance / len(ready.inputs.groups)))
        apart = asked[0].laws[0].distance(asked[1].laws[0])
        return Comparison(
            tuple(found),
            (agents[0].name, agents[1].name),
            mean_of(apart, 0.05),
            states.environment,
            len(states),
            options,
            asked[0].counted.cost + asked[1].counted.cost + Cost(0, 0 if log is not None else len(states)),
        )


def compared(first: AskedGroup, second: AskedGroup, difference: np.ndarray, significance: float) -> ComparedGroup:
    """The change of one input, from the difference of its effects in each state."""
    apart = mean_of(difference, significance)
    shown = [one.witness is not None for one in (first, second)]
    change: Change = "alike" if all(shown) else "neither"
    if not first.questions:
        change = "no evidence"
    elif shown[0] != shown[1]:
        change = "added" if shown[1] else "dropped"
    elif apart.low > 0:
        change = "more"
    elif apart.high < 0:
        change = "less"
    return ComparedGroup(first.group, change, first, second, apart)


def mean_of(values: np.ndarray, significance: float) -> Effect:
    """A mean over states drawn at random, with its normal interval."""
    margin = norm.ppf(1 - significance / 2) * values.std(ddof=1) / len(values) ** 0.5
    return Effect(float(values.mean()), float(values.mean() - margin), float(values.mean() + margin))


def _check_alike(first: AskedAgent, second: AskedAgent) -> None:
    if first.action_space != second.action_space or first.observation_space != second.observation_space:
        raise InputError(
            f"both agents must see and do the same, found {first.observation_space} → {first.action_space} and "
            f"{second.observation_space} → {second.action_space}."
        )
    if first.deterministic != second.deterministic and first.action_type == "continuous":
        raise InputError("one agent acts by chance and the other does not: compare both deterministic=True.")


# -- Watched and asked side by side: what `identify` says from the log of an agent, and what the agent itself says.

Agreement = Literal["found", "missed", "false", "no evidence, rightly", "not shown", "no evidence", "not asked"]


@final
@dataclass(frozen=True)
class AuditedGroup:
    """One input as it was asked about and as it was watched."""

    asked: AskedGroup
    used: bool
    """By the log."""
    p_value: float
    """Adjusted for the number of inputs."""

    @property
    def agreement(self) -> Agreement:
        """What the log says, judged by what the agent does when it is asked."""
        if self.asked.verdict == "no evidence" and not self.asked.questions:
            return "not asked"
        if self.asked.verdict == "no evidence":  # which is no proof that the input is not used
            return "not shown" if self.used else "no evidence"
        if self.asked.verdict == "never":
            return "false" if self.used else "no evidence, rightly"
        return "found" if self.used else "missed"


@final
@dataclass(frozen=True)
class Audit(Answer):
    """What watching an agent shows of what asking it shows.

    Examples
    --------
    >>> import policyspace
    >>> from policyspace.asking import audit
    >>> answer = policyspace.ask(lambda seen: int(seen[2] + seen[3] > 0), "CartPole-v1", episodes=5)
    >>> audit(answer).of_agreement("false")
    ()
    """

    page: ClassVar[str] = "policyspace.asking.page:audit_page"
    ruled: ClassVar[bool] = True
    groups: tuple[AuditedGroup, ...]
    asked: AskedAnswer
    watched: Identification
    made_by: str = ""

    def of_agreement(self, agreement: Agreement) -> tuple[str, ...]:
        """The inputs about which the log is right or wrong in this way."""
        return tuple(group.asked.group for group in self.groups if group.agreement == agreement)

    @property
    def sentence(self) -> str:
        """The answer in one plain sentence."""
        found, missed, wrong = (self.of_agreement(one) for one in ("found", "missed", "false"))
        rows = f"{self.watched.data.num_rows} rows"
        total = number_of(len(found) + len(missed), "input")
        parts = [f"Watching {rows} finds {len(found)} of the {total} that the agent reacts to"]
        if self.asked.way == "inside":
            parts.append(
                f"names {listed_names(wrong)}, which it never reacts to"
                if wrong
                else "names none that it never reacts to"
            )
        else:
            named = self.of_agreement("not shown")
            parts.append(
                f"names {listed_names(named)}, which asking did not show"
                if named
                else "names none that asking did not show"
            )
        return " and ".join(parts) + "."

    def table(self) -> TextTable:
        """One row an input: as asked, as watched, and whether they agree."""
        rows = [
            (
                one.asked.group,
                one.asked.verdict,
                "–" if one.asked.effect_any is None else str(one.asked.effect_any),
                "used" if one.used else "no evidence",
                f"{one.p_value:.2g}",
                one.agreement,
            )
            for one in self.groups
        ]
        return TextTable(("input", "asked", "any, %", "watched", "adjusted p", "the log"), rows)

    def notes(self) -> list[str]:
        """What must be read with the table."""
        guarantee = self.watched.guarantee
        words = "No guarantee." if guarantee is None else f"Guarantee: {guarantee.text}"
        return [*self.asked.notes(), f"Watched by the {self.watched.test.name} test. {words}"]

    def to_dict(self) -> dict:
        """Both answers as plain data, and the agreement by input."""
        return {
            "answer": self.sentence,
            "agreement": {group.asked.group: group.agreement for group in self.groups},
            "asked": self.asked.to_dict(),
            "watched": self.watched.to_dict(),
        }


@remembering_its_call
def audit(answer: AskedAnswer, watched: Identification | None = None) -> Audit:
    """Compare what watching the agent shows with what it said when it was asked.

    Parameters
    ----------
    answer : AskedAnswer
        Of `policyspace.ask`.
    watched : Identification, optional
        Of `policyspace.identify`, about the same inputs; by default that of the log of the agent's play.

    Returns
    -------
    Audit
        With the inputs that the log finds, misses, or names falsely.

    Raises
    ------
    InputError
        If there is no log, or both are not about the same inputs.
    """
    if watched is None:
        groups: Any = {name: list(members) for name, members in answer.inputs.items() if len(members) > 1}
        watched = identify(
            answer.log, significance=answer.options.significance, **({"groups": groups} if groups else {})
        )
    found = {one.group: one for one in watched.groups}
    if missing := [group.group for group in answer.groups if group.group not in found]:
        raise InputError(
            f"both answers must be about the same inputs, found {listed_names(missing)} in one alone: give both the same "
            "features and groups."
        )
    rows = [(group, found[group.group]) for group in answer.groups]
    return Audit(
        tuple(AuditedGroup(group, test.rejected, test.adjusted_p_value) for group, test in rows), answer, watched
    )
