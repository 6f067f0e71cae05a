"""Randomised observations during an episode: drawn, delivered to the agent, recorded, and tested by betting."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, SupportsFloat, final

import gymnasium
import numpy as np
from gymnasium import spaces

from policyspace.asking.agents import rows_of
from policyspace.asking.answer import (
    MATERIAL,
    AskedAnswer,
    AskedGroup,
    AskOptions,
    Cost,
    Effect,
    Redraw,
    Verdict,
    guarantee_of,
)
from policyspace.asking.inputs import Groups, Inputs
from policyspace.asking.states import environment_id
from policyspace.data.columns import ColumnRoles
from policyspace.data.connectors import Recording, each_array, num_rows
from policyspace.data.draws import DrawRecord, Draws
from policyspace.data.files import write
from policyspace.data.origin import Origin
from policyspace.data.sample import Sample
from policyspace.data.schema import assemble
from policyspace.environments.setters import environment
from policyspace.environments.watching import finished_frames
from policyspace.errors import InputError, nearest
from policyspace.inference.betting import DrawBets, shown_by
from policyspace.inference.randomised import columns_of, rows_with_draws
from policyspace.runtime import check_seed

FIRST = 10
"""Observations that are known before anything is drawn from them."""

POOL = 1000
"""Of the latest observations, from which readings are drawn."""

NEAR = 10
"""A likely reading is that of one of so many observations that are nearest in the other inputs."""

SETTLED_AT_ONCE = 20
"""Steps after which bets are settled and looked at."""

MEASURED = 300
"""Steps with draws that an effect is measured on, once its input has been found; then it is drawn no more."""

OWN_STREAM = 0x6472617773
"""Added to the seed of the draws, which nobody else has."""


@final
class OfferedReadings:
    """Draws what an agent is shown, for loops that are no Gymnasium environment.

    In every step `offer` takes what the sensors read and returns what is to be delivered: with a chance, the share, each
    input reads what it read in an earlier step; which one is drawn. `saw` takes the action that followed. Only the draws
    are random, by a generator that nobody else uses, so that `answer` holds for any agent, at any time.

    Parameters
    ----------
    observation_space, action_space : gymnasium.Space
        Of one observation, and of one action.
    share : float or mapping, default 0.5
        The chance that an input is drawn in a step; by name for some inputs, which are then the only ones that are drawn.
    seed : int
        Of the draws.
    features, groups
        As of `policyspace.ask`.
    redraw : {"any", "likely"} or both
        Readings of any earlier step, or of one that is near in the other inputs, or half of each.
    candidates : int, default 4
        Readings from which one is drawn.
    memory : int, default 0
        For so many steps after a reading actions are looked at, of an agent with a memory.
    significance : float, default 0.05
        The accepted chance of any false "reacts".
    until_found : bool, default False
        Draw an input no more when it has been found and its effect is measured.
    env_id : str, optional
        Known environments have names for their inputs.
    frames : int, default 1
        How many frames an observation holds.
    inputs : Inputs, optional
        Instead of features and groups, where they are known.
    correction : {"closed", "bh"}
        Of the significance for several inputs: the chance of any false "reacts", or the expected share of false ones.

    Examples
    --------
    >>> import numpy as np
    >>> from gymnasium.spaces import Box, Discrete
    >>> from policyspace.asking import OfferedReadings
    >>> readings = OfferedReadings(Box(-1, 1, (2,)), Discrete(2), features=["near", "far"])
    >>> sensors = np.random.default_rng(1)
    >>> for step in range(400):
    ...     seen = readings.offer(sensors.uniform(-1, 1, 2), start=step == 0)
    ...     readings.saw(int(seen[0] > 0))
    >>> readings.answer().selected
    ('near',)
    """

    def __init__(
        self,
        observation_space: Any,
        action_space: Any,
        share: float | Mapping[str, float] = 0.5,
        *,
        seed: int = 0,
        features: Sequence[str] | None = None,
        groups: Groups | None = None,
        redraw: Redraw | Sequence[Redraw] = "any",
        candidates: int = 4,
        memory: int = 0,
        significance: float = 0.05,
        until_found: bool = False,
        env_id: str | None = None,
        frames: int = 1,
        inputs: Inputs | None = None,
        correction: str = "closed",
    ) -> None:
        check_seed(seed)
        kinds: tuple[Redraw, ...] = (redraw,) if isinstance(redraw, str) else tuple(redraw)
        if not kinds or set(kinds) - {"any", "likely"}:
            raise InputError(f"redraw must be 'any', 'likely' or both, found {redraw!r}: correct it.")
        if isinstance(candidates, bool) or not isinstance(candidates, int) or candidates < len(kinds):
            raise InputError(f"candidates must be a whole number of at least {len(kinds)}, found {candidates!r}.")
        for chance in share.values() if isinstance(share, Mapping) else [share]:
            if isinstance(chance, bool) or not isinstance(chance, int | float) or not 0 < chance < 1:
                raise InputError(f"the share must be more than 0 and less than 1, found {chance!r}: 0.5 is customary.")
        both: tuple[Redraw, ...] = ("any", "likely") if len(kinds) == 2 else ("any",)
        self.options = AskOptions(both, memory, significance, None, seed, correction)
        self.observation_space, self.action_space = observation_space, action_space
        self.choices, self._lowest = choices_of(action_space)
        self.share, self.candidates, self.until_found = share, candidates, until_found
        self.num_likely = 0 if kinds == ("any",) else candidates if kinds == ("likely",) else candidates // 2
        self._features, self._groups, self._env_id, self._frames = features, groups, env_id, frames
        self._rng = np.random.default_rng([seed, OWN_STREAM])
        self._known = inputs
        self.inputs: Inputs | None = None
        """Known after the first observations, in which pairs of sine and cosine are found."""
        self.num_offered = 0
        self._pool: Any = None
        self._delivered: list[Any] = []
        self._actions: list[np.ndarray] = []
        self._numbers: list[np.ndarray] = []
        self._readings: list[np.ndarray | None] = []
        self._shares: list[np.ndarray | None] = []
        self._drawn: list[np.ndarray | None] = []
        self._starts: list[bool] = []
        self._outcomes: list[tuple[float, bool, bool]] = []
        self._pending: tuple[Any, np.ndarray | None, np.ndarray | None, np.ndarray | None, bool] | None = None
        self._bets: DrawBets | None = None
        self._told = 0
        self.found: tuple[str, ...] = ()
        """The inputs that the agent was found to react to, at the last look."""

    @property
    def num_steps(self) -> int:
        """How many actions have followed."""
        return len(self._actions)

    @property
    def observed(self) -> Any:
        """The latest observations as they were before anything was drawn."""
        return rows_of(self._pool, slice(0, min(self.num_offered, POOL)))

    # -- In every step.

    def offer(self, observation: Any, start: bool = False) -> Any:
        """What is to be delivered instead of an observation; `start` says that an episode begins with it."""
        if self._pending is not None and not start:
            raise InputError(
                "every delivered observation needs the action that followed: call saw(action) before offer."
            )
        row = each_array(lambda array: np.asarray(array)[None], observation)
        start = start or not self._actions
        if self.inputs is None and self.num_offered >= FIRST:
            self._begin()
        if self.inputs is None:
            self._pending = (row, None, None, None, start)
            delivered = row
        else:
            delivered = self._draw(row, start)
        self._keep(row)
        return observation if delivered is row else each_array(lambda array: array[0], delivered)

    def saw(self, action: Any, observation: Any = None) -> None:
        """The action that followed and, where it is known, the observation that the agent got."""
        if self._pending is None:
            raise InputError(
                "an action follows a delivered observation, found none: call offer(observation) before saw."
            )
        row, readings, shares, drawn, start = self._pending
        if observation is not None:
            same: list[bool] = []
            each_array(lambda a, b: same.append(np.array_equal(a[0], np.asarray(b))), row, observation)
            if not all(same):
                raise InputError(
                    f"the agent got another observation than was delivered in step {self.num_steps + 1}: nothing may stand "
                    "between the draws and the agent, put wrappers inside."
                )
        found = np.ravel(np.asarray(action)).astype(np.float64)
        if len(found) != len(self.choices) or not np.isfinite(found).all():
            raise InputError(
                f"an action must be one of {self.action_space}, found {action!r}: give what the agent did."
            )
        codes = found - self._lowest
        if any(k and not (0 <= code < k and code == int(code)) for k, code in zip(self.choices, codes, strict=True)):
            raise InputError(
                f"an action must be one of {self.action_space}, found {action!r}: give what the agent did."
            )
        self._pending = None
        self._delivered.append(row)
        self._actions.append(codes)
        for kept, one in ((self._readings, readings), (self._shares, shares), (self._drawn, drawn)):
            kept.append(one)
        self._starts.append(start)
        if self.until_found and self.inputs is not None and self.num_steps - self._told >= SETTLED_AT_ONCE:
            self.settle()

    def followed(self, reward: float, terminated: bool, truncated: bool) -> None:
        """What came of the last action; kept in the log."""
        self._outcomes.append((float(reward), bool(terminated), bool(truncated)))

    def _begin(self) -> None:
        """The inputs, and what is known of the first observations."""
        seen = rows_of(self._pool, slice(0, self.num_offered))
        self.inputs = self._known or Inputs.of(
            self.observation_space,
            env_id=self._env_id,
            features=self._features,
            groups=self._groups,
            frames=self._frames,
            observations=seen,
        )
        names, parts = self.inputs.groups, self.inputs.parts
        if isinstance(self.share, Mapping):
            for name in self.share:
                if name not in names:
                    raise InputError(f"there is no input '{name}': {nearest(name, names)}")
        numbers = [self.inputs.numbers(seen, group) for group in names]
        features, levels = dict[str, tuple[str, ...]](), dict[str, int]()
        for group, found in zip(names, numbers, strict=True):
            own = self.inputs.members.get(group, ())
            features[group] = (
                own if len(own) == found.shape[1] else tuple(f"{group}#{i}" for i in range(found.shape[1]))
            )
            sizes = [k for part in parts[group] for k in part.levels or (0,) * len(part.places)]
            if len(sizes) == len(own):
                levels |= {name: k for name, k in zip(own, sizes, strict=True) if k}
        self.record = DrawRecord(
            features,
            self.candidates,
            self.num_likely,
            self.options.memory or 0,
            self.until_found,
            levels,
            self.choices,
            tuple(int(low) for low in self._lowest),
        )
        self._owners = np.repeat(np.arange(len(names)), [found.shape[1] for found in numbers])
        self._flat = np.zeros((POOL, len(self._owners)))
        self._flat[: self.num_offered] = np.hstack(numbers)
        self._encoded_owners = np.repeat(
            np.arange(len(names)), [self.record.encoded(f, g).shape[1] for f, g in zip(numbers, names, strict=True)]
        )
        self._encoded = np.zeros((POOL, len(self._encoded_owners)))
        self._encoded[: self.num_offered] = self._encode(self._flat[: self.num_offered])
        self._scale = np.ones(len(self._encoded_owners))
        self._chances = np.array(
            [self.share.get(name, 0.0) if isinstance(self.share, Mapping) else self.share for name in names]
        )

    def _encode(self, flat: np.ndarray) -> np.ndarray:
        return np.hstack([self.record.encoded(flat[:, place], group) for group, place in self.record.places.items()])

    def _flattened(self, rows: Any) -> np.ndarray:
        assert self.inputs is not None
        return np.hstack([self.inputs.numbers(rows, group) for group in self.inputs.groups])

    def _draw(self, row: Any, start: bool) -> Any:
        """Candidates of every input from earlier observations, and which of them is delivered."""
        assert self.inputs is not None
        size, num = min(self.num_offered, POOL), len(self.inputs.groups)
        flat = self._flattened(row)
        donors = self._rng.integers(size, size=(self.candidates, num))
        if self.num_likely:
            near = self._near(flat, size)
            places = self._rng.integers(len(near), size=(self.num_likely, num))
            donors[self.candidates - self.num_likely :] = np.take_along_axis(near, places, axis=0)
        which = self._rng.integers(1, self.candidates + 1, size=num)
        drawn = np.where(self._rng.random(num) < self._chances, which, 0)
        readings = np.vstack([flat, self._flat[donors[:, self._owners], np.arange(len(self._owners))]])
        delivered = row
        for g in np.flatnonzero(drawn).tolist():
            donor = donors[drawn[g] - 1, g]
            delivered = self.inputs.replaced(
                delivered, self.inputs.groups[g], rows_of(self._pool, slice(donor, donor + 1))
            )
        self._pending = (delivered, readings, self._chances.copy(), drawn, start)
        place = self.num_offered % POOL
        self._flat[place], self._encoded[place] = flat[0], self._encode(flat)[0]
        return delivered

    def _near(self, flat: np.ndarray, size: int) -> np.ndarray:
        """The nearest earlier observations [NEAR, G] in all inputs but one."""
        if self.num_offered % 100 == FIRST or (self._scale == 1.0).all():
            spread = self._encoded[:size].std(axis=0)
            self._scale = np.where(spread > 0, spread, 1.0)
        apart = ((self._encoded[:size] - self._encode(flat)) / self._scale) ** 2
        own = apart @ (self._encoded_owners[:, None] == np.arange(self._owners.max() + 1))
        others = apart.sum(axis=1, keepdims=True) - own
        near = min(NEAR, size)
        return np.argpartition(others, near - 1, axis=0)[:near]

    def _keep(self, row: Any) -> None:
        """What the sensors read, for later draws."""
        if self._pool is None:
            self._pool = each_array(lambda array: np.zeros((POOL, *array.shape[1:]), array.dtype), row)
        place = self.num_offered % POOL

        def stored(pool: np.ndarray, array: np.ndarray) -> None:
            pool[place] = array[0]

        each_array(stored, self._pool, row)
        self.num_offered += 1

    # -- What is known so far.

    def _draws(self, begin: int) -> Draws:
        """Of the steps from one on; before the first draws each input had what the sensors read."""
        num = len(self.record.groups)
        readings, shares, drawn = self._readings[begin:], self._shares[begin:], self._drawn[begin:]
        for i, known in enumerate(readings):
            if known is None:
                flat = self._flattened(self._delivered[begin + i])
                readings[i] = np.repeat(flat, self.candidates + 1, axis=0)
                shares[i], drawn[i] = np.zeros(num), np.zeros(num, dtype=np.int64)
        return Draws(self.record, np.stack(readings), np.stack(shares), np.stack(drawn))  # type: ignore[arg-type]

    def settle(self, ended: bool = False) -> None:
        """Bet on all steps whose actions are known; where no more will come, on all that there are."""
        if self.inputs is None:
            return
        if self.num_steps > self._told:
            draws, actions = self._draws(self._told), np.stack(self._actions[self._told :])
            actions = actions if not any(self.choices) else actions.astype(np.int64)
            rows = rows_with_draws(draws, actions, np.array(self._starts[self._told :]))
            if self._bets is None:
                self._bets = DrawBets(columns_of(rows), self.choices, self.options.memory or 0)
            self._bets.tell(rows)
            self._told = self.num_steps
        if self._bets is None:
            return
        self._bets.settle(ended)
        shown = shown_by(self._bets.log_wealth, self.options.significance, self.options.correction)
        names = self.inputs.groups
        self.found = tuple(name for name, one in zip(names, shown, strict=True) if one)
        if self.until_found:
            for g, name in enumerate(names):
                if name in self.found and len(self._bets.moved(g, slice(1, 2))) >= MEASURED:
                    self._chances[g] = 0.0

    @property
    def varying(self) -> tuple[str, ...]:
        """The inputs that have read different things, and are drawn."""
        if self.inputs is None:
            return ()
        flat, shares = self._flat[: min(self.num_offered, POOL)], self.share
        varies = np.ptp(flat, axis=0) > 0
        return tuple(
            name
            for g, name in enumerate(self.inputs.groups)
            if varies[self._owners == g].any() and (not isinstance(shares, Mapping) or name in shares)
        )

    @property
    def settled(self) -> bool:
        """Has every input that is drawn been found, and its effect been measured?"""
        return self.inputs is not None and bool(self.varying) and all(
            self._chances[self.inputs.groups.index(name)] == 0.0 for name in self.varying
        )  # fmt: skip

    def answer(
        self,
        reason: str = "readings were drawn while it acted",
        *,
        ended: bool = False,
        agent: str = "the agent",
        environment: str | None = None,
        cost: Cost | None = None,
        stopped: str = "",
    ) -> AskedAnswer:
        """What has been found so far; it may be looked at whenever one likes."""
        if self.inputs is None:
            raise InputError(
                f"readings are drawn after {FIRST} observations, found {self.num_offered}: let it act longer."
            )
        self.settle(ended)
        constant = ", ".join(name for name in self.inputs.groups if name not in self.varying)
        warning = f"{constant} always read the same while it acted, so that nothing is said about them."
        place = environment or self._env_id
        return AskedAnswer(
            tuple(self._concluded(g, name) for g, name in enumerate(self.inputs.groups)),
            "played",
            reason,
            guarantee_of("played", self.options),
            cost or Cost(self.num_steps, self.num_steps),
            self.options,
            agent,
            place,
            self.num_steps,
            self.options.memory or 0,
            stopped,
            (warning,) if constant and not isinstance(self.share, Mapping) else (),
            inputs=self.inputs.members,
            recording=self.recording(agent, place),
        )

    def _concluded(self, g: int, name: str) -> AskedGroup:
        """The verdict about one input, the wealth behind it, and its effects."""
        if self._bets is None:
            return AskedGroup(name, "no evidence", None)
        usual = self.candidates - self.num_likely
        steps = int(sum(share is not None and share[g] > 0 for share in self._shares))
        effects: list[Effect | None] = []
        for others in (slice(1, 1 + usual), slice(1 + usual, 1 + self.candidates)):
            moved = self._bets.moved(g, others) if others.stop > others.start else np.zeros(0)
            effects.append(None)
            if len(moved) > 1:
                mean, margin = float(moved.mean()), 1.96 * float(moved.std(ddof=1)) / len(moved) ** 0.5
                effects[-1] = Effect(mean, max(mean - margin, -1.0), min(mean + margin, 1.0))
        first = effects[0] if usual else effects[1]
        verdict: Verdict = "reacts" if name in self.found else "no evidence"
        if name in self.found and first is not None and first.high < MATERIAL:
            verdict = "barely"
        wealth = float(np.exp(min(self._bets.log_wealth[g], 600.0)))
        return AskedGroup(name, verdict, first, effects[1] if usual else None, wealth, steps)

    def recording(self, agent: str, environment: str | None = None) -> Recording | None:
        """What was delivered and done, with all draws; None before there are any."""
        if self.inputs is None or not self._actions:
            return None
        draws, actions = self._draws(0), np.stack(self._actions)
        low = np.asarray(self._lowest)
        space = self.action_space
        acted = (actions + low).reshape(len(actions), *(space.shape or ())).astype(space.dtype)
        beside: dict[str, np.ndarray] = {}
        if len(self._outcomes) == len(actions):
            reward, terminated, truncated = (np.array(part) for part in zip(*self._outcomes, strict=True))
            beside = {"terminated": terminated, "truncated": truncated, "reward": reward}
        origin = Origin(
            environment=environment or self._env_id,
            agent=agent,
            memory=draws.record.memory > 0,
            draws=draws.record,
        )
        seen, seen_space, features = self.as_logged(
            each_array(lambda *arrays: np.concatenate(arrays), *self._delivered)
        )
        return Recording(
            seen,
            acted,
            np.cumsum(self._starts) - 1,
            beside | draws.columns(actions),
            observation_space=seen_space,
            action_space=space,
            features=features,
            origin=origin,
        )

    def as_logged(self, observations: Any) -> tuple[Any, Any, tuple[str, ...]]:
        """Observations [n, …] as a log holds them, their space, and names: of images what bets look at in each region."""
        if self.inputs is None or set(self.inputs.parts) == set(self.inputs.members):
            return observations, self.observation_space, () if self.inputs is None else self.inputs.features
        names = [name for features in self.record.groups.values() for name in features]
        columns = dict(zip(names, self._flattened(observations).T, strict=True))
        found, kinds = dict[str, np.ndarray](), dict[str, spaces.Space]()
        for name, column in columns.items():
            levels = self.record.levels.get(name)
            found[name] = column.astype(np.int64) if levels else column
            kinds[name] = spaces.Discrete(levels) if levels else spaces.Box(-np.inf, np.inf, (), np.float64)
        return found, spaces.Dict(kinds), ()

    def recorded_draws(self, seen: Any) -> tuple[dict[str, np.ndarray], DrawRecord]:
        """The columns of a log that hold the draws behind the latest observations [n, …], as an agent has seen them."""
        begin = self.num_steps - num_rows(seen)
        if self.inputs is None or begin < 0:
            raise InputError(
                f"readings are drawn after {FIRST} observations, found {self.num_steps}: let it act longer."
            )
        delivered = each_array(lambda *arrays: np.concatenate(arrays), *self._delivered[begin:])
        same: list[bool] = []
        try:
            each_array(lambda a, b: same.append(np.array_equal(a, b)), delivered, seen)
        except (KeyError, TypeError, ValueError):
            same.append(False)
        if not all(same):
            raise InputError(
                "the agent got other observations than RandomisedReadings delivered: make it the outermost wrapper, so that "
                "no other one clips, stacks or drops what was drawn."
            )
        return self._draws(begin).columns(np.stack(self._actions[begin:])), self.record

    def draws_with(self, actions: np.ndarray) -> tuple[dict[str, np.ndarray], DrawRecord]:
        """The columns of a log that hold all draws, with the actions [n, k] as that log has them."""
        if self.inputs is None or len(actions) != self.num_steps:
            raise InputError(
                f"a log must have the {self.num_steps} steps in which readings were drawn, found {len(actions)}."
            )
        return self._draws(0).columns(actions), self.record

    @property
    def log(self) -> Sample:
        """What was delivered and done, with all draws: whoever has it can test them (`identify`).

        Of an image it holds what bets look at: the mean and the spread of every region, a channel each.
        """
        recording = self.recording("the agent")
        if recording is None:
            raise InputError(
                f"readings are drawn after {FIRST} observations, found {self.num_steps}: let it act longer."
            )
        frame, roles = recording.stored()
        return assemble(frame, roles, ColumnRoles())


def choices_of(space: Any) -> tuple[tuple[int, ...], np.ndarray]:
    """How many actions every choice has, 0 of a number, and the smallest of each."""
    if isinstance(space, spaces.Discrete):
        return (int(space.n),), np.array([float(space.start)])
    if isinstance(space, spaces.MultiDiscrete):
        return tuple(int(k) for k in np.ravel(space.nvec)), np.ravel(space.start).astype(np.float64)
    if isinstance(space, spaces.MultiBinary):
        size = int(np.prod(space.shape))
        return (2,) * size, np.zeros(size)
    if isinstance(space, spaces.Box):
        size = int(np.prod(space.shape))
        return (0,) * size, np.zeros(size)
    raise InputError(f"actions must be choices or numbers, found {space}: ask about a part of them.")


@final
class RandomisedReadings(gymnasium.Wrapper):  # type: ignore[misc]  # Gymnasium is not typed
    """An environment whose readings are drawn at random now and then, so that its logs can be tested exactly.

    It must be the outermost wrapper: the agent has to get what it delivers. In every step each input reads, with a chance,
    what it read in an earlier step; which one is drawn by a generator that nobody else uses, and recorded. The readings
    change what the agent sees, not the environment: rewards are those of its actions.

    Parameters
    ----------
    env : gymnasium.Env or str
        The environment, or its id.
    share : float or mapping, default 0.5
        The chance that an input is drawn in a step; 0.2 where the return matters. By name for some inputs alone.
    seed : int
        Of the draws.
    features, groups
        As of `policyspace.ask`.
    redraw : {"any", "likely"} or both
        Readings of any earlier step, or of one that is near in the other inputs, or half of each.
    candidates : int, default 4
        Readings from which one is drawn.
    memory : int, default 0
        For so many steps after a reading actions are looked at, of an agent with a memory.
    significance : float, default 0.05
        The accepted chance of any false "reacts".
    until_found : bool, default False
        Draw an input no more when it has been found and its effect is measured.
    correction : {"closed", "bh"}
        Of the significance for several inputs: the chance of any false "reacts", or the expected share of false ones.
    log : path, optional
        A file that is written when the environment is closed.

    Examples
    --------
    >>> import policyspace
    >>> env = policyspace.RandomisedReadings("CartPole-v1", seed=1)
    >>> seen, _ = env.reset(seed=0)
    >>> for _ in range(400):
    ...     seen, _, terminated, truncated, _ = env.step(int(seen[2] > 0))
    ...     if terminated or truncated:
    ...         seen, _ = env.reset()
    >>> env.answer().selected
    ('angle',)
    >>> policyspace.identify(env.log).selected
    ('angle',)
    """

    def __init__(
        self,
        env: Any,
        share: float | Mapping[str, float] = 0.5,
        *,
        seed: int = 0,
        features: Sequence[str] | None = None,
        groups: Groups | None = None,
        redraw: Redraw | Sequence[Redraw] = "any",
        candidates: int = 4,
        memory: int = 0,
        significance: float = 0.05,
        until_found: bool = False,
        correction: str = "closed",
        log: str | Path | None = None,
    ) -> None:
        super().__init__(environment(env)[1]() if isinstance(env, str) else env)
        self.readings = OfferedReadings(
            self.env.observation_space,
            self.env.action_space,
            share,
            seed=seed,
            features=features,
            groups=groups,
            redraw=redraw,
            candidates=candidates,
            memory=memory,
            significance=significance,
            until_found=until_found,
            env_id=environment_id(self.env),
            frames=finished_frames(self.env),
            correction=correction,
        )
        self._file = log

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, dict]:
        """The first observation of an episode as it is delivered."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self.readings.offer(observation, start=True), info

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict]:
        """One step; the last observation of an episode, after which nothing is done, is delivered as it is."""
        self.readings.saw(action)
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.readings.followed(float(reward), terminated, truncated)
        if not (terminated or truncated):
            observation = self.readings.offer(observation)
        return observation, reward, terminated, truncated, info

    def answer(self) -> AskedAnswer:
        """What has been found so far; it may be looked at whenever one likes."""
        return self.readings.answer()

    @property
    def log(self) -> Sample:
        """What was delivered and done, with all draws, for `identify`."""
        return self.readings.log

    def recorded_draws(self, seen: Any, features: Sequence[str] = ()) -> tuple[dict[str, np.ndarray], DrawRecord]:
        """The columns of a log that hold the draws behind the latest observations, as an agent has seen them."""
        found = self.readings.recorded_draws(seen)
        if features and tuple(features) != self.feature_names:
            names = ", ".join(self.feature_names)
            raise InputError(
                f"the inputs are called {names} where they are drawn: RandomisedReadings(env, features=…)."
            )
        return found

    def as_logged(self, observations: Any) -> tuple[Any, Any, tuple[str, ...]]:
        """Observations as a log holds them, their space, and names: of images what bets look at in each region."""
        return self.readings.as_logged(observations)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of all numbers and categories that are observed; none before they are known."""
        return () if self.readings.inputs is None else self.readings.inputs.features

    def close(self) -> None:
        """Write the log, if a file was named."""
        if self._file is not None and self.readings.num_steps:
            write(self.log, self._file)
        super().close()
