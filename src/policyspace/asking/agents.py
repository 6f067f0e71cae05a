"""Agents that can be asked: anything that acts becomes an `AskedAgent`, by `as_agent`."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, Literal, final

import numpy as np
from gymnasium import spaces

from policyspace.asking.law import NOISE, Law
from policyspace.data.connectors import each_array, num_rows
from policyspace.environments.checks import Blamed, imported
from policyspace.environments.saved_agents import agent_from_file
from policyspace.environments.watching import stage_of
from policyspace.errors import InputError, reason_of
from policyspace.runtime import object_at

CHUNK = 4096
"""Rows that an agent is asked at once."""


class AskedAgent:
    """An agent that can be asked what it would do; every kind of agent becomes one of these, see `as_agent`.

    Observations are batches as the agent takes them: an array [n, …], or a dict of arrays. A memory is None, or arrays
    [n, …] in tuples and dicts, so that rows of it can be kept, copied and put back (`rows_of`).
    """

    has_law: bool = True
    """Can the distribution of its action be computed?"""
    has_memory: bool = False
    askable: bool = True
    """Can it be asked about any state at will? Else it only acts, step after step."""
    normalised: bool = False
    """Was it trained on observations that a wrapper of stable-baselines3 normalised, as far as its file says?"""

    def __init__(self, name: str, observation_space: Any, action_space: Any, deterministic: bool = False) -> None:
        self.name, self.observation_space, self.action_space = name, observation_space, action_space
        self.deterministic = deterministic
        """Does it do the same whenever it is in the same state?"""
        self.rng = np.random.default_rng(0)
        if action_space is None or observation_space is None:
            raise InputError(f"what {name} sees and does must be known, found no spaces: name its environment (env=).")
        if not isinstance(action_space, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary | spaces.Box):
            raise InputError(f"actions must be choices or numbers, found {action_space}: ask about a part of them.")

    @property
    def action_type(self) -> Literal["discrete", "continuous"]:
        """Is an action a choice, or numbers?"""
        return "continuous" if isinstance(self.action_space, spaces.Box) else "discrete"

    @property
    def num_actions(self) -> int:
        """Of one choice the number of actions, else how many choices or numbers an action has."""
        space = self.action_space
        return int(space.n) if isinstance(space, spaces.Discrete) else int(np.prod(space.shape))

    @property
    def action_names(self) -> tuple[str, ...]:
        """Of one choice the actions, else the choices or numbers."""
        start = int(self.action_space.start) if isinstance(self.action_space, spaces.Discrete) else 0
        return tuple(str(start + i) for i in range(self.num_actions))

    @property
    def choices(self) -> tuple[int, ...]:
        """How many actions there are in each choice."""
        space = self.action_space
        if isinstance(space, spaces.Discrete):
            return (int(space.n),)
        return tuple(np.ravel(space.nvec)) if isinstance(space, spaces.MultiDiscrete) else (2,) * self.num_actions

    @property
    def bounds(self) -> tuple[np.ndarray | None, np.ndarray | None]:
        """The ends of continuous actions [d], None where nothing bounds them."""
        low, high = (np.ravel(end).astype(np.float64) for end in (self.action_space.low, self.action_space.high))
        return (low if np.isfinite(low).any() else None), (high if np.isfinite(high).any() else None)

    def _law(self, observations: Any, memory: Any) -> tuple[Law, Any]:
        """The law of at most `CHUNK` rows, by its own chances."""
        raise NotImplementedError

    def law(self, observations: Any, memory: Any = None) -> tuple[Law, Any]:
        """The distribution of the action in every state, and the memory afterwards."""
        if not self.has_law:
            raise InputError(
                f"{self.name} returns actions that differ when asked again: only its actions can be compared."
            )
        parts = []
        if self.has_memory and memory is None:
            memory = self.start(num_rows(observations))
        with Blamed(f"the agent {self.name} failed", "correct it, or use the environment that it was made for"):
            for start in range(0, num_rows(observations), CHUNK):
                rows = slice(start, start + CHUNK)
                parts.append(self._law(rows_of(observations, rows), rows_of(memory, rows)))
        law = Law.joined([part for part, _ in parts])
        return (law.greedy() if self.deterministic else law), joined([memory for _, memory in parts])

    def act(self, observations: Any, rng: np.random.Generator, memory: Any = None) -> tuple[np.ndarray, Any]:
        """An action in every state, as the environment takes it, and the memory afterwards."""
        law, memory = self.law(observations, memory)
        return self.as_actions(law.sample(rng)), memory

    def as_actions(self, drawn: np.ndarray) -> np.ndarray:
        """What is drawn from a law as actions of the environment."""
        space = self.action_space
        start = space.start if isinstance(space, spaces.Discrete | spaces.MultiDiscrete) else 0
        return np.asarray(drawn.reshape(len(drawn), *space.shape) + start).astype(space.dtype)

    def start(self, n: int) -> Any:
        """The memory of n agents at the start of an episode."""
        return None

    def copy_memory(self, memory: Any) -> Any:
        """A copy that acting does not change."""
        return deepcopy(memory)

    def copied(self) -> "AskedAgent":
        """One that plays as this one would from now on; itself, where only its memory changes, which is passed on."""
        return self

    def repeats(self, observations: Any, memory: Any = None) -> bool:
        """Are the answers the same when it is asked again in the same states?"""
        if self.has_law:
            laws = [self.law(observations, self.copy_memory(memory))[0] for _ in range(2)]
            return bool((laws[0].total_variation(laws[1]) <= NOISE).all())
        actions = [self.act(observations, self.rng, self.copy_memory(memory))[0] for _ in range(2)]
        return np.array_equal(actions[0], actions[1])

    # -- As an agent that plays: what `watch` asks of one.

    def set_random_seed(self, seed: int) -> None:
        """Seed its chances."""
        self.rng = np.random.default_rng(seed)

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[np.ndarray, Any]:
        """The action in one state or in several; episodes that start begin with a fresh memory."""
        several = is_batch(observation, self.observation_space)
        batch = observation if several else each_array(lambda array: np.asarray(array)[None], observation)
        n = num_rows(batch)
        if self.has_memory:
            fresh = self.start(n)
            begun = np.zeros(n, dtype=bool) if state is None or episode_start is None else np.asarray(episode_start)
            state = fresh if state is None else each_array(
                lambda new, old: np.where(begun.reshape(-1, *[1] * (old.ndim - 1)), new, old), fresh, state
            )  # fmt: skip
        if deterministic and self.has_law:
            law, state = self.law(batch, state)
            action = self.as_actions(law.greedy().sample(self.rng))
        else:
            action, state = self.act(batch, self.rng, state)
        return (action if several else action[0]), state


def rows_of(values: Any, rows: Any) -> Any:
    """Some rows of a batch of observations, or of a memory; indices, a slice or a mask."""
    return None if values is None else each_array(lambda array: array[rows], values)


def joined(batches: Sequence[Any]) -> Any:
    """Batches of observations, or memories, one after the other."""
    if len(batches) == 1 or batches[0] is None:
        return batches[0]
    return each_array(lambda *arrays: np.concatenate(arrays), *batches)


def is_batch(observation: Any, space: Any) -> bool:
    """Several observations, by the shape that the space says one has."""
    while isinstance(space, spaces.Dict | spaces.Tuple):
        key = next(iter(space.spaces)) if isinstance(space, spaces.Dict) else 0
        observation, space = observation[key], space[key]
    return np.ndim(observation) > len(space.shape or ())


# -- What an agent answers: actions, probabilities, mean and standard deviation, or a distribution.

ANSWERS = "an action, probabilities, (mean, standard deviation) or a distribution"

ONE_LINE = f"write a function of one observation that returns {ANSWERS}: lambda observation: your_agent(observation)"


def as_array(found: Any) -> np.ndarray:
    """Of torch or JAX as of NumPy, in double precision unless it is whole numbers."""
    if hasattr(found, "detach"):
        found = found.detach().cpu().numpy()
    array = np.asarray(found)
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities [n, k] from logits."""
    grown = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(grown / grown.sum(axis=-1, keepdims=True))


