"""The answer of asking an agent: verdicts, effects on actions, witnesses, and the guarantee."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, final, overload

from policyspace.answer import Grade, Guarantee, Note, Reason
from policyspace.data.columns import ColumnRoles
from policyspace.data.connectors import Recording
from policyspace.data.sample import Sample
from policyspace.data.schema import assemble
from policyspace.display import Answer, TextTable, frame_of, listed_names, plain_data
from policyspace.errors import InputError, nearest, number_of
from policyspace.inference.base import check_significance
from policyspace.runtime import check_seed, object_at
from policyspace.safe_io import JSON

if TYPE_CHECKING:
    import pandas
    import polars
    from matplotlib.axes import Axes

Verdict = Literal["reacts", "barely", "never", "no evidence"]

Way = Literal["inside", "paired", "played"]

Redraw = Literal["any", "likely"]
"""From where another reading is drawn: all rows of the log, or rows that are near in the other inputs."""

CORRECTIONS = ("closed", "bh")
"""Closed testing, for the chance of any false finding; or that of Benjamini and Hochberg, for their expected share."""

MATERIAL = 0.01
"""An effect of less than one per cent is `barely`."""


def verdict_of(effect: float) -> Verdict:
    """Of an input that the agent was shown to react to, by the mean effect of any reading."""
    return "reacts" if effect >= MATERIAL else "barely"


# -- What is asked.


@final
@dataclass(frozen=True)
class AskOptions:
    """How the agent is asked, whatever the way."""

    redraw: tuple[Redraw, ...] = ("any", "likely")
    memory: int | None = None
    """How many steps later a reading is still looked for; None: 0, or what an agent with a memory needs."""
    significance: float = 0.05
    budget: int | None = None
    """Most questions about each input, or steps of an agent that plays; None: the default of the way."""
    seed: int = 0
    correction: str = "closed"
    """Of bets for the number of inputs: one of `CORRECTIONS`."""

    def __post_init__(self) -> None:
        check_significance(self.significance)
        if self.correction not in CORRECTIONS:
            raise InputError(f"correction must be 'closed' or 'bh', found {self.correction!r}: correct it.")
        check_seed(self.seed)
        if not self.redraw or set(self.redraw) - {"any", "likely"} or "any" not in self.redraw:
            raise InputError(f"redraw must be ('any',) or ('any', 'likely'), found {self.redraw!r}: correct it.")
        for name, least in (("memory", 0), ("budget", 1)):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
                raise InputError(f"{name} must be a whole number of at least {least}, found {value!r}: correct it.")


@final
@dataclass(frozen=True)
class Cost:
    """What an answer has cost."""

    questions: int
    """States in which the agent was asked what it would do, whatever the input."""
    steps: int = 0
    """Steps that it played in the environment."""
    agent_seconds: float = field(default=0.0, compare=False)
    """Processor time of the agent and of the environment."""
    own_seconds: float = field(default=0.0, compare=False)
    """Processor time of everything else."""

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            self.questions + other.questions,
            self.steps + other.steps,
            self.agent_seconds + other.agent_seconds,
            self.own_seconds + other.own_seconds,
        )


# -- What is answered about one input.


@final
@dataclass(frozen=True)
class Effect:
    """How far the distribution of the action moves when an input is redrawn: a mean total variation and its interval.

    The interval, at 95 %, is for other episodes of the same agent, as many as the log has: states of one episode are alike.

    Of an agent whose actions are numbers without chance, how far the action moves as a share of its range.
    """

    estimate: float
    low: float
    high: float

    def __str__(self) -> str:
        if self.estimate == 0:
            return "0"
        margin = 100 * max(self.high - self.estimate, self.estimate - self.low)
        digits = 1 if margin >= 0.05 else min(1 - math.floor(math.log10(max(margin, 1e-9) * 2)), 5)
        return f"{100 * self.estimate:.{digits}f} ± {margin:.{digits}f}"


@final
@dataclass(frozen=True)
class ReturnLoss:
    """How much return is lost when an input is redrawn in every step of play, against the same play without it."""

    loss: Effect
    pairs: int
    pairs_needed: int | None
    """For a margin of ±10 % of the return; None where the loss is the same in all pairs."""

    def __str__(self) -> str:
        return f"{self.loss.estimate:.3g} ± {self.loss.high - self.loss.estimate:.2g}"


@final
@dataclass(frozen=True)
class Witness:
    """One state in which another reading of an input changes the distribution of the action: anyone can ask it again."""

    group: str
    row: int
    """Of the states that the agent was asked in."""
    reading: float | str
    other: float | str
    change: float
    """How far the action moves: the share of choices or, without chance, of its range."""
    later: int = 0
    """So many steps after the reading, of an agent with a memory."""
    observation: Any = field(default=None, repr=False, compare=False)
    """As the agent takes them from the reading on, batches of one; `asked` begins with the other reading."""
    asked: Any = field(default=None, repr=False, compare=False)
    memory: Any = field(default=None, repr=False, compare=False)

    def check(self, agent: Any) -> float:
        """Ask the agent both again: how far the action moves.

        `agent` is what `policyspace.asking.as_agent` returns.
        """
        if not self.observation:
            raise InputError("this witness was read from a file, which keeps no states: ask again to have them.")
        laws = []
        for sequence in (self.observation, self.asked):
            memory = agent.copy_memory(self.memory)
            for seen in sequence:
                law, memory = agent.law(seen, memory)
            laws.append(law)
        return float(laws[0].distance(laws[1])[0])

    def __str__(self) -> str:
        first, second = (one if isinstance(one, str) else f"{one:.3g}" for one in (self.reading, self.other))
        after = f" (+{self.later})" if self.later else ""
        size = 100 * self.change
        return f"{self.row}: {first} → {second}, {size:{'.0f' if size >= 1 else '.1g'}} %{after}"


@final
@dataclass(frozen=True)
class AskedGroup:
    """What asking says about one input, or a group of inputs that belong together."""

    group: str
    verdict: Verdict
    effect_any: Effect | None
    """When the input is redrawn from all readings of the log; None where it was not measured."""
    effect_likely: Effect | None = None
    """When it is redrawn from readings in similar states."""
    evidence: float | None = None
    """Wealth of the bets against "does not react"; None inside, where a witness is the proof."""
    questions: int = 0
    witness: Witness | None = None
    never_bound: float | None = None
    """Of `never`: an upper confidence bound on the share of states where it could react, for all inputs together."""
    lags: tuple[Effect, ...] = ()
    """Of an agent with memory: the effect of a reading that is 0, 1, 2, … steps old."""
    returned: ReturnLoss | None = None
    """What it is worth in return, where that was asked for."""

    @property
    def proof(self) -> str:
        """What the verdict rests on, in a few words."""
        if self.witness is not None:
            return str(self.witness)
        if self.never_bound is not None:
            return f"0 of {count_of(self.questions)}, < {100 * self.never_bound:.2g} %"
        if self.evidence is not None:
            return f"wealth {self.evidence:.3g} after {count_of(self.questions)}"
        return f"{count_of(self.questions)} questions"


# -- The answer.


@final
@dataclass(frozen=True)
class AskedAnswer(Answer):
    """Which inputs an agent reacts to, by how much, and what shows it.

    Examples
    --------
    >>> import policyspace
    >>> answer = policyspace.ask(lambda seen: int(seen[2] + seen[3] > 0), "CartPole-v1", episodes=3)
    >>> answer.selected
    ('angle', 'angular_velocity')
    >>> answer.never
    ('position', 'velocity')
    """

    page: ClassVar[str] = "policyspace.asking.page:asked_page"
    ruled: ClassVar[bool] = True
    groups: tuple[AskedGroup, ...]
    way: Way
    way_reason: str
    """Why it was asked in this way."""
    guarantee: Guarantee
    cost: Cost
    options: AskOptions
    agent: str
    environment: str | None = None
    num_states: int = 0
    """Of the log from which states and readings were drawn."""
    memory: int = 0
    """How many steps after a reading its effect was still looked for."""
    stopped: str = ""
    """Why it ended before all was asked; empty if it did not."""
    warnings: tuple[str, ...] = ()
    made_by: str = ""
    inputs: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    """By input the features that it is made of; none of an image."""
    recording: Recording | Sample | None = field(default=None, repr=False, compare=False)
    """What the agent saw and did when it played, or the log that was given."""

    @property
    def log(self) -> Sample:
        """What it saw and did when it played, as a sample: to be saved, or watched by `identify`."""
        if self.recording is None:
            raise InputError("this agent did not play, and the log that was given has no actions.")
        if isinstance(self.recording, Sample):
            return self.recording
        frame, roles = self.recording.stored()
        return assemble(frame, roles, ColumnRoles())

    def group(self, name: str) -> AskedGroup:
        """What was found about one input."""
        found = {group.group: group for group in self.groups}
        if name not in found:
            raise InputError(f"there is no input '{name}': {nearest(name, found)}")
        return found[name]

    def of_verdict(self, *verdicts: Verdict) -> tuple[str, ...]:
        """The inputs with one of these verdicts."""
        return tuple(group.group for group in self.groups if group.verdict in verdicts)

    @property
    def selected(self) -> tuple[str, ...]:
        """The inputs that it reacts to: the effect is at least one per cent."""
        return self.of_verdict("reacts")

    @property
    def barely(self) -> tuple[str, ...]:
        """The inputs that it reacts to by less than one per cent."""
        return self.of_verdict("barely")

    @property
    def never(self) -> tuple[str, ...]:
        """The inputs that it did not react to in any question."""
        return self.of_verdict("never")

    def witness(self, name: str) -> Witness:
        """The state and the two readings that show the agent reacting most to an input."""
        found = self.group(name)
        if found.witness is None:
            raise InputError(f"nothing shows that the agent reacts to '{name}', whose verdict is '{found.verdict}'.")
        return found.witness

    def lags(self, name: str) -> tuple[Effect, ...]:
        """The effect of a reading that is 0, 1, 2, … steps old."""
        found = self.group(name)
        return found.lags or (() if found.effect_any is None else (found.effect_any,))

    @property
    def sentence(self) -> str:
        """The answer in one plain sentence."""
        most, rest = max((group.questions for group in self.groups), default=0), self.of_verdict("no evidence")
        asked = max((group.questions for group in self.groups if group.group in rest), default=0)
        unit = "steps" if self.way == "played" else "questions"
        found = f"Reacts to {listed_names(self.selected)}" if self.selected else "Reacts to nothing by 1 % or more"
        parts = [found + (f", barely to {listed_names(self.barely)}" if self.barely else "")]
        if self.never:
            parts.append(f"never to {listed_names(self.never)} in {count_of(most)} questions")
        if rest:
            parts.append(f"no evidence for {listed_names(rest)} after {count_of(asked)} {unit}")
        return "; ".join(parts) + "."

    def table(self) -> TextTable:
        """One row an input; effects in per cent with their margins at 95 %."""
        likely = "likely" in self.options.redraw
        returned = any(group.returned for group in self.groups)
        columns = ["input", "verdict", "any, %", *(["likely, %"] if likely else [])]
        columns += ["return lost"] if returned else []
        rows = [
            (
                group.group,
                group.verdict,
                _cell(group.effect_any),
                *([_cell(group.effect_likely)] if likely else []),
                *([_cell(group.returned)] if returned else []),
                group.proof,
            )
            for group in self.groups
        ]
        return TextTable((*columns, "proof"), rows)

    def notes(self) -> list[str]:
        """What must be read with the table."""
        where = "" if self.environment is None else f" in {self.environment}"
        played = " of its own play" if self.cost.steps else " of a log"
        lines = [f"{self.agent}{where}, {self.num_states} states{played}, {count_of(self.cost.questions)} questions."]
        if self.way == "played":
            lines = [f"{self.agent}{where}, {count_of(self.num_states)} steps of its own play."]
        lines += [f"Asked {WAYS[self.way]}: {self.way_reason}."]
        if self.stopped:
            lines.append(f"Stopped early: {self.stopped}.")
        lines.append(f"Guarantee ({self.guarantee.grade}): {self._guaranteed}")
        if self.way == "played":
            lines.append(
                "Effects are the share of choices that a prediction of its actions sees moving in the steps that it played, "
                "without bias: at most the total variation."
            )
        if self.way == "paired":
            lines.append(
                "Effects are the share of choices that a predictor of its answers sees moving (right guesses of the reading "
                "by one answer, beyond chance, times two): at most the total variation."
            )
        worth = [group.returned for group in self.groups if group.returned is not None]
        if needed := max((one.pairs_needed or 0 for one in worth), default=0):
            pairs = number_of(worth[0].pairs, "pair")
            lines.append(
                f"Return lost in {pairs} of episodes; margins of 10 % of the return need {count_of(needed)} pairs."
            )
        if self.memory:
            lines.append(f"A reading was looked for up to {number_of(self.memory, 'step')} later.")
        return lines + [f"Warning: {warning}" for warning in self.warnings]

    @property
    def _guaranteed(self) -> str:
        if self.way != "inside":
            return self.guarantee.text
        shown = ["every 'reacts' has a witness, which can be asked again"] if self.selected + self.barely else []
        bound = max((group.never_bound or 0.0 for group in self.groups), default=0.0)
        level = f"with a confidence of {100 * (1 - self.guarantee.level):.4g} % for all inputs together"
        never = [f"'never' means in less than {100 * bound:.2g} % of such states, {level}"] if self.never else []
        return "; ".join([*shown, *never]) + "."

    @overload
    def to_frame(self, pandas: Literal[False] = False) -> "polars.DataFrame": ...

    @overload
    def to_frame(self, pandas: Literal[True]) -> "pandas.DataFrame": ...

    def to_frame(self, pandas: bool = False) -> "polars.DataFrame | pandas.DataFrame":
        """One row an input, in polars or, if asked, in pandas."""
        rows = [
            {
                "group": group.group,
                "verdict": group.verdict,
                **{
                    f"{kind}_{name}": None if effect is None else getattr(effect, name)
                    for kind, effect in (("any", group.effect_any), ("likely", group.effect_likely))
                    for name in ("estimate", "low", "high")
                },
                "evidence": group.evidence,
                "questions": group.questions,
                "never_bound": group.never_bound,
                "return_lost": None if group.returned is None else group.returned.loss.estimate,
            }
            for group in self.groups
        ]
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        return frame_of(columns, pandas)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw both effects of every input with their intervals, into the axes or a new figure of pyplot; return them."""
        axes: Axes = object_at("policyspace.asking.page:effect_axes")(self, ax)
        return axes

    def to_dict(self) -> dict[str, JSON]:
        """Everything as plain data, but the seconds and the states of the witnesses."""
        groups = []
        for group in self.groups:
            plain = asdict(group)
            if plain["witness"] is not None:
                plain["witness"] = {name: plain["witness"][name] for name in WITNESS_IN_FILES}
            groups.append(plain_data(plain))
        guarantee = {**asdict(self.guarantee), "grade": str(self.guarantee.grade), "text": self._guaranteed}
        guarantee["conditions"] = [str(condition.reason) for condition in self.guarantee.conditions]
        return {
            "answer": self.sentence,
            "way": self.way,
            "way_reason": self.way_reason,
            "selected": list(self.selected),
            "barely": list(self.barely),
            "never": list(self.never),
            "groups": groups,
            "guarantee": guarantee,
            "agent": self.agent,
            "environment": self.environment,
            "num_states": self.num_states,
            "memory": self.memory,
            "stopped": self.stopped,
            "cost": {"questions": self.cost.questions, "steps": self.cost.steps},
            "options": plain_data(asdict(self.options)),
            "warnings": list(self.warnings),
        }


