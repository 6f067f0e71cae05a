"""Two answers beside each other: of two agents (`compare`), or of asking an agent and watching it (`audit`)."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Literal, final

import numpy as np
from scipy.stats import norm

from policyspace.answer import Grade, Identification
from policyspace.asking.agents import AskedAgent, as_agent
from policyspace.asking.answer import (
    WAYS,
    AskedAnswer,
    AskedGroup,
    AskOptions,
    Cost,
    Effect,
    Way,
    Witness,
    count_of,
    guarantee_of,
)
from policyspace.asking.inputs import Groups
from policyspace.asking.inside import Questions
from policyspace.asking.paired import (
    ACTIVE,
    CANDIDATES,
    PAIRS,
    QUESTIONS,
    Asker,
    ask_paired,
    effect_states,
    log_pair_e_values,
)
from policyspace.asking.played import ask_played
from policyspace.asking.states import Counted
from policyspace.asking.ways import AskRequest, Prepared, choose_way, prepared
from policyspace.data.validation import explain_arguments
from policyspace.display import Answer, TextTable, listed_names, plain_data, remembering_its_call
from policyspace.errors import InputError, nearest, number_of
from policyspace.identification import identify
from policyspace.inference.betting import OnlinePredictor
from policyspace.runtime import say_progress

Change = Literal[
    "added", "dropped", "more", "less", "alike", "neither", "no evidence", "both", "only the first", "only the second"
]

WORDS: dict[Change, str] = {
    "added": "also reacts to {}",
    "dropped": "never reacts to {} any more",
    "more": "reacts more to {}",
    "less": "reacts less to {}",
}
"""Of the second agent, inside."""

SHOWN: dict[Change, str] = {
    "both": "Both agents react to {}",
    "only the second": "only the second was shown to react to {}",
    "only the first": "only the first was shown to react to {}",
    "no evidence": "no evidence for {}",
}
"""By bets, which show that an agent reacts, and never that it does not."""


@final
@dataclass(frozen=True)
class ComparedGroup:
    """What two agents do with one input, by the same questions."""

    group: str
    change: Change
    first: AskedGroup
    second: AskedGroup
    difference: Effect | None
    """Of the effects of any reading, second less first. Inside it is taken state by state, and the intervals of all inputs
    hold together; else each holds alone, and there is none where an effect was not measured."""


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
    apart: Effect | None
    """How far the actions of the two are apart in the same states; None of agents that were asked while they played."""
    environment: str | None
    num_states: int
    options: AskOptions
    cost: Cost
    way: Way = "inside"
    evidence: float | None = None
    """By pairs the wealth of bets that they act otherwise in the same states."""
    stopped: str = ""
    """Why it ended before all was asked; empty if it did not."""
    warnings: tuple[str, ...] = ()
    made_by: str = ""

    @property
    def act_otherwise(self) -> bool | None:
        """Was it shown that they act otherwise in the same states? None where they were not asked in the same."""
        if self.apart is None:
            return None
        return self.apart.estimate > 0 if self.evidence is None else self.evidence >= PARTS / self.options.significance

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
        words = WORDS if self.way == "inside" else SHOWN
        parts = [
            text.format(listed_names(names)) for change, text in words.items() if (names := self.of_change(change))
        ]
        if self.way != "inside":
            said = "; ".join(parts)
            otherwise = " They act otherwise in the same states." if self.act_otherwise else ""
            return f"{said[:1].upper()}{said[1:]}.{otherwise}"
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
                "–" if one.difference is None else str(one.difference),
                *(() if self.way == "inside" else (one.first.proof, one.second.proof)),
            )
            for one in self.groups
        ]
        columns = ("input", "change", "first, %", "second, %", "difference, %")
        return TextTable(columns if self.way == "inside" else (*columns, "proof, first", "proof, second"), rows)

    def notes(self) -> list[str]:
        """What must be read with the table."""
        where = "" if self.environment is None else f" in {self.environment}"
        asked = max((max(group.first.questions, group.second.questions) for group in self.groups), default=0)
        both, level = f"{self.agents[0]} and {self.agents[1]}{where}", f"{100 * self.options.significance:.4g} %"
        if self.way == "inside":
            return [
                f"{both}, {self.num_states} states of both; their actions differ by {self.apart} %.",
                f"Both were asked the same {count_of(asked)} questions about each input; 'added' and 'dropped' have a "
                f"witness. P(any false 'more' or 'less') ≤ {level} in these states.",
            ]
        condition = guarantee_of(self.way, self.options).conditions[0].text
        lines = [
            f"{both}, asked {WAYS[self.way]}, because not of both the distribution of the action can be computed.",
            f"Guarantee ({Grade.EXACT}): P(any false 'react' or 'otherwise', of both together) ≤ {level} (bets, closed "
            f"testing, at every look), assuming {condition}.",
            "That one was shown to react and the other was not is no proof that they differ; effects are at most the share "
            "of choices that move, and their margins hold with 95 % each.",
        ]
        if self.apart is not None:
            lines.insert(
                1,
                f"In the same states at least {self.apart} % of their choices differ, as far as a predictor sees it; the "
                f"wealth of bets that they do is {self.evidence:.3g}.",
            )
        if self.stopped:
            lines.append(f"Stopped early: {self.stopped}.")
        return lines + [f"Warning: {warning}" for warning in self.warnings]

    def to_dict(self) -> dict:
        """Everything as plain data."""
        rows = []
        for one in self.groups:
            effects = {
                name: None if group.effect_any is None else asdict(group.effect_any)
                for name, group in (("first", one.first), ("second", one.second))
            }
            difference = None if one.difference is None else asdict(one.difference)
            rows.append({"group": one.group, "change": one.change, **effects, "difference": difference})
        return plain_data(
            {
                "answer": self.sentence,
                "way": self.way,
                "agents": self.agents,
                "added": self.added,
                "dropped": self.dropped,
                "groups": rows,
                "apart": None if self.apart is None else asdict(self.apart),
                "evidence": self.evidence,
                "stopped": self.stopped,
                "warnings": self.warnings,
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
    way: str = "auto",
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

    Both are asked the same questions in the same states, which are those of the play of both. Where only actions of one of
    them come out, both are asked by pairs, and bets are made on which action is whose; where one can only act, both are
    asked while they play.

    Parameters
    ----------
    first, second : object, function or path
        Agents as of `ask`, for the same observations and actions.
    env : str, gymnasium.Env or vector environment, optional
        Where both play.
    log : array_like, dict of these, Sample or path, optional
        Observations to ask in, instead of those of their own play.
    way : {"auto", "inside", "paired", "played"}
        How both are asked, as of `ask`; by default the first way that both allow.
    features, groups, episodes, memory, budget, deterministic, trust, seed
        As of `ask`.
    significance : float, default 0.05
        The chance of any false "more" or "less"; by pairs and in play, of any false "react", of either agent.

    Returns
    -------
    Comparison
        With `added`, `dropped`, and the difference of the effects of each input.

    Raises
    ------
    InputError
        If one of them cannot be asked in this way, or they do not fit each other.

    Examples
    --------
    >>> import policyspace
    >>> old, new = (lambda seen: int(seen[2] > 0)), (lambda seen: int(seen[2] + seen[3] > 0))
    >>> print(policyspace.compare(old, new, "CartPole-v1", episodes=3).sentence)
    The second agent also reacts to angular_velocity, reacts less to angle.
    """
    options = AskOptions(("any",), memory, significance, budget, seed)
    said = AskRequest(way, features, groups, episodes, deterministic, None, seed, trust)
    with prepared(first, env, log, said) as ready:
        agents = (ready.agent, as_agent(second, ready.env, deterministic=deterministic, trust=trust))
        _check_alike(*agents)
        other_way = choose_way(agents[1], ready.states, way)[0]
        both_ways = tuple(one for one in WAYS if one in (ready.way, other_way))  # in the order of what they ask for
        states, log_given = ready.states, log is not None
        if both_ways[-1] == "played":
            if log_given:
                raise InputError("agents that are asked while they play need no log, found one: leave it out.")
            return _while_they_play(ready, agents, options, episodes)
        if not log_given:
            with prepared(agents[1], ready.env, None, replace(said, way=both_ways[-1])) as other:
                states = states.and_those_of(other.states)
        steps = Cost(0, 0 if log_given else len(states))
        if both_ways[-1] == "paired":
            return _by_pairs(replace(ready, states=states), agents, options, steps)
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
            asked[0].counted.cost + asked[1].counted.cost + steps,
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