def law_of_distribution(found: Any, n: int, agent: AskedAgent) -> Law:
    """The law of a distribution of torch, or of a library that calls its parts alike."""
    if isinstance(found, list | tuple):  # one of each choice
        tables = [table for one in found for table in law_of_distribution(one, n, agent).probabilities]
        return Law("categorical", tuple(tables))
    kind, squashed = type(found).__name__, False
    if kind == "TransformedDistribution" and [type(t).__name__ for t in found.transforms] == ["TanhTransform"]:
        found, squashed, kind = found.base_dist, True, type(found.base_dist).__name__
    if kind == "Independent":
        found = getattr(found, "base_dist", None) or found.distribution
        kind = type(found).__name__
    if "Bernoulli" in kind:
        shares = as_array(found.probs).reshape(n, -1)
        return Law("categorical", tuple(np.stack([1 - p, p], axis=1) for p in shares.T))
    if "Categorical" in kind:
        probs = getattr(found, "probs", None)
        table = softmax(as_array(found.logits)) if probs is None else as_array(probs)
        table = table.reshape(n, -1)
        return Law("categorical", (table / table.sum(axis=1, keepdims=True),))
    if "Normal" in kind or "Gaussian" in kind:
        mean, sd = (getattr(found, one, None) for one in ("mean", "stddev"))
        mean, sd = (one() if callable(one) else one for one in (mean, sd))
        if kind == "MultivariateNormal" and not np.allclose(
            cov := as_array(found.covariance_matrix), cov * np.eye(cov.shape[-1]), atol=NOISE
        ):
            raise InputError(f"the numbers of an action must be independent, found correlated ones of {agent.name}.")
        return normal_law(as_array(mean), as_array(sd), n, agent, squashed=squashed)
    raise InputError(f"{agent.name} returns a distribution '{kind}', which cannot be compared: {ONE_LINE}.")


