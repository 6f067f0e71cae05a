"""What asking an agent will cost, and what it can find, before it is asked."""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, final

import numpy as np

from policyspace.asking.answer import WAYS, AskOptions, Redraw, Way, count_of
from policyspace.asking.inputs import Groups
from policyspace.asking.inside import STATES, never_bound, numbers_of_questions, steps_of_memory
from policyspace.asking.paired import FEW, check_budget, questions_of_pairs, smallest_found
from policyspace.asking.played import STEPS
from policyspace.asking.readings import FIRST
from policyspace.asking.states import ENOUGH
from policyspace.asking.ways import AskRequest, prepared
from policyspace.display import Answer, TextTable, plain_data, remembering_its_call
from policyspace.errors import number_of

POWER = 0.95
"""The chance of finding an input, for which the smallest share of states is said."""


@final
@dataclass(frozen=True)
class AskForecast(Answer):
    """What it takes to ask an agent about its inputs, and how rare a reaction may be to be found.

    Examples
    --------
    >>> from policyspace.asking import forecast
    >>> print(forecast(lambda seen: int(seen[2] > 0), "CartPole-v1").sentence)
    Asking about 4 inputs takes 33 000 questions inside.
    """

    way: Way
    way_reason: str
    inputs: tuple[str, ...]
    num_states: int
    redraws: int
    questions: int
    smallest_share: float
    """Of the states: an input that moves the action in so many is found with a chance of 95 %; by pairs, of the choices:
    one that moves so many in the pairs chosen is found on average."""
    bound: float | None
    """Of an input that never moves it, on the share of states where it could; None by pairs."""
    agent: str
    environment: str | None = None
    seconds: float = field(default=0.0, compare=False)
    """Processor time of the agent, by how long it took for the first questions."""
    ruled: ClassVar[bool] = True
    made_by: str = ""

    @property
    def sentence(self) -> str:
        """The forecast in one plain sentence."""
        inputs = number_of(len(self.inputs), "input")
        if self.way == "played":
            return f"Asking about {inputs} takes at most {count_of(self.questions)} steps of play."
        most = "" if self.way == "inside" else "at most "
        return f"Asking about {inputs} takes {most}{count_of(self.questions)} questions {WAYS[self.way]}."

    def table(self) -> TextTable:
        """What each input gets, and what it then shows."""
        if self.way == "played":
            rows = [
                ("most steps with draws", count_of(self.num_states)),
                ("found, on average, if it moves", f"{100 * self.smallest_share:.2g} % of the choices"),
            ]
            return TextTable(("for each input", "how much"), rows)
        if self.bound is None:
            rows = [
                ("most questions of the bets", count_of(self.redraws)),
                ("questions of each effect", count_of(self.num_states)),
                ("found, on average, if it moves", f"{100 * self.smallest_share:.2g} % of the choices in these pairs"),
            ]
            return TextTable(("for each input", "how much"), rows)
        rows = [
            ("states", count_of(self.num_states)),
            ("readings put in, in each state and of each kind", str(self.redraws)),
            ("found with 95 % if it moves the action in", f"{100 * self.smallest_share:.2g} % of the states"),
            ("never found: moves it in less than", f"{100 * self.bound:.2g} % of the states"),
        ]
        return TextTable(("for each input", "how much"), rows)

    def notes(self) -> list[str]:
        """What must be read with the table."""
        where = "" if self.environment is None else f" in {self.environment}"
        lines = [f"{self.agent}{where}. Asked {WAYS[self.way]}: {self.way_reason}."]
        if self.way != "played":
            lines.append(f"About {self.seconds:.2g} s of the agent's processor time, without its play.")
        if self.smallest_share > (0.1 if self.way == "inside" else FEW):
            lines.append("Warning: such a budget finds only what moves the action often: give a larger one.")
        return lines

    def to_dict(self) -> dict:
        """Everything as plain data, but the seconds."""
        found = {name: value for name, value in asdict(self).items() if name not in ("seconds", "made_by")}
        return {"forecast": self.sentence} | plain_data(found)


@remembering_its_call
def forecast(
    agent: Any,
    env: Any = None,
    log: Any = None,
    *,
    way: str = "auto",
    features: Sequence[str] | None = None,
    groups: Groups | None = None,
    episodes: int | None = None,
    redraw: Sequence[Redraw] = ("any", "likely"),
    memory: int | None = None,
    significance: float = 0.05,
    budget: int | None = None,
    deterministic: bool = False,
    algorithm: str | None = None,
    trust: bool = False,
    seed: int = 0,
) -> AskForecast:
    """What `ask` with the same arguments will cost, and what it can find; the agent plays one episode for it."""
    options = AskOptions(tuple(redraw), memory, significance, budget, seed)
    played = 1 if log is None else None
    said = AskRequest(way, features, groups, played, deterministic, algorithm, seed, trust)
    with prepared(agent, env, log, said) as ready:
        if ready.way == "played":
            steps, names = options.budget or STEPS, ready.inputs.groups
            drawn = max(steps - FIRST, 1)  # a step in which an input is drawn says as much as a question of a pair
            smallest = smallest_found(len(names), significance, drawn)
            agent_name, place = ready.agent.name, ready.states.environment
            return AskForecast("played", ready.reason, names, drawn, 0, steps, smallest, None, agent_name, place)
        planned = len(ready.states)
        if log is None:
            planned = max(planned * episodes if episodes is not None else ENOUGH, 1)
        rows, redraws = numbers_of_questions(planned, budget)
        lags = steps_of_memory(ready.agent, options) + 1
        questions = rows * lags * (1 + redraws * len(options.redraw) * len(ready.inputs.groups))
        smallest, bound = never_bound(rows, 1 - POWER), never_bound(rows, significance / len(ready.inputs.groups))
        if paired := ready.way == "paired":
            check_budget(options)
            redraws, rows, questions = questions_of_pairs(planned, len(ready.inputs.groups), lags, options)
            smallest = smallest_found(len(ready.inputs.groups), significance, redraws)
        batch = np.resize(np.arange(len(ready.states)), min(rows, STATES))
        states = ready.states.take(batch)
        begun = time.process_time()
        memory = ready.states.memories(ready.agent, batch)
        if paired:
            ready.agent.act(states, np.random.default_rng(seed), memory)
        else:
            ready.agent.law(states, memory)
        seconds = (time.process_time() - begun) / len(batch) * questions
        return AskForecast(
            ready.way,
            ready.reason,
            ready.inputs.groups,
            rows,
            redraws,
            questions,
            smallest,
            None if paired else bound,
            ready.agent.name,
            ready.states.environment,
            seconds,
        )