# -- Of agents of which only actions come out: bets on either, and bets on which of two actions is whose.

PARTS = 3
"""Of δ: for the inputs of either agent, and for what tells the two apart."""


def _by_pairs(ready: Prepared, agents: tuple[AskedAgent, AskedAgent], options: AskOptions, steps: Cost) -> Comparison:
    """Both by pairs in the same states, each with its part of δ, and bets that they act otherwise."""
    states, inputs = ready.states, ready.inputs
    part = replace(options, significance=options.significance / PARTS)
    answers, warnings, stopped = [], list[str](), list[str]()
    for agent in agents:
        found, cost, why, more = ask_paired(agent, states, inputs, part, np.random.default_rng(options.seed))
        answers.append(found)
        steps += cost
        warnings += more
        stopped += [why] if why else []
    told, counted = None, [Counted(agent) for agent in agents]
    try:
        told = TwoAgents([Asker(one, states, inputs, 0, np.random.default_rng(options.seed)) for one in counted])
        told.run(options.budget or QUESTIONS, part.significance)
        apart: Effect | None = told.apart(effect_states(len(states), options.budget))
    except InputError as error:
        apart = None
        stopped.append(str(error))
    return Comparison(
        tuple(shown_of_both(*both) for both in zip(*answers, strict=True)),
        (agents[0].name, agents[1].name),
        apart,
        states.environment,
        len(states),
        options,
        steps + counted[0].cost + counted[1].cost,
        "paired",
        None if told is None else told.wealth,
        "; ".join(stopped),
        tuple(warnings),
    )