def normal_law(mean: np.ndarray, sd: np.ndarray, n: int, agent: AskedAgent, *, squashed: bool = False) -> Law:
    """The law of independent normal numbers, with the ends of the actions."""
    mean = mean.reshape(n, -1)
    sd = np.broadcast_to(np.asarray(sd, dtype=np.float64).reshape(-1, mean.shape[1]), mean.shape)
    if mean.shape[1] != agent.num_actions or not (sd > 0).all():
        raise InputError(
            f"{agent.name} must return a mean and a positive standard deviation of {agent.num_actions} numbers, found "
            f"{mean.shape[1]} numbers and a smallest one of {sd.min():.3g}: {ONE_LINE}."
        )
    low, high = agent.bounds
    return Law("normal", mean=mean, sd=np.maximum(sd, 1e-12), low=low, high=high, squashed=squashed)


def law_of_answer(found: Any, n: int, agent: AskedAgent, *, logits: bool = False) -> Law:
    """The law in an answer about n states: anything of `ANSWERS`; numbers are probabilities or, if allowed, logits."""
    if hasattr(found, "log_prob") or hasattr(found, "sample"):
        return law_of_distribution(found, n, agent)
    if isinstance(found, list | tuple) and found and hasattr(found[0], "log_prob"):
        return law_of_distribution(found, n, agent)
    if agent.action_type == "continuous":
        if isinstance(found, tuple) and len(found) >= 2:
            return normal_law(as_array(found[0]), as_array(found[1]), n, agent)
        low, high = agent.bounds
        mean = as_array(found).astype(np.float64).reshape(n, -1)
        if mean.shape[1] != agent.num_actions:
            raise _unclear(agent, mean.shape[1:])
        ends = (-np.inf if low is None else low), (np.inf if high is None else high)
        return Law("point", mean=np.clip(mean, *ends), low=low, high=high)
    sizes = agent.choices
    arrays = [as_array(one) for one in (found if isinstance(found, tuple) else (found,))]
    for array in arrays:  # networks return values beside logits
        if array.dtype.kind == "f" and array.size == n * sum(sizes) and (sum(sizes) > 1):
            tables = np.split(array.reshape(n, -1), np.cumsum(sizes)[:-1], axis=1)
            if all((t >= 0).all() and np.allclose(t.sum(axis=1), 1, atol=1e-4) for t in tables):
                return Law("categorical", tuple(t / t.sum(axis=1, keepdims=True) for t in tables))
            if logits:
                return Law("categorical", tuple(softmax(t) for t in tables))
            raise InputError(
                f"probabilities must be positive and sum to 1, found others from {agent.name}: return softmax(logits)."
            )
    array = arrays[0]
    if array.dtype.kind in "biuf" and array.size == n * len(sizes) and np.array_equal(array, np.round(array)):
        start = getattr(agent.action_space, "start", 0)
        chosen = array.reshape(n, -1).astype(np.int64) - start
        if (chosen < 0).any() or (chosen >= np.array(sizes)).any():
            raise InputError(f"actions must be in {agent.action_space}, found {array.min()} … {array.max()}.")
        return Law.of_choices(chosen, sizes)
    raise _unclear(agent, array.shape)


