"""Rewards: what an agent is after, by inverse reinforcement learning in the coordinates that it controls.

An agent that is optimal in its policy space Π_{Θ_I} has Σ_k w_k ∂J_k/∂θ_i = 0 in the coordinates i of I, and in these
alone: what it does not control may well have a gradient. The weights w of its reward are those for which it vanishes there
(GIRL).
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Unpack, final

import numpy as np
from scipy.optimize import nnls

from policyspace.cloning import found_notes, penalised
from policyspace.data.columns import DataTable
from policyspace.data.files import table_of
from policyspace.data.request import Request
from policyspace.data.sample import Sample
from policyspace.data.validation import translate_keywords
from policyspace.display import Answer, TextTable, listed_names, plain_data, remembering_its_call
from policyspace.errors import InputError, nearest, number_of
from policyspace.families.base import Policy as PolicyOfSpace
from policyspace.families.base import PolicySpace
from policyspace.families.registry import likelihood_of
from policyspace.identification import SourceOptions, bind, identify_in, request_of
from policyspace.identified import IdentifiedSpace
from policyspace.inference.base import TestOptions
from policyspace.runtime import check_seed, counted, object_at, say_progress, single_threaded_blas

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from policyspace.safe_io import JSON

Coordinates = Literal["identified", "all"]

PENALTY = 1e-2
"""Of the policy that is fitted: next to none, and yet finite on separated data."""

LEVEL = 0.05
"""At which a direction of the weights is said to have a gradient."""

FEWEST_EPISODES = 10

DISTINCT = 0.2
"""The sine of the angle from which on two directions of weights are two."""

MOST_REWARDS = 12
"""Reward features, of which all subsets are looked at."""

CURVED = 1.645
"""So many standard errors below zero the curvature of a return must be for an optimum of it."""

INFORMED = 1e-6
"""The share of the largest information below which a direction of θ has none."""

# -- The gradient of every reward feature's return, from logged episodes.


@final
@dataclass(frozen=True)
class EpisodeLog:
    """The log of one configuration: whole episodes one after the other, and what each step is worth."""

    sample: Sample
    rewards: np.ndarray  # [n, K]

    @property
    def starts(self) -> np.ndarray:
        """The first row of each episode."""
        episodes = self.numbers
        return np.flatnonzero(np.diff(episodes, prepend=-1))

    @property
    def numbers(self) -> np.ndarray:
        """The episode of each row [n], in the order of the rows."""
        assert self.sample.episodes is not None
        return self.sample.episodes

    @classmethod
    def of(cls, sample: Sample, rewards: np.ndarray) -> "EpisodeLog":
        """Rows sorted by episode; within one they stay as they are."""
        assert sample.episodes is not None
        order = np.argsort(sample.episodes, kind="stable")
        return cls(sample.take(order), rewards[order])


def step_scores(policy: PolicyOfSpace, free: np.ndarray, sample: Sample) -> np.ndarray:
    """∇_θ log π_θ(a|s) of every row in the free coordinates [n, d]."""
    return np.asarray(policy.space.score(policy.theta, sample.features, sample.actions))[:, free]


def return_gradients(
    scores: np.ndarray, rewards: np.ndarray, starts: np.ndarray, discount: float, shares: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """∇J_k by G(PO)MDP [d, K], and the curvature of J_k [K], from rows of scores [n, d] and rewards [n, K].

    ∇J_k = mean_i Σ_t S_it ⊙ (γ^t r_kit − b_kt), S_it = Σ_{j≤t} ∇log π, with a baseline for each time step and coordinate.
    The curvature is Σ_t Cov(γ^t r_kt, |S_t|²): how J_k changes when the policy is moved at random, up to a factor, if scores
    are standardised. `shares` are how often each episode counts [m].
    """
    count, d, k = len(starts), scores.shape[1], rewards.shape[1]
    lengths = np.diff(np.append(starts, len(scores)))
    weight = np.ones(count) if shares is None else shares
    order = np.argsort(-lengths, kind="stable")
    starts, weight = starts[order], weight[order]
    total, gradient, curvature = np.zeros((count, d)), np.zeros((d, k)), np.zeros(k)
    # EpisodeLog that have ended keep S and earn nothing: they still belong to the baselines.
    sums, power, reach = np.zeros(d), np.zeros(d), np.zeros(count)
    for t in range(int(lengths.max())):
        alive = slice(int((lengths > t).sum()))
        before, own = total[alive], weight[alive, None]
        after = before + scores[starts[alive] + t]
        squares = own * after**2
        sums += (own * (after - before)).sum(axis=0)
        power += (squares - own * before**2).sum(axis=0)
        total[alive], reach[alive] = after, (after**2).sum(axis=1)
        earned = discount**t * rewards[starts[alive] + t]
        baseline = (squares.T @ earned) / np.where(power > 1e-12, power, 1.0)[:, None]
        gradient += (own * after).T @ earned - baseline * sums[:, None]
        centred = reach[alive] - weight @ reach / weight.sum()
        curvature += (weight[alive] * centred) @ earned
    return gradient / weight.sum(), curvature / weight.sum()


@final
@dataclass(frozen=True)
class FittedEpisodes:
    """EpisodeLog of one configuration, the policy fitted to them, and the coordinates whose gradient must vanish."""

    episodes: EpisodeLog
    policy: PolicyOfSpace
    free: np.ndarray
    fitted: np.ndarray
    """The coordinates that were fitted, which the bootstrap fits anew."""
    discount: float

    @cached_property
    def directions(self) -> np.ndarray:
        """Directions of θ [d, r] in which the information of a row is 1; those of which it has none are left out."""
        scores = step_scores(self.policy, self.free, self.episodes.sample)
        values, vectors = np.linalg.eigh(scores.T @ scores / len(scores))
        kept = values > INFORMED * max(values[-1], 1e-300)
        return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))

    @cached_property
    def step(self) -> np.ndarray:
        """How far a Newton step goes in each fitted coordinate if an episode is seen once more [d, m]."""
        scores = step_scores(self.policy, self.fitted, self.episodes.sample)
        sums = np.add.reduceat(scores, self.episodes.starts, axis=0)
        return np.asarray(np.linalg.lstsq(scores.T @ scores, sums.T, rcond=INFORMED)[0])

    def jacobian(self, shares: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """∂J_k/∂θ in the `directions` [r, K], and the curvature of each J_k [K].

        With `shares`, as if each episode had been seen so often: the policy takes one Newton step to what is then likely.
        """
        log, policy = self.episodes, self.policy
        if shares is not None:
            theta = policy.theta.copy()
            theta[self.fitted] += self.step @ (shares - 1)
            policy = PolicyOfSpace(policy.space, theta)
        scores = step_scores(policy, self.free, log.sample) @ self.directions
        return return_gradients(scores, log.rewards, log.starts, self.discount, shares)


# -- The weights.


def simplex_weights(jacobian: np.ndarray) -> np.ndarray:
    """argmin ‖Jw‖ over w ≥ 0 with Σ w = 1: non-negative least squares, whose solution has that direction."""
    found, _ = nnls(np.vstack([jacobian, np.ones(jacobian.shape[1])]), np.append(np.zeros(len(jacobian)), 1.0))
    return np.asarray(found / found.sum())


def signed_weights(jacobian: np.ndarray, curvature: np.ndarray) -> np.ndarray:
    """argmin ‖Jw‖ over ‖w‖ = 1, scaled to Σ|w| = 1, with the sign at which the agent's return is a maximum."""
    direction = np.linalg.svd(jacobian)[2][-1]
    direction = -direction if direction @ curvature > 0 else direction
    return np.asarray(direction / np.abs(direction).sum())