def _while_they_play(
    ready: Prepared, agents: tuple[AskedAgent, AskedAgent], options: AskOptions, episodes: int | None
) -> Comparison:
    """One after the other in the same environment, each with half of δ."""
    half = replace(options, significance=options.significance / 2)
    played = [ask_played(agent, ready.env, ready.states, ready.inputs, half, episodes, "")[0] for agent in agents]
    return Comparison(
        tuple(shown_of_both(*both) for both in zip(played[0].groups, played[1].groups, strict=True)),
        (agents[0].name, agents[1].name),
        None,
        ready.states.environment,
        sum(one.num_states for one in played),
        options,
        played[0].cost + played[1].cost,
        "played",
        None,
        "; ".join(one.stopped for one in played if one.stopped),
        tuple(dict.fromkeys(warning for one in played for warning in one.warnings)),
    )


def shown_of_both(first: AskedGroup, second: AskedGroup) -> ComparedGroup:
    """One input, by what the bets on both agents have shown."""
    shown = [one.verdict in ("reacts", "barely") for one in (first, second)]
    change: Change = "both" if all(shown) else "only the first" if shown[0] else "only the second"
    apart = None
    if first.effect_any is not None and second.effect_any is not None:
        middle = second.effect_any.estimate - first.effect_any.estimate
        own, other = (
            max(one.high - one.estimate, one.estimate - one.low) for one in (first.effect_any, second.effect_any)
        )
        margin = float(np.hypot(own, other))
        apart = Effect(middle, max(middle - margin, -1.0), min(middle + margin, 1.0))
    return ComparedGroup(first.group, change if any(shown) else "no evidence", first, second, apart)


@final
class TwoAgents:
    """Bets that two agents act otherwise in the same states.

    Both act in a state. If they act alike, their two actions may as well be exchanged; so a bet on which of them is whose
    is fair, whatever it is predicted by, as long as that was fitted to earlier actions alone. The predictor has one more
    input, which says who acts.
    """

    def __init__(self, asking: Sequence[Asker]) -> None:
        self.asking, self.rng = asking, asking[0].rng
        agent = asking[0].counted.agent
        choices = (0,) * agent.num_actions if agent.action_type == "continuous" else agent.choices
        self.predictor = OnlinePredictor(choices, growth=1.4)
        self.log_wealth, self.questions = 0.0, 0

    @property
    def wealth(self) -> float:
        """Of all bets so far."""
        return float(np.exp(min(self.log_wealth, 600.0)))

    def _numbers(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What describes states [n, p + 1] where the first agent acts, and where the second does."""
        known, ones = self.asking[0].numbers[rows], np.ones((len(rows), 1))
        return np.hstack([known, -ones]), np.hstack([known, ones])

    def _acted(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        first, second = (one.answers(one.shown(rows))[:, 0] for one in self.asking)
        return first, second

    def run(self, budget: int, significance: float) -> None:
        """Round after round until it is shown, or each has been asked so many questions."""
        size = len(self.asking[0].states)
        while self.questions < budget and self.wealth < 1 / significance:
            say_progress("comparing actions", self.questions, budget)
            pairs = min(PAIRS, budget - self.questions)
            rows = self.rng.integers(size, size=CANDIDATES)
            expected = self.predictor.expected_difference(*self._numbers(rows))
            best = np.argsort(-expected, kind="stable")[: min(ACTIVE, pairs) if self.predictor.ready else 0]
            rest = np.setdiff1d(np.arange(len(rows)), best)[: pairs - len(best)]  # in a random order
            rows = rows[np.concatenate([best, rest])]
            numbers, acted = self._numbers(rows), self._acted(rows)
            density = self.predictor.log_density
            own = density(numbers[0], acted[0]) + density(numbers[1], acted[1])
            exchanged = density(numbers[0], acted[1]) + density(numbers[1], acted[0])
            self.log_wealth += float(log_pair_e_values(own, exchanged).sum())
            self.questions += len(rows)
            self.predictor.tell(np.concatenate(numbers), np.concatenate(acted))
            self.predictor.refit()

    def apart(self, num_states: int) -> Effect:
        """How often the predictor tells from one action in a state whose it is, beyond chance, times two."""
        rows = self.rng.choice(len(self.asking[0].states), num_states, replace=False)
        numbers, acted = self._numbers(rows), self._acted(rows)
        guesses = [
            0.5 * np.sign(self.predictor.log_density(numbers[0], one) - self.predictor.log_density(numbers[1], one))
            for one in acted
        ]
        return mean_of(guesses[0] - guesses[1], 0.05)


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