def _unclear(agent: AskedAgent, shape: tuple[int, ...]) -> InputError:
    return InputError(
        f"{agent.name} returns an array of the shape {shape}, which is no action of {agent.action_space}: {ONE_LINE}."
    )


# -- Functions, and what has `predict`.

PROBES = 11
"""Observations on which a function is tried."""


@final
class FunctionAgent(AskedAgent):
    """A function of one observation, or of several; with two arguments, of an observation and its own memory.

    A function of several observations is called with all of them at once, after its answers have been compared.
    """

    def __init__(
        self, function: Callable[..., Any], *spaces: Any, name: str, observations: Any = None, **more: Any
    ) -> None:
        super().__init__(name, *spaces, **more)
        self.function, self.at_once = function, False
        try:
            given = list(signature(function).parameters.values())
        except (TypeError, ValueError):  # of a function that is not written in Python
            given = []
        positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
        self.has_memory = sum(p.kind in positional and p.default is Parameter.empty for p in given) == 2
        probes = self._probes(observations)
        memory = self.start(num_rows(probes)) if self.has_memory else None
        with Blamed(f"the agent {name} failed", "correct it, or use the environment that it was made for"):
            first, second = (self._law(probes, self.copy_memory(memory))[0] for _ in range(2))
            self.has_law = bool((first.total_variation(second) <= NOISE).all())
        if self.has_law and not self.has_memory:
            self.at_once = self._takes_several(probes, first)
        point = first.kind == "point" or all(((p == 0) | (p == 1)).all() for p in first.probabilities)
        self.deterministic = self.deterministic or (self.has_law and first.kind != "normal" and point)

    def _probes(self, observations: Any) -> Any:
        if observations is not None:
            rows = np.linspace(0, num_rows(observations) - 1, PROBES).astype(int)
            return rows_of(observations, rows)
        space = deepcopy(self.observation_space)
        space.seed(0)
        return each_array(lambda *arrays: np.stack(arrays), *(space.sample() for _ in range(PROBES)))

    def _takes_several(self, probes: Any, alone: Law) -> bool:
        """Is a batch answered as each of its rows?"""
        try:
            with np.errstate(all="ignore"):
                found = self.function(probes)
                if not hasattr(found, "sample") and len(found[0] if isinstance(found, tuple) else found) != PROBES:
                    return False
                together = law_of_answer(found, PROBES, self)
            return together.kind == alone.kind and bool((together.total_variation(alone) <= NOISE).all())
        except Exception:  # a function of one observation may do anything with several
            return False

    def _law(self, observations: Any, memory: Any) -> tuple[Law, Any]:
        if self.at_once:
            return law_of_answer(self.function(observations), num_rows(observations), self), None
        laws, kept = [], []
        for row in range(num_rows(observations)):
            found = self._answer(observations, memory, row)
            laws.append(law_of_answer(found[0], 1, self))
            kept.append(found[1])
        return Law.joined(laws), _objects(kept) if self.has_memory else None

    def _answer(self, observations: Any, memory: Any, row: int) -> tuple[Any, Any]:
        seen = rows_of(observations, row)
        if not self.has_memory:
            return self.function(seen), None
        found = self.function(seen, deepcopy(memory[row]))
        if not (isinstance(found, tuple) and len(found) == 2):
            raise InputError(f"{self.name} must return its answer and its memory, found {type(found).__name__}.")
        return found

    def act(self, observations: Any, rng: np.random.Generator, memory: Any = None) -> tuple[np.ndarray, Any]:
        """An action in every state; one that plays by chances of its own draws them itself."""
        if self.has_memory and memory is None:
            memory = self.start(num_rows(observations))
        with Blamed(f"the agent {self.name} failed", "correct it, or use the environment that it was made for"):
            law, memory = self._law(observations, memory)
        return self.as_actions((law.greedy() if self.deterministic else law).sample(rng)), memory

    def start(self, n: int) -> Any:
        """None for each, which the function is given with the first observation."""
        return _objects([None] * n) if self.has_memory else None


def _objects(values: Sequence[Any]) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        array[i] = value
    return array


# -- The one way in.