WITNESS_IN_FILES = ("group", "row", "reading", "other", "change", "later")

WAYS = {"inside": "inside", "paired": "by pairs", "played": "while it plays"}
"""In words."""


def guarantee_of(way: Way, options: AskOptions, groups: Sequence[AskedGroup] = ()) -> Guarantee:
    """What is guaranteed by each way of asking; of `inside` it depends on how often each input was asked about."""
    if way == "inside":
        bound = max((group.never_bound or 0.0 for group in groups), default=0.0)
        verdict = f"if at all, in less than {100 * bound:.2g} % of these states"
        return Guarantee("fwer", options.significance, "Clopper–Pearson", "bonferroni", (), None, Grade.SHOWN, verdict)
    condition = Reason.ASKED_WITHOUT_TRACE if way == "paired" else Reason.DELIVERED_READINGS
    test = "bets on pairs of answers" if way == "paired" else "bets on the readings drawn"
    conditions = (Note(condition),)
    share = options.correction == "bh"
    return Guarantee(
        "fdr" if share else "fwer",
        options.significance,
        test,
        "e-BH" if share else "closed testing",
        conditions,
        None,
        Grade.EXACT,
        "reacts",
        "at every look",
    )


def count_of(number: int) -> str:
    """A number with a space between thousands."""
    return f"{number:,}".replace(",", " ")


def _cell(found: Effect | ReturnLoss | None) -> str:
    return "–" if found is None else str(found)
