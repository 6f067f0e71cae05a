"""`ask`: choose the way of asking, play the agent, and test every input; `forecast` says before what it costs."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, final

import numpy as np

from policyspace.asking.agents import ONE_LINE, AskedAgent, as_agent
from policyspace.asking.answer import WAYS, AskedAnswer, AskOptions, Cost, Redraw, Way, count_of, guarantee_of
from policyspace.asking.inputs import Groups, Inputs
from policyspace.asking.inside import STATES, ask_inside, never_bound, numbers_of_questions, steps_of_memory
from policyspace.asking.paired import FEW, QUESTIONS, ask_paired, check_budget, questions_of_pairs, smallest_found
from policyspace.asking.played import STEPS, ask_played, check_pairs, check_place, returns_lost
from policyspace.asking.readings import FIRST
from policyspace.asking.states import ENOUGH, States, normalises, states_of
from policyspace.data.validation import explain_arguments
from policyspace.display import Answer, TextTable, listed_names, plain_data, remembering_its_call
from policyspace.environments.setters import environment
from policyspace.errors import InputError, nearest, number_of

TWICE = 50
"""States in which an agent is asked twice."""


@final
@dataclass(frozen=True)
class AskRequest:
    """What is said about an agent that is to be asked, its play and its inputs."""

    way: str = "auto"
    features: Sequence[str] | None = None
    groups: Groups | None = None
    episodes: int | None = None
    deterministic: bool = False
    algorithm: str | None = None
    seed: int = 0
    trust: bool = False


@final
@dataclass(frozen=True)
class Prepared:
    """All that it takes to ask an agent."""

    agent: AskedAgent
    env: Any
    make: Callable[[], Any] | None
    """Makes such environments, where that is known."""
    states: States
    inputs: Inputs
    way: Way
    reason: str
    """Of the way."""


@contextmanager
def prepared(agent: Any, env: Any, log: Any, said: AskRequest) -> Iterator[Prepared]:
    """Load the agent, make its environment, let it play, and choose the way; an environment made here is closed at last."""
    if env is None and hasattr(agent, "get_env"):
        env = agent.get_env()  # of a model of stable-baselines3
    makes = isinstance(env, str | type) or (callable(env) and not hasattr(env, "reset"))
    make = environment(env)[1] if makes else None
    place = env if make is None else make()
    try:
        asked = as_agent(agent, place, deterministic=said.deterministic, algorithm=said.algorithm, trust=said.trust)
        episodes = said.episodes
        if said.way == "played" or (said.way == "auto" and not asked.askable):
            if log is not None:
                raise InputError("an agent that is asked while it plays needs no log, found one: leave it out.")
            episodes = 1  # to know what its inputs are
        states = states_of(asked, place, log, episodes, said.features, said.seed)
        inputs = Inputs.of(
            asked.observation_space,
            env_id=states.env_id,
            features=said.features,
            groups=said.groups,
            frames=states.frames,
            observations=states.observations,
        )
        yield Prepared(asked, place, make, states, inputs, *choose_way(asked, states, said.way))
    finally:
        if make is not None:
            place.close()


def choose_way(agent: AskedAgent, states: States, wanted: str) -> tuple[Way, str]:
    """The way in which an agent is asked, and why."""
    ways = ("auto", "inside", "paired", "played")
    if wanted not in ways:
        raise InputError(f"there is no way '{wanted}': {nearest(wanted, ways)}")
    if wanted == "played":
        return "played", "as was said, readings are drawn while it acts"
    if not agent.askable:
        if wanted == "auto":
            return "played", "it can only act, step after step, so that readings are drawn while it does"
        raise InputError(
            f"{agent.name} can only act, step after step: ask it while it plays (way='played'), or {ONE_LINE}."
        )
    if wanted == "paired":
        return "paired", "as was said, its actions alone are compared"
    if not agent.has_law:
        if wanted == "auto":
            return "paired", "only its actions can be seen, which differ when it is asked again in the same state"
        raise InputError(
            f"{agent.name} answers otherwise when it is asked again, and says no probabilities: write a function of one "
            "observation that returns probabilities, or a mean and a standard deviation, or ask by pairs (way='paired')."
        )
    rows = np.unique(np.linspace(0, len(states) - 1, TWICE).astype(int))
    memory = states.memories(agent, rows)
    if not agent.repeats(states.take(rows), memory):
        if wanted == "auto":
            return "paired", "it answers otherwise when it is asked again in the same state"
        raise InputError(
            f"{agent.name} answers otherwise when it is asked again in the same state: switch off what it draws or learns "
            "when it is asked (dropout, noise, statistics of batches), or ask by pairs (way='paired')."
        )
    why = "the distribution of its action can be computed"
    if agent.deterministic:
        why = "it does the same whenever it is in the same state"
    return "inside", f"{why}, and {len(rows)} states asked twice agree"


@explain_arguments
@remembering_its_call
def ask(
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
    returns: int = 0,
    significance: float = 0.05,
    correction: str = "closed",
    budget: int | None = None,
    deterministic: bool = False,
    algorithm: str | None = None,
    trust: bool = False,
    seed: int = 0,
) -> AskedAnswer:
    """Which of its inputs an agent reacts to, found by changing them and asking what it would do.

    The agent plays first; then each input gets, in the states that it met, readings of other states.

    Parameters
    ----------
    agent : object, function or path
        A model of stable-baselines3, a torch module, a function of the observation, …: see `policyspace.asking.as_agent`.
    env : str, gymnasium.Env or vector environment, optional
        Where it plays, with the wrappers through which it sees: also an id, or `module:function` that makes one. By
        default that of a model of stable-baselines3.
    log : array_like of shape (n, …), dict of these, Sample or path, optional
        Observations to ask in, instead of those of its own play.
    way : {"auto", "inside", "paired", "played"}
        How it is asked: by the distributions of its action, by pairs of actions, or by readings drawn while it plays. "auto"
        takes the first way that the agent allows, and says which.
    features : sequence of str, optional
        Names of the numbers of an observation; known environments have their own.
    groups : mapping, str or pair of int, optional
        Features, or masks of an image, that are read together, by name; "channels", "frames", "symbols" or (rows, columns).
    episodes : int, optional
        How many it plays; by default enough for 2 000 states.
    redraw : sequence of {"any", "likely"}
        Readings of any row of the log, and of rows that are near in the other inputs.
    memory : int, optional
        How many steps after a reading an agent with a memory may still react to it; by default 8.
    returns : int, default 0
        In so many pairs of episodes each input is redrawn in every step, to find the return that is lost; 30 are customary.
    significance : float, default 0.05
        Of all bounds on inputs that it never reacted to; by pairs and in play, the chance of any false "reacts".
    correction : {"closed", "bh"}
        By pairs and in play: with "bh" the significance is the expected share of false "reacts" among all, so that more
        inputs are found.
    budget : int, optional
        The most questions about each input and kind of redraw; by default 4 000 inside, by pairs 600 of the bets and 1 000
        for each effect. Of an agent that plays the most steps, by default 2 000.
    deterministic : bool, default False
        Ask for its most probable action instead of its chances.
    algorithm : str, optional
        Of the file of a model of stable-baselines3, where it cannot be seen in it.
    trust : bool, default False
        Whether the file of an agent may run code when it is loaded, where it holds any.
    seed : int, default 0
        Of its play, and of all that is drawn.

    Returns
    -------
    AskedAnswer
        Verdict, effects and proof for each input.

    Raises
    ------
    InputError
        If the agent cannot be asked, does not fit the environment, or does not answer alike.

    Examples
    --------
    >>> import policyspace
    >>> answer = policyspace.ask(lambda seen: int(seen[2] + seen[3] > 0), "CartPole-v1", episodes=5)
    >>> answer.selected
    ('angle', 'angular_velocity')
    >>> print(answer.sentence)
    Reacts to angle and angular_velocity; never to position and velocity in 8 000 questions.
    """
    options = AskOptions(tuple(redraw), memory, significance, budget, seed, correction)
    check_pairs(returns)
    said = AskRequest(way, features, groups, episodes, deterministic, algorithm, seed, trust)
    with prepared(agent, env, log, said) as ready:
        states, inputs = ready.states, ready.inputs
        if returns:
            check_place(ready.env)
        if ready.way == "inside" and correction != "closed":
            raise InputError(
                "an agent that is asked inside is shown to react by witnesses, of which none is false: leave correction out."
            )
        if ready.way == "played":
            played, observed = ask_played(ready.agent, ready.env, states, inputs, options, episodes, ready.reason)
            return _with_returns(played, ready, observed, returns)
        warnings, rng = warnings_of(ready, options), np.random.default_rng(seed)
        if ready.way == "paired":
            found, cost, stopped, more_warnings = ask_paired(ready.agent, states, inputs, options, rng)
            warnings += more_warnings
        else:
            found, cost, stopped = ask_inside(ready.agent, states, inputs, options, rng)
        answer = AskedAnswer(
            found,
            ready.way,
            ready.reason,
            guarantee_of(ready.way, options, found),
            cost + Cost(0, 0 if states.recording is None else len(states)),
            options,
            ready.agent.name,
            states.environment,
            len(states),
            steps_of_memory(ready.agent, options),
            stopped,
            tuple(warnings),
            inputs=inputs.members,
            recording=states.recording or states.sample,
        )
        return _with_returns(answer, ready, states.observations, returns)


def _with_returns(answer: AskedAnswer, ready: Prepared, observed: Any, pairs: int) -> AskedAnswer:
    """The answer with what each input is worth in return; as it is where that was not asked for, or could not be found."""
    if not pairs or answer.stopped:
        return answer
    try:
        lost, cost, repeats = returns_lost(
            ready.agent, ready.env, ready.make, observed, ready.inputs, pairs, answer.options.seed
        )
    except InputError as error:
        return replace(answer, stopped=f"comparing returns, {error}")
    groups = tuple(replace(group, returned=lost[group.group]) for group in answer.groups)
    warnings = answer.warnings if repeats else (*answer.warnings, NOT_REPEATED)
    return replace(answer, groups=groups, cost=answer.cost + cost, warnings=warnings)


NOT_REPEATED = (
    "environment and agent do not repeat an episode with the same seeds, so that the pairs behind 'return lost' share no "
    "random numbers: its margins are wide, and an input that is not read has no loss of exactly 0."
)


def warnings_of(ready: Prepared, options: AskOptions) -> list[str]:
    """What an answer cannot say, or says less of than one might think."""
    found, states, inputs = list[str](), ready.states, ready.inputs
    if ready.agent.normalised and states.recording is not None and not normalises(ready.env):
        found.append(
            f"{ready.agent.name} was trained with VecNormalize, found an environment without it: if observations were "
            "normalised, load its statistics (--vecnormalize, VecNormalize.load)."
        )
    constant = [group for group, varies in states.varying(inputs).items() if not varies]
    if constant:
        found.append(
            f"{listed_names(constant)} always read the same in these states, and so were not asked about: give a log in "
            "which they vary."
        )
    if ready.way == "paired":
        check_budget(options)
        smallest = smallest_found(len(inputs.groups), options.significance, options.budget or QUESTIONS)
        if smallest > FEW:
            found.append(
                f"{options.budget} questions about each input are few: one that moves {100 * smallest:.0f} % of its choices "
                "or less may be missed."
            )
        return found
    rows, _ = numbers_of_questions(len(states), options.budget)
    bound = 1 - (options.significance / len(inputs.groups)) ** (1 / rows)
    if bound > 0.1:
        found.append(
            f"{rows} states are few: an input to which the agent reacts in {100 * bound:.0f} % of them may be missed."
        )
    return found


# -- What it will cost, and what it can find, before it is asked.

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
    correction: str = "closed",
    budget: int | None = None,
    deterministic: bool = False,
    algorithm: str | None = None,
    trust: bool = False,
    seed: int = 0,
) -> AskForecast:
    """What `ask` with the same arguments will cost, and what it can find; the agent plays one episode for it."""
    options = AskOptions(tuple(redraw), memory, significance, budget, seed, correction)
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