KINDS = (
    "policyspace.asking.adapters:CLONE",
    "policyspace.asking.adapters:RLLIB",
    "policyspace.asking.adapters:STABLE_BASELINES",
    "policyspace.asking.adapters:CLEANRL",
    "policyspace.asking.adapters:TORCH",
    "policyspace.asking.adapters:ONNX",
    "policyspace.asking.adapters:SKLEARN",
    "policyspace.asking.played:LIVE",
    "policyspace.asking.adapters:PREDICTS",
)
"""The kinds of agents of other libraries, in the order in which they are tried."""


def as_agent(
    agent: Any,
    env: Any = None,
    *,
    observation_space: Any = None,
    action_space: Any = None,
    observations: Any = None,
    deterministic: bool = False,
    algorithm: str | None = None,
    trust: bool = False,
) -> AskedAgent:
    """Anything that acts as an agent that can be asked.

    Parameters
    ----------
    agent : object, function or path
        A model of stable-baselines3 or sb3-contrib, a torch module, an agent of cleanrl, an ONNX session, an RLModule of
        RLlib, an estimator of scikit-learn, a function of one observation, `module:function`, or the file of one.
    env : str, gymnasium.Env or vector environment, optional
        Where it acts, with the wrappers through which it sees; needed where the agent does not know its spaces.
    observation_space, action_space : gymnasium.Space, optional
        Instead of an environment.
    observations : array_like of shape (n, …) or dict of these, optional
        On which a function is tried; drawn from the space by default.
    deterministic : bool, default False
        Ask for its most probable action instead of its chances.
    algorithm : str, optional
        Of the file of a model of stable-baselines3, where it cannot be seen in it.
    trust : bool, default False
        Whether the file of an agent may run code when it is loaded, where it holds any.

    Returns
    -------
    AskedAgent
        With `law`, `act`, and `predict` for playing.

    Raises
    ------
    InputError
        If the agent is of no known kind, or does not fit the environment.

    Examples
    --------
    >>> import numpy as np
    >>> from policyspace.asking.agents import as_agent
    >>> agent = as_agent(lambda seen: int(seen[2] > 0), "CartPole-v1")
    >>> agent.law(np.array([[0, 0, 0.1, 0], [0, 0, -0.1, 0]]))[0].probabilities[0].tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    if isinstance(agent, AskedAgent):
        return agent
    if env is not None:
        stage = stage_of(env)
        found = stage.spaces
        if isinstance(env, str):
            stage.env.close()
        observation_space, action_space = observation_space or found[0], action_space or found[1]
    if isinstance(agent, str | Path):
        agent = agent_at(agent, algorithm, trust)
    for place in KINDS:
        recognises, make = object_at(place)
        if recognises(agent):
            made: AskedAgent = make(agent, observation_space, action_space, deterministic)
            return made
    if not callable(agent):
        raise InputError(f"'{type(agent).__name__}' is no known kind of agent: {ONE_LINE}.")
    name = getattr(agent, "__name__", type(agent).__name__)
    return FunctionAgent(
        agent, observation_space, action_space, name=name, observations=observations, deterministic=deterministic
    )


LOADERS = {
    ".onnx": "policyspace.asking.adapters:from_onnx",
    ".pt": "policyspace.asking.adapters:from_torch",
    ".pth": "policyspace.asking.adapters:from_torch",
    ".joblib": "policyspace.asking.adapters:from_joblib",
}


def agent_at(path: str | Path, algorithm: str | None = None, trust: bool = False) -> Any:
    """The agent in a file or folder, or at `module:function`; a file that can run code is loaded with trust alone."""
    if isinstance(path, str) and ":" in path and not Path(path).exists():
        return imported(path, "the agent")
    path = Path(path)
    if path.is_dir():
        return object_at("policyspace.asking.adapters:from_rllib")(path, trust)
    if (place := LOADERS.get(path.suffix)) is None:
        return agent_from_file(path, algorithm, trust)
    if not path.is_file():
        raise InputError(f"{path}: there is no such file: check the path of the agent.")
    try:
        return object_at(place)(path, trust)
    except InputError:
        raise
    except Exception as error:  # there is no list of all that libraries raise
        told = f"could not be loaded ({type(error).__name__}: {reason_of(error)})"
        raise InputError(f"{path}: {told}: check the file, or give the loaded agent itself.") from error