@final
@dataclass(frozen=True)
class RewardWeight:
    """The weight of one reward feature."""

    name: str
    weight: float
    low: float
    high: float
    """The interval holds 95 % of the weights of the bootstrap over episodes."""
    gradient: float
    """How far the agent is from an optimum of this feature alone: the norm of its gradient, in units of its noise."""


@final
@dataclass(frozen=True)
class RecoveredReward(Answer):
    """The weights of reward features for which the agent is optimal in what it controls, and what the log cannot tell.

    Examples
    --------
    >>> import numpy as np, policyspace
    >>> rng = np.random.default_rng(0)
    >>> states = rng.normal(size=(4000, 2))
    >>> actions = states[:, 0] * 0.6 + 0.5 * rng.normal(size=4000)  # best for 0.6 of the one, 0.4 of the other
    >>> near, small = -((actions - states[:, 0]) ** 2), -(actions**2)
    >>> found = policyspace.reward(
    ...     states, actions, reward_features={"near": near, "small": small}, episodes=np.arange(4000)
    ... )
    >>> round(found.weights["near"].weight, 1)
    0.6
    """

    page: ClassVar[str] = "policyspace.report.use_pages:reward_page"
    ruled: ClassVar[bool] = True
    features: tuple[RewardWeight, ...]
    support: tuple[str, ...]
    """The groups in whose coordinates the gradient vanishes."""
    unresolved: tuple[Mapping[str, float], ...] = ()
    """Combinations of the reward features without a gradient, beside the reward itself: their weight is not told."""
    remaining: float = 0.0
    """The share of the gradient that no weights take away, in the units of `gradient`."""
    explained: bool = True
    """Is what remains of the gradient no more than noise?"""
    signed: bool = False
    discount: float = 0.99
    num_episodes: int = 0
    num_configurations: int = 1
    num_coordinates: int = 0
    coordinates: Coordinates = "identified"
    warnings: tuple[str, ...] = ()
    made_by: str = ""

    @property
    def weights(self) -> dict[str, RewardWeight]:
        """By name."""
        return {one.name: one for one in self.features}

    def value(self, rewards: Mapping[str, Any]) -> np.ndarray:
        """Σ_k w_k r_k of values by name: the reward itself."""
        return np.asarray(sum(one.weight * np.asarray(rewards[one.name]) for one in self.features))

    @property
    def sentence(self) -> str:
        """The weights in one sentence, and whether the log tells them."""
        shown = [f"{one.name} {one.weight:.2f} ({one.low:.2f} to {one.high:.2f})" for one in self.features]
        said = f"The reward weighs {listed_names(shown)}"
        if self.unresolved:
            return f"{said}, but the log does not tell the weight of {listed_names(self._confused)}."
        if not self.explained:
            return f"{said}, but the agent is not at an optimum of any such reward."
        return f"{said}."

    @property
    def _confused(self) -> list[str]:
        """The reward features that take part in what the log does not tell."""
        return [one.name for one in self.features if any(abs(v.get(one.name, 0)) > 0.1 for v in self.unresolved)]

    def table(self) -> TextTable:
        """One row a reward feature."""
        rows = [
            (one.name, f"{one.weight:.3f}", f"{one.low:.3f} to {one.high:.3f}", f"{one.gradient:.2f}")
            for one in self.features
        ]
        return TextTable(("reward feature", "weight", "95 %", "gradient"), rows)

    def notes(self) -> list[str]:
        """What must be read with the table."""
        places = "" if self.num_configurations == 1 else f" in {self.num_configurations} configurations"
        where = "of the features that it uses" if self.coordinates == "identified" else "of all features"
        lines = [
            f"{number_of(self.num_episodes, 'episode')}{places}; the gradient must vanish in {self.num_coordinates} "
            f"coordinates, {where}: {listed_names(self.support) if self.support else 'the constant alone'}.",
            f"Discount {self.discount:g}; 'gradient' is ‖∇J‖ of the feature alone over its noise: about 1 is none.",
        ]
        for one in self.unresolved:
            shown = " ".join(f"{value:+.2f}·{name}" for name, value in one.items() if abs(value) > 0.1)
            lines.append(f"Not determined by this log: {shown} may be added to the reward in any amount.")
        if not self.explained:
            lines.append(
                f"A gradient of {self.remaining:.2f} times its noise remains: the agent has not finished learning, uses "
                "more than was identified, or is after something that is not among the reward features."
            )
        return lines + [f"Warning: {warning}" for warning in self.warnings]

    def to_dict(self) -> "dict[str, JSON]":
        """Everything as plain data."""
        return {
            "answer": self.sentence,
            "features": [plain_data(asdict(one)) for one in self.features],
            "support": list(self.support),
            "unresolved": [plain_data(dict(one)) for one in self.unresolved],
            "remaining": plain_data(self.remaining),
            "explained": self.explained,
            "signed": self.signed,
            "discount": self.discount,
            "num_episodes": self.num_episodes,
            "num_configurations": self.num_configurations,
            "num_coordinates": self.num_coordinates,
            "coordinates": self.coordinates,
            "warnings": list(self.warnings),
        }

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the weights with their intervals into the axes, or into those of a new figure of pyplot; return them."""
        axes: Axes = object_at("policyspace.report.use_pages:weight_axes")(self, ax)
        return axes


# -- From data to weights.


@remembering_its_call
@translate_keywords
def reward(
    data: Any,
    actions: Any = None,
    *,
    reward_features: Sequence[str] | Mapping[str, Any],
    answer: Any = None,
    discount: float = 0.99,
    signed: bool = False,
    by: str | None = None,
    coordinates: Coordinates = "identified",
    bootstrap: int = 200,
    seed: int = 0,
    **source: Unpack[SourceOptions],
) -> RecoveredReward:
    """Recover the weights of an agent's reward from its log, by the policy gradient in the coordinates that it controls.

    Parameters
    ----------
    data : array_like of shape (n_rows, n_features), table, path, Sample, or list of Samples
        As `identify` takes them, with whole episodes. Several samples are several configurations.
    actions : array_like or names of columns, optional
        As `identify` takes them.
    reward_features : list of str, or dict of array_like of shape (n_rows,)
        What the reward may be made of, in every step: columns of the table or recorded beside the rows, or arrays.
    answer : Identification, AskedAnswer, Study, path of their JSON, list of names, or "all", optional
        What the agent uses; by default the data are identified.
    discount : float
        γ of the agent's return.
    signed : bool
        Weights of either sign with Σ|w| = 1, instead of weights on the simplex.
    by : str, optional
        A recorded column that says which configuration an episode is from; the agent may have learned anew in each.
    coordinates : {"identified", "all"}
        In which coordinates the gradient must vanish; all of them is wrong for an agent that does not control all.
    bootstrap : int
        How often episodes are drawn anew for the intervals; the policy is fitted again each time.
    seed : int
        Of what is drawn.
    **source
        Which columns are what, see `ColumnOptions`, and what is said about the policy, see `SourceOptions`.

    Returns
    -------
    RecoveredReward
        Weights with intervals, and the combinations that the log does not tell.

    Raises
    ------
    InputError
        If nothing was identified, a reward feature is constant, or there are too few episodes.

    Examples
    --------
    >>> import numpy as np, policyspace
    >>> rng = np.random.default_rng(0)
    >>> states = rng.normal(size=(4000, 2))
    >>> actions = states[:, 0] * 0.6 + 0.5 * rng.normal(size=4000)
    >>> parts = {"near": -((actions - states[:, 0]) ** 2), "small": -(actions**2)}
    >>> policyspace.reward(states, actions, reward_features=parts, episodes=np.arange(4000)).support
    ('x0',)
    """
    if isinstance(data, list | tuple) and data and all(isinstance(one, Sample) for one in data):
        pairs = [with_rewards(request_of(one, actions, **source), reward_features) for one in data]
    else:
        pairs = [with_rewards(request_of(data, actions, **source), reward_features)]
    return reward_of(pairs, answer, discount, signed, by, coordinates, bootstrap, seed)


def with_rewards(
    request: Request, reward_features: Sequence[str] | Mapping[str, Any]
) -> tuple[Request, dict[str, np.ndarray]]:
    """The request without columns that are rewards, unless they are named as features, and the rewards by name."""
    if isinstance(reward_features, Mapping):
        return request, {str(name): np.asarray(values, dtype=np.float64) for name, values in reward_features.items()}
    names = [reward_features] if isinstance(reward_features, str) else [str(name) for name in reward_features]
    if not names:
        raise InputError("the reward features are missing: name the columns that the reward may be made of.")
    data = request.data
    if isinstance(data, Sample):
        known = dict(zip(data.names, data.features.T, strict=True)) | dict(data.recorded)
        return request, {name: _column(name, known) for name in names}
    frame, roles = table_of(data) if isinstance(data, str | Path) else (DataTable.of(data).frame, None)
    if request.columns.get("missing", "error") != "error":
        raise InputError("rewards are read row by row, found missing='drop': fill the missing values instead.")
    columns = {name: frame[name].to_numpy() for name in names if name in frame.columns}
    found = {name: np.asarray(_column(name, columns, frame.columns), dtype=np.float64) for name in names}
    if roles is not None:  # the file says which of its columns are features
        return request, found
    features = request.columns.get("features")
    return (request if features is not None else replace(request, data=frame.drop(names))), found


def _column(name: str, known: Mapping[str, np.ndarray], every: Sequence[str] = ()) -> np.ndarray:
    if name not in known:
        raise InputError(f"there is no reward feature '{name}': {nearest(name, every or known)}")
    if known[name].dtype.kind not in "biuf":
        raise InputError(f"the reward feature '{name}' must be numbers, found text: name another column.")
    return known[name]


def reward_of(
    pairs: Sequence[tuple[Request, Mapping[str, np.ndarray]]],
    answer: Any = None,
    discount: float = 0.99,
    signed: bool = False,
    by: str | None = None,
    coordinates: Coordinates = "identified",
    bootstrap: int = 200,
    seed: int = 0,
) -> RecoveredReward:
    """The same from one request a source, each with its rewards by name."""
    check_seed(seed)
    if not 0 < discount <= 1:
        raise InputError(f"the discount must be above 0 and at most 1, found {discount!r}: correct it.")
    if coordinates not in ("identified", "all"):
        raise InputError(f"coordinates must be 'identified' or 'all', found {coordinates!r}: choose one.")
    if isinstance(bootstrap, bool) or not isinstance(bootstrap, int) or bootstrap < 20:
        raise InputError(f"the bootstrap needs at least 20 draws, found {bootstrap!r}: take more.")
    logs: list[tuple[PolicySpace, EpisodeLog]] = []
    names = list(pairs[0][1])
    for request, rewards in pairs:
        space, sample = bind(request)
        logs += [(space, part) for part in _configurations(sample, rewards, by)]
    check_rewards(names, [part for _, part in logs], discount)
    with single_threaded_blas():
        support, found = _support(logs, answer, seed)
        fits = []
        for space, log in counted(logs, "fitting the policy"):
            inside = space.free_mask(found.indices(space) if found else space.full_support)
            fitted = penalised(likelihood_of(space, log.sample), found.indices(space), PENALTY) if found else None
            policy = fitted or penalised(likelihood_of(space, log.sample), space.full_support, PENALTY)
            free = np.ones_like(inside) if coordinates == "all" else inside
            fits.append(FittedEpisodes(log, policy, free, inside, discount))
        return _weighed(fits, names, support, signed, coordinates, bootstrap, seed, found)


def _support(
    logs: Sequence[tuple[PolicySpace, EpisodeLog]], answer: Any, seed: int
) -> tuple[tuple[str, ...], IdentifiedSpace | None]:
    """The groups that the agent uses by name, and where that is from; None for all of them."""
    space = logs[0][0]
    if isinstance(answer, str) and answer == "all":
        return tuple(space.named(space.full_support)), None
    if answer is None:
        say_progress("identifying")
        answers = [identify_in(space, log.sample, TestOptions(seed=seed)) for space, log in logs]
        # What is shown in one configuration is controlled in all: each is tested at a share of δ where there are several.
        if len(answers) > 1:
            share = TestOptions(seed=seed, significance=TestOptions().significance / len(answers))
            answers = [identify_in(space, log.sample, share) for space, log in logs]
        union = list(dict.fromkeys(name for one in answers for support in one.supports for name in support))
        found = IdentifiedSpace((tuple(union),), "identified", all(one.exhaustive for one in answers))
    else:
        found = IdentifiedSpace.of(answer)
    found = found.checked(space, "these data", "recover a reward from")
    return tuple(space.named(found.indices(space))), found


def _configurations(sample: Sample, rewards: Mapping[str, np.ndarray], by: str | None) -> list[EpisodeLog]:
    """The episodes of each configuration."""
    if sample.episodes is None:
        raise InputError("a return is summed over an episode: name the column of episodes (episodes=, --episodes).")
    if not sample.in_memory:
        raise InputError(
            "a reward is recovered from rows in memory, found rows that are read in passes: take fewer rows."
        )
    for name, values in rewards.items():
        if values.shape != (sample.num_rows,) or not np.isfinite(values.astype(np.float64)).all():
            raise InputError(
                f"the reward feature '{name}' must be one finite number for each of {sample.num_rows} rows, found the shape "
                f"{values.shape} or others: correct it."
            )
    table = np.column_stack([values.astype(np.float64) for values in rewards.values()])
    if by is None:
        return [EpisodeLog.of(sample, table)]
    known = dict(sample.recorded) | dict(zip(sample.names, sample.features.T, strict=True))
    if by not in known:
        raise InputError(f"no column '{by}' says which configuration a row is from: {nearest(by, known)}")
    values = np.unique(known[by])
    if len(values) > max(1, (sample.num_episodes or 1) // FEWEST_EPISODES):
        raise InputError(
            f"each configuration needs {FEWEST_EPISODES} episodes, found {len(values)} values of '{by}' in "
            f"{sample.num_episodes}: name another column."
        )
    return [EpisodeLog.of(sample.take(known[by] == value), table[known[by] == value]) for value in values]


def check_rewards(names: Sequence[str], logs: Sequence[EpisodeLog], discount: float) -> None:
    """Enough episodes, two features or more, and none of them the same whatever the agent does."""
    if len(names) < 2:
        raise InputError(
            f"one reward feature ({names[0]}) has the weight 1, whatever the agent does: name two or more to weigh."
        )
    if len(names) > MOST_REWARDS:
        raise InputError(f"at most {MOST_REWARDS} reward features can be weighed, found {len(names)}: name fewer.")
    few = min(len(log.starts) for log in logs)
    if few < FEWEST_EPISODES:
        raise InputError(
            f"gradients need at least {FEWEST_EPISODES} episodes a configuration, found {few}: record more."
        )
    for k, name in enumerate(names):
        for log in logs:
            lengths = (
                np.arange(len(log.rewards))
                - log.starts[np.cumsum(np.isin(np.arange(len(log.rewards)), log.starts)) - 1]
            )
            returns = np.add.reduceat(discount**lengths * log.rewards[:, k], log.starts)
            if np.ptp(returns) > 1e-9 * max(np.abs(returns).max(), 1e-300):
                break
        else:
            raise InputError(
                f"the reward feature '{name}' adds up to the same in every episode, so that no behaviour is better or worse "
                "for it: leave it out."
            )


def _weighed(
    fits: Sequence[FittedEpisodes],
    names: Sequence[str],
    support: tuple[str, ...],
    signed: bool,
    coordinates: Coordinates,
    bootstrap: int,
    seed: int,
    found: IdentifiedSpace | None,
) -> RecoveredReward:
    """Weights, their bootstrap, and the directions that have no gradient."""
    rng = np.random.default_rng(seed)
    both = [fit.jacobian() for fit in fits]
    shares = np.array([len(fit.episodes.starts) for fit in fits], dtype=np.float64)
    roots = np.sqrt(shares / shares.sum())
    jacobian = np.vstack([root * one for root, (one, _) in zip(roots, both, strict=True)])
    curvature = sum(root**2 * one for root, (_, one) in zip(roots, both, strict=True))
    drawn, curved = [], []
    for _ in counted(range(bootstrap), "drawing episodes anew"):
        counts = [rng.multinomial(int(n), np.full(int(n), 1 / n)).astype(np.float64) for n in shares]
        parts = [fit.jacobian(count) for fit, count in zip(fits, counts, strict=True)]
        drawn.append(np.vstack([r * one for r, (one, _) in zip(roots, parts, strict=True)]))
        curved.append(sum(root**2 * one for root, (_, one) in zip(roots, parts, strict=True)))
    noise = np.array(drawn) - jacobian  # [B, D, K]
    # One unit for all features: the noise of their gradients.
    unit = np.sqrt((noise**2).sum(axis=1).mean(axis=0))
    unit = np.where(unit > 0, unit, 1.0)
    scaled, bent = jacobian / unit, np.asarray(curvature) / unit
    # What has neither a gradient nor a curvature the agent cannot change: any weight of it would do.
    spread_of_curvature = np.std(np.array(curved) / unit, axis=0)
    idle = [
        not has_gradient(scaled, noise / unit, axis) and bent[k] > -CURVED * spread_of_curvature[k]
        for k, axis in enumerate(np.eye(len(names)))
    ]
    active = np.flatnonzero(~np.array(idle)) if not all(idle) else np.arange(len(names))

    def weights(one: np.ndarray, bend: np.ndarray) -> np.ndarray:
        part, bend = (one / unit)[:, active], (bend / unit)[active]
        w = np.zeros(len(names))
        w[active] = (signed_weights(part, bend) if signed else simplex_weights(part)) / unit[active]
        return np.asarray(w / np.abs(w).sum())

    best = weights(jacobian, np.asarray(curvature))
    replicates = np.array([weights(one, np.asarray(bend)) for one, bend in zip(drawn, curved, strict=True)])
    low, high = np.quantile(replicates, [0.025, 0.975], axis=0)
    low[idle], high[idle] = -1.0 if signed else 0.0, 1.0
    own = best * unit
    own = own / np.linalg.norm(own)
    # Of the directions without a gradient one is the reward itself; the others are what the log does not tell.
    part, part_noise = scaled[:, active], (noise / unit)[:, :, active]
    num_flat = sum(not has_gradient(part, part_noise, v) for v in np.linalg.svd(part)[2])
    unresolved = [{names[k]: 1.0} for k in range(len(names)) if k not in active]
    for v in untold_directions(part, part_noise, own[active], num_flat - 1):
        raw = v / unit[active]
        raw = raw / raw[np.abs(raw).argmax()]
        unresolved.append({names[k]: float(x) for k, x in zip(active.tolist(), raw, strict=True) if x})
    explained = not has_gradient(scaled, noise / unit, own)
    spread = float(np.sqrt(((noise / unit @ own) ** 2).sum(axis=1).mean()))
    sizes = np.linalg.norm(scaled, axis=0)
    return RecoveredReward(
        tuple(
            RewardWeight(
                name, float(best[k]), float(min(low[k], best[k])), float(max(high[k], best[k])), float(sizes[k])
            )
            for k, name in enumerate(names)
        ),
        support,
        tuple(unresolved),
        float(np.linalg.norm(scaled @ own)) / max(spread, 1e-300),
        explained,
        signed,
        fits[0].discount,
        int(shares.sum()),
        len(fits),
        len(jacobian),
        coordinates,
        tuple(found_notes(found) if found else ()),
    )


def has_gradient(jacobian: np.ndarray, noise: np.ndarray, direction: np.ndarray) -> bool:
    """Is ‖Jv‖ more than the noise of the bootstrap [B, D, K] gives in that direction?"""
    sizes = np.linalg.norm(noise @ direction, axis=1)
    rounding = 1e-9 * float(np.linalg.norm(jacobian))
    return bool(np.linalg.norm(jacobian @ direction) > np.quantile(sizes, 1 - LEVEL) + rounding)


def untold_directions(jacobian: np.ndarray, noise: np.ndarray, own: np.ndarray, count: int) -> list[np.ndarray]:
    """So many directions without a gradient beside the reward `own`, each of as few reward features as possible."""
    size, found = len(own), list[np.ndarray]()
    for number in range(1, size + 1):
        for subset in combinations(range(size), number):
            if len(found) >= count:
                return found
            v = np.zeros(size)
            v[list(subset)] = np.linalg.svd(jacobian[:, subset])[2][-1]
            known = np.linalg.qr(np.array([own, *found]).T)[0]
            new = np.linalg.norm(v - known @ (known.T @ v)) > DISTINCT
            if new and np.abs(v[list(subset)]).min() > DISTINCT / 4 and not has_gradient(jacobian, noise, v):
                found.append(v)
    return found
