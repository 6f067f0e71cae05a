"""Rewards: what an agent is after, by inverse reinforcement learning in the coordinates that it controls.

An agent that is optimal in its policy space Π_{Θ_I} has Σ_k w_k ∂J_k/∂θ_i = 0 in the coordinates i of I, and in these
alone: what it does not control may well have a gradient. The weights w of its reward are those for which it vanishes there
(GIRL).
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Unpack, final

import numpy as np
from scipy.optimize import nnls
from scipy.stats import chi2

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

ON_A_LINE, AT_RANDOM, STEPS = 241, 400, 2000
"""Weights that are tried: of two features, or of more at random and then step by step."""

INFORMED = 1e-3
"""The share of the largest information below which a direction of θ has none."""

SMALL = 1e-4
"""A step in θ for a difference, in units in which a row has the information 1."""

EPISODES_A_DIRECTION, MOST_DIRECTIONS = 5, 60
"""Of the directions whose gradient is tested: the covariance of as many must be known."""

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


@final
@dataclass(frozen=True)
class EpisodeGradients:
    """What each episode adds to ∇J_k by G(PO)MDP [m, d, K], and to the curvature of J_k [m, K]."""

    gradients: np.ndarray
    curvatures: np.ndarray

    @property
    def jacobian(self) -> np.ndarray:
        """∇J_k [d, K], the mean over episodes."""
        return np.asarray(self.gradients.mean(axis=0))

    @property
    def curvature(self) -> np.ndarray:
        """Of each J_k [K]."""
        return np.asarray(self.curvatures.mean(axis=0))


def return_gradients(scores: np.ndarray, rewards: np.ndarray, starts: np.ndarray, discount: float) -> EpisodeGradients:
    """Σ_t S_it ⊙ (γ^t r_kit − b_kt) of every episode i, from rows of scores [n, d] and rewards [n, K].

    S_it = Σ_{j≤t} ∇log π, with a baseline for each time step and coordinate, b_kt = Σ_i S²_it γ^t r_kit / Σ_i S²_it. The
    curvature is Σ_t Cov(γ^t r_kt, |S_t|²): how J_k changes when the policy is moved at random, up to a factor, if scores
    are standardised.
    """
    count, d, k = len(starts), scores.shape[1], rewards.shape[1]
    lengths = np.diff(np.append(starts, len(scores)))
    order = np.argsort(-lengths, kind="stable")
    starts, longest = starts[order], int(lengths.max())
    total, power, reach = np.zeros((count, d)), np.zeros(d), np.zeros(count)
    gradients, curvatures = np.zeros((count, d, k)), np.zeros((count, k))
    baselines, alive = np.zeros((longest + 1, d, k)), np.zeros(longest + 1, dtype=int)
    for t in range(longest):
        alive[t] = (lengths > t).sum()
        now = slice(int(alive[t]))
        before = total[now]
        after = before + scores[starts[now] + t]
        power += (after**2 - before**2).sum(axis=0)
        total[now], reach[now] = after, (after**2).sum(axis=1)
        earned = discount**t * rewards[starts[now] + t]
        baselines[t] = ((after**2).T @ earned) / np.where(power > 1e-12, power, 1.0)[:, None]
        gradients[now] += after[:, :, None] * (earned[:, None, :] - baselines[t])
        curvatures[now] += (reach[now] - reach.mean())[:, None] * earned
    # Episodes that have ended keep S and earn nothing: they still belong to the baselines.
    for t in range(1, longest):
        over = slice(int(alive[t]), int(alive[t - 1]))
        gradients[over] -= total[over, :, None] * baselines[t:].sum(axis=0)
    back = np.argsort(order)
    return EpisodeGradients(gradients[back], curvatures[back])


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

    def gradients(self, theta: np.ndarray | None = None) -> EpisodeGradients:
        """Of every episode in the `directions`, with the scores of the policy or of another θ."""
        policy = self.policy if theta is None else PolicyOfSpace(self.policy.space, theta)
        scores = step_scores(policy, self.free, self.episodes.sample) @ self.directions
        return return_gradients(scores, self.episodes.rewards, self.episodes.starts, self.discount)

    def influence(self, found: EpisodeGradients) -> np.ndarray:
        """By how much each episode moves ∂J_k/∂θ, times the number of episodes [m, r, K]: its own part, and through θ̂."""
        jacobian = found.jacobian
        information = (step_scores(self.policy, self.fitted, self.episodes.sample) ** 2).mean(axis=0)
        slopes = np.zeros((len(information), *jacobian.shape))
        for row, place in enumerate(np.flatnonzero(self.fitted)):
            if information[row] > 0:
                theta, width = self.policy.theta.copy(), SMALL / np.sqrt(information[row])
                theta[place] += width
                slopes[row] = (self.gradients(theta).jacobian - jacobian) / width
        count = len(self.episodes.starts)
        return np.asarray(found.gradients - jacobian + count * np.einsum("jm,jrk->mrk", self.step, slopes))


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
    """The weights between are not contradicted at 5 %, for all features together: long where the log hardly tells them."""
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
    """What no weights take away of the gradient, in units of its noise: about 1 is none."""
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
        How often episodes are drawn anew, to say which directions of the weights have a gradient at all.
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
    if len(values) < 2:
        raise InputError(
            f"'{by}' has one value, so that all episodes are of one configuration: leave it out (by=, --by)."
        )
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
    shares = np.array([len(fit.episodes.starts) for fit in fits], dtype=np.float64)
    roots = np.sqrt(shares / shares.sum())
    jacobians, bends, noises, bent_noises, tested = [], [], [], [], []
    for root, fit in zip(roots, counted(fits, "differentiating"), strict=True):
        found_ones = fit.gradients()
        influence, count = fit.influence(found_ones), len(fit.episodes.starts)
        jacobians.append(root * found_ones.jacobian)
        bends.append(root**2 * found_ones.curvature)
        # Episodes drawn anew: how often each is drawn, less one.
        drawn = rng.multinomial(count, np.full(count, 1 / count), size=bootstrap) - 1.0
        noises.append(root * np.tensordot(drawn, influence, axes=(1, 0)) / count)
        bent_noises.append(root**2 * drawn @ (found_ones.curvatures - found_ones.curvature) / count)
        tested.append(GradientLaw.of(found_ones.jacobian, influence))
    jacobian, curvature, noise = np.vstack(jacobians), np.sum(bends, axis=0), np.concatenate(noises, axis=1)
    # One unit for all features: the noise of their gradients.
    unit = np.sqrt((noise**2).sum(axis=1).mean(axis=0))
    unit = np.where(unit > 0, unit, 1.0)
    scaled, bent = jacobian / unit, curvature / unit
    # What has neither a gradient nor a curvature the agent cannot change: any weight of it would do.
    spread_of_curvature = np.std(np.sum(bent_noises, axis=0) / unit, axis=0)
    idle = [
        not has_gradient(scaled, noise / unit, axis) and bent[k] > -CURVED * spread_of_curvature[k]
        for k, axis in enumerate(np.eye(len(names)))
    ]
    active = np.flatnonzero(~np.array(idle)) if not all(idle) else np.arange(len(names))
    first = signed_weights(scaled[:, active], bent[active]) if signed else simplex_weights(scaled[:, active])
    sparse = np.zeros(len(names))
    sparse[active] = first
    region = GradientLaw.stacked(tested).scaled(unit).region(sparse, unit, signed, bent, rng)
    best = region.mean
    best = best / (unit * np.abs(best / unit).sum())
    inside = region.members / unit
    inside /= np.abs(inside).sum(axis=1, keepdims=True)
    low, high = inside.min(axis=0), inside.max(axis=0)
    # Of the directions without a gradient one is the reward itself; the others are what the log does not tell.
    slopes, slope_noise = scaled[:, active], (noise / unit)[:, :, active]
    num_flat = sum(not has_gradient(slopes, slope_noise, v) for v in np.linalg.svd(slopes)[2])
    unresolved = [{names[k]: 1.0} for k in range(len(names)) if k not in active]
    for v in untold_directions(slopes, slope_noise, first / np.linalg.norm(first), num_flat - 1):
        raw = v / unit[active]
        raw = raw / raw[np.abs(raw).argmax()]
        unresolved.append({names[k]: float(x) for k, x in zip(active.tolist(), raw, strict=True) if x})
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
        region.remaining,
        region.explained,
        signed,
        fits[0].discount,
        int(shares.sum()),
        len(fits),
        len(jacobian),
        coordinates,
        tuple(found_notes(found) if found else ()),
    )


# -- Which weights the gradients do not contradict.


@lru_cache(maxsize=64)
def critical_values(num_moments: int, num_weights: int) -> tuple[np.ndarray, np.ndarray]:
    """(r, c): what Q(w) − min Q stays below with a chance of 95 % at the true w, by how surely the weights are told, r.

    From χ² with `num_moments` where r = 0 down to χ² with `num_weights` where r is large (Moreira 2003, Kleibergen 2005).
    """
    rng = np.random.default_rng(0)
    one, rest = rng.chisquare(num_weights, 20_000), rng.chisquare(max(num_moments - num_weights, 1e-9), 20_000)
    told = np.concatenate([[0.0], np.geomspace(0.1, 1e5, 60)])
    both = (one + rest)[:, None]
    law = 0.5 * (both - told + np.sqrt((both + told) ** 2 - 4 * rest[:, None] * told))
    return told, np.quantile(law, 1 - LEVEL, axis=0)


@final
@dataclass(frozen=True)
class Region:
    """The weights that are not contradicted, and whether there are any that explain the gradients."""

    members: np.ndarray  # [n, K]
    mean: np.ndarray  # [K]
    remaining: float
    explained: bool


@final
@dataclass(frozen=True)
class GradientLaw:
    """Estimated gradients [D, K] and their covariance [D, K, D, K], in directions in which it is well known.

    For the true weights w, J·w is noise about zero: Q(w) = (Jw)ᵀ Cov(Jw)⁻¹ (Jw). The weights whose Q is least are the
    continuously updated GMM estimate, and those whose Q is little more are not contradicted. How much more is allowed
    hangs on how surely the gradients tell the weights, so that intervals are long where they hardly do.
    """

    jacobian: np.ndarray
    covariance: np.ndarray

    @classmethod
    def of(cls, jacobian: np.ndarray, influence: np.ndarray) -> "GradientLaw":
        """From what each episode adds [m, D, K]; the last directions are those of most information."""
        count, size, width = influence.shape
        kept = max(1, min(size, count // EPISODES_A_DIRECTION, MOST_DIRECTIONS))
        rows = influence[:, -kept:].reshape(count, -1)
        # A covariance of so few episodes is too small by this factor, when it is inverted (Hotelling).
        scale = count * max(count - kept, 1)
        return cls(jacobian[-kept:], (rows.T @ rows / scale).reshape(kept, width, kept, width))

    @classmethod
    def stacked(cls, laws: Sequence["GradientLaw"]) -> "GradientLaw":
        """Of several configurations, whose episodes are independent."""
        sizes = np.cumsum([0, *(len(law.jacobian) for law in laws)])
        width = laws[0].jacobian.shape[1]
        covariance = np.zeros((sizes[-1], width, sizes[-1], width))
        for start, law in zip(sizes, laws, strict=False):
            own = slice(start, start + len(law.jacobian))
            covariance[own, :, own] = law.covariance
        return cls(np.vstack([law.jacobian for law in laws]), covariance)

    def scaled(self, unit: np.ndarray) -> "GradientLaw":
        """With the gradient of each feature in a unit of its own [K]."""
        return GradientLaw(self.jacobian / unit, self.covariance / unit[:, None, None] / unit)

    def statistics(self, w: np.ndarray) -> tuple[float, float]:
        """Q(w), and how surely the other directions of w have a gradient: the r of `critical_values`."""
        toward = np.linalg.svd(w[None])[2][1:].T  # [K, K − 1]
        gradient, slopes = self.jacobian @ w, self.jacobian @ toward
        own = np.einsum("k,dkel,l->de", w, self.covariance, w)
        own += 1e-12 * np.trace(own) / len(own) * np.eye(len(own)) + 1e-300 * np.eye(len(own))
        cross = np.einsum("kp,dkel,l->pde", toward, self.covariance, w)  # Cov(J·toward_p, J·w)
        told = np.linalg.solve(own, gradient)
        # What is left of the slopes is independent of J·w.
        slopes = slopes - np.einsum("pde,e->dp", cross, told)
        spread = np.einsum("kp,dkel,lp->de", toward, self.covariance, toward)
        spread = spread - np.einsum(
            "pde,pfe->df", np.linalg.solve(own, cross.transpose(0, 2, 1)).transpose(0, 2, 1), cross
        )
        values, vectors = np.linalg.eigh(spread / max(toward.shape[1], 1))
        kept = values > 1e-9 * max(values[-1], 1e-300)
        white = (vectors[:, kept] / np.sqrt(values[kept])).T @ slopes
        return float(gradient @ told), float(np.linalg.eigvalsh(white.T @ white)[0])

    def region(
        self, best: np.ndarray, unit: np.ndarray, signed: bool, bent: np.ndarray, rng: np.random.Generator
    ) -> Region:
        """The weights that are not contradicted, among which is `best` in any case, and the mean of them by exp(−Q/2).

        All are those of gradients in `unit`s of each feature; the mean is over weights in the features' own units.
        """
        size, moments = len(best), len(self.jacobian)
        free = size - 1

        def spread_out(points: np.ndarray) -> np.ndarray:
            points = np.where((points @ bent > 0)[:, None], -points, points) if signed else np.abs(points)
            return np.asarray(points / np.abs(points).sum(axis=1, keepdims=True))

        best = spread_out(best[None])
        if not free:
            return Region(best, best[0], 0.0, True)
        if size == 2:
            angles = np.linspace(0, np.pi if signed else np.pi / 2, ON_A_LINE)
            line = np.column_stack([np.cos(angles), np.sin(angles)])
            line = np.vstack([line / np.abs(line).sum(axis=1, keepdims=True), line * unit])  # even in both units
            at_raw = np.arctan2(line[:, 1] / unit[1], line[:, 0] / unit[0])
            order = np.argsort(at_raw)
            points = spread_out(line[order])
            found = np.array([self.statistics(w) for w in points])
            chances = np.gradient(at_raw[order]) * np.exp(-0.5 * (found[:, 0] - found[:, 0].min()))
        else:
            points = spread_out(
                np.vstack([rng.normal(size=(AT_RANDOM, size)) ** (1 if signed else 2), np.eye(size), best])
            )
            found = np.array([self.statistics(w) for w in points])
            at, value = points[found[:, 0].argmin()], found[found[:, 0].argmin()]
            walked, worth, width = [], [], 0.5
            for number in range(STEPS):  # Metropolis, whose steps are as long as a quarter of them is taken
                other = spread_out((at + width * rng.normal(size=size) * np.maximum(np.abs(at), 0.05))[None])[0]
                tried = np.array(self.statistics(other))
                taken = bool(np.log(rng.random()) < 0.5 * (value[0] - tried[0]))
                at, value = (other, tried) if taken else (at, value)
                width *= np.exp((taken - 0.25) / np.sqrt(number + 1))
                walked.append(at)
                worth.append(value)
            # Steps are even in noise units: this makes them so in the features' own.
            chances = np.append(np.zeros(len(points)), np.abs(np.array(walked) / unit).sum(axis=1) ** -float(size))
            points, found = np.vstack([points, walked]), np.vstack([found, worth])
        told, allowed = critical_values(moments, min(free, moments))
        least, beyond = float(found[:, 0].min()), moments - free
        limit = chi2.ppf(1 - LEVEL, beyond) if beyond > 0 else np.inf
        members = np.vstack([points[self._inside(found, told, allowed)], best])
        raw = points / unit
        mean = spread_out((chances @ (raw / np.abs(raw).sum(axis=1, keepdims=True)) * unit)[None])[0]
        return Region(members, mean, float(np.sqrt(least / max(beyond, 1))), bool(least <= limit))

    @staticmethod
    def _inside(found: np.ndarray, told: np.ndarray, allowed: np.ndarray) -> np.ndarray:
        """Which points are not contradicted."""
        return np.asarray(found[:, 0] - found[:, 0].min() <= np.interp(found[:, 1], told, allowed))


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
