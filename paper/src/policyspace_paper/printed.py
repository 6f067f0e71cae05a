"""The paper's own settings with the places that state them, and its rules and algorithms as they are printed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NotRequired, TypedDict, Unpack, cast

import numpy as np

from policyspace.data.sample import Sample
from policyspace.errors import InputError
from policyspace.families.base import PolicySpace, Support
from policyspace.families.jax_backend import jax
from policyspace.families.likelihood import ChiSquare
from policyspace.families.network import GaussianNetwork
from policyspace.families.registry import likelihood_of
from policyspace.families.softmax import SoftmaxLinear
from policyspace.families.softmax_sums import softmax, unique_rows
from policyspace.inference.selection import without_sufficient_child
from policyspace.study.designs import DesignProblem, PaperObjective, Proposal
from policyspace.study.evidence import estimated_theta, pairs_of
from policyspace.study.loop import Observe
from policyspace.study.records import Round, plain
from policyspace.worlds.base import Configuration, Key, Trajectories
from policyspace.worlds.confmdp import ConfMDP
from policyspace_paper.execution import Procedure, Record, RunSize
from policyspace_paper.panels import Claim, Panel

# -- The paper's settings, every constant with its source: the place that states it, its authors' code, or ours.

AUTHORS, OURS = "authors' code", "ours"
"""Where the paper is silent: what its authors' published code has, or what we chose."""
BEST = "ours: among the rates that were tried, the one whose agents are best (agents-rates)"


@dataclass(frozen=True)
class Stated:
    """A constant, and where the paper states it."""

    value: Any
    where: str = OURS


class LearningOptions(TypedDict, total=False):
    """Options of `learn`."""

    num_steps: int
    num_episodes: int
    learning_rate: float
    decay: float


class AdamOptions(TypedDict):
    """Fits in the tests: rate, steps, and the ± that their starts are drawn from; by default the last point of a path."""

    rate: float
    num_steps: int
    spreads: Sequence[float]
    point: NotRequired[str]


class ObjectiveOptions(TypedDict, total=False):
    """Options of the design that climbs C_I."""

    penalty: float
    num_updates: int
    learning_rate: float
    last_point: bool
    joint: bool


@dataclass(frozen=True, kw_only=True)
class PaperSettings:
    """What the paper says of one of its experiments; None where it has no such step."""

    runs: Stated
    num_episodes: Stated  # n, on the axis of its figures
    significance: Stated
    learning_steps: Stated
    learning_episodes: Stated
    learning_rate: Stated
    learning_decay: Stated = Stated(1.0)
    learning_start: Stated
    likelihood: Stated
    likelihood_rate: Stated | None = None
    likelihood_steps: Stated | None = None
    likelihood_starts: Stated | None = None  # weights are drawn uniformly from ± these
    num_attempts: Stated | None = None
    penalty: Stated | None = None
    num_updates: Stated | None = None
    configuration_rate: Stated | None = None

    @property
    def learning(self) -> LearningOptions:
        """How its agents learn."""
        return {
            "num_steps": self.learning_steps.value,
            "num_episodes": self.learning_episodes.value,
            "learning_rate": self.learning_rate.value,
            "decay": self.learning_decay.value,
        }

    @property
    def adam(self) -> AdamOptions | None:
        """The fits in the tests; None where they are in closed form."""
        stated = {"rate": self.likelihood_rate, "num_steps": self.likelihood_steps, "spreads": self.likelihood_starts}
        found = {name: one.value for name, one in stated.items() if one is not None}
        return cast(AdamOptions, found) if found else None

    @property
    def objective(self) -> ObjectiveOptions:
        """The design that climbs C_I: one start, the end of its path, whatever the data can say about it."""
        stated = {"penalty": self.penalty, "num_updates": self.num_updates, "learning_rate": self.configuration_rate}
        found = {name: one.value for name, one in stated.items() if one is not None}
        return cast(ObjectiveOptions, found | {"last_point": True})


def _grid(where: str, **own: Stated) -> PaperSettings:
    """What both grid worlds share."""
    return PaperSettings(
        runs=Stated(25, "captions of Figures 1 and 5"),
        significance=Stated(0.01, where),
        learning_start=Stated((0.0, 0.0), AUTHORS),
        num_attempts=Stated(3, where),
        configuration_rate=Stated(0.01, AUTHORS),
        **own,
    )


LITERAL = {
    "gridworld": _grid(
        "Appendix C.1",
        num_episodes=Stated((10, 30, 100, 300, 1000)),
        learning_rate=Stated(0.1, AUTHORS),
        learning_steps=Stated(200, "Appendix C.1"),
        learning_episodes=Stated(250, "Appendix C.1"),
        likelihood=Stated("Adam, all steps, the last point", "Appendix C.1 (Adam); ours (which point)"),
        likelihood_rate=Stated(0.03, "Appendix C.1"),
        likelihood_steps=Stated(1000, "Appendix C.1"),
        likelihood_starts=Stated((0.0,)),
        penalty=Stated(0.125, "Appendix C.1"),
        num_updates=Stated(150, "Appendix C.1"),
    ),
    "continuous-gridworld": _grid(
        "Appendix C.2",
        num_episodes=Stated((10, 30, 100, 300)),
        learning_rate=Stated(0.01, f"{BEST}; the authors' code has 0.1"),
        learning_steps=Stated(100, "Appendix C.2"),
        learning_episodes=Stated(100, "Appendix C.2"),
        likelihood=Stated("closed form", "Appendix C.2"),
        penalty=Stated(1e-6, "Appendix C.2"),
        num_updates=Stated(100, "Appendix C.2"),
    ),
    "minigolf": PaperSettings(
        runs=Stated(100, "captions of Figures 2 and 7"),
        num_episodes=Stated((10, 30, 100)),
        significance=Stated(0.01, "Appendix C.3"),
        learning_steps=Stated(100, "Appendix C.3"),
        learning_episodes=Stated(100, "Appendix C.3"),
        learning_rate=Stated(0.01, f"{BEST}; 0.003 where σ = 0.01, for which the authors' code has 0.001"),
        learning_start=Stated((0.0, 0.1), AUTHORS),
        likelihood=Stated("closed form", "Appendix C.3"),
        num_attempts=Stated(10, "Appendix C.3"),
        penalty=Stated(0.25, "Appendix C.3"),
        num_updates=Stated(100, "Appendix C.3"),
        configuration_rate=Stated(0.01),
    ),
    "car": PaperSettings(
        runs=Stated(100, "caption of Figure 3"),
        num_episodes=Stated((10, 30, 100)),
        significance=Stated(0.1, "Appendix C.4"),
        learning_steps=Stated(100, "Appendix C.4"),
        learning_episodes=Stated(50, "Appendix C.4"),
        learning_rate=Stated(0.03, f"{BEST}; the authors' code has 0.01"),
        learning_start=Stated((-0.01, 0.01), AUTHORS),
        likelihood=Stated("Adam, the last or the best point", "Appendix C.4 (Adam); ours, both are shown"),
        likelihood_rate=Stated(0.1, "Appendix C.4"),
        likelihood_steps=Stated(200, "Appendix C.4"),
        likelihood_starts=Stated((0.01, 1.0), "ours, both are shown"),
    ),
}
"""The experiments by world. Σ = 0.01 in minigolf is read as a variance; full batches and Adam's usual β are guesses."""


def procedures(scale: RunSize) -> tuple[Procedure, ...]:
    """By whose settings cells are made: the paper's and ours, or the paper's alone."""
    return ("literal",) if scale.as_published else ("literal", "ours")


# -- Maximum likelihood as the paper makes it: so many steps of Adam at a fixed rate, from a start, for all supports at once.

Evaluate = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""θ [m, d] → log L(θ) [m] and its gradient [m, d]."""

BETAS, EPSILON = (0.9, 0.999), 1e-8
"""Of Adam, as its authors have them; the paper names no others."""

CHUNK = 64
"""Rows whose hidden layers, of all θ together, stay in the cache."""


@dataclass(frozen=True)
class Ascent:
    """Where the paths of several supports came to: at their last step, and at the most likely of all their points."""

    last: np.ndarray  # log L [m]
    last_theta: np.ndarray  # [m, d]
    best: np.ndarray
    best_theta: np.ndarray


def ascend(evaluate: Evaluate, starts: np.ndarray, free: np.ndarray, rate: float, num_steps: int) -> Ascent:
    """`num_steps` of Adam from every start [m, d], each moving only what is `free` [m, d]."""
    theta = np.array(starts, dtype=np.float64)
    first, second = np.zeros_like(theta), np.zeros_like(theta)
    value, slope = evaluate(theta)
    best, best_theta = value.copy(), theta.copy()
    for step in range(1, num_steps + 1):
        slope = np.where(free, slope, 0.0)
        first = BETAS[0] * first + (1 - BETAS[0]) * slope
        second = BETAS[1] * second + (1 - BETAS[1]) * slope**2
        size = np.sqrt(second / (1 - BETAS[1] ** step)) + EPSILON
        theta = theta + rate / (1 - BETAS[0] ** step) * first / size
        value, slope = evaluate(theta)
        better = value > best
        best, best_theta = np.where(better, value, best), np.where(better[:, None], theta, best_theta)
    return Ascent(value, theta, best, best_theta)


def adam_fits(
    space: PolicySpace,
    evaluate: Evaluate,
    supports: Sequence[Support],
    rate: float,
    num_steps: int,
    spread: float = 0.0,
    seed: int = 0,
) -> Ascent:
    """The fits inside several Θ_I; each starts from weights of its own, uniform on (−spread, spread)."""
    free = np.array([space.free_mask(support) for support in supports])
    starts = np.random.default_rng(seed).uniform(-spread, spread, free.shape)
    return ascend(evaluate, np.where(free, starts, space.fixed), free, rate, num_steps)


def boltzmann_likelihood(space: SoftmaxLinear, features: np.ndarray, actions: np.ndarray) -> Evaluate:
    """log L(θ) = θᵀT − Σ_s N_s A(θ, s) of a Boltzmann linear policy, over the different states that were seen."""
    k = len(space.row_names)
    states, counts = unique_rows(features, actions, None, k + 1) or (features, np.eye(k + 1)[actions])
    x, visits = np.asarray(space.design(states), dtype=np.float64), counts.sum(axis=1)
    statistic = (counts[:, :k].T @ x).ravel()
    weighted = x.T * visits

    def evaluate(thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        m = len(thetas)
        columns = np.ascontiguousarray(thetas.reshape(m, k, -1).transpose(1, 2, 0))
        probabilities, log_partition = softmax(x, columns)
        mean = np.stack([weighted @ p for p in probabilities])  # [k, q, m]
        return thetas @ statistic - visits @ log_partition, statistic - mean.transpose(2, 0, 1).reshape(m, -1)

    return evaluate


def network_likelihood(space: GaussianNetwork, features: np.ndarray, actions: np.ndarray) -> Evaluate:
    """log L of a Gaussian network, its gradient by back-propagation; all θ go over a chunk of rows together."""
    inputs, wanted = np.ascontiguousarray(features.T), np.ascontiguousarray(actions.T)
    parts = [slice(first, first + CHUNK) for first in range(0, len(features), CHUNK)]
    constant = -0.5 * len(features) * float(np.linalg.slogdet(2 * np.pi * space.covariance)[1])

    def evaluate(thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, slopes = np.full(len(thetas), constant), np.zeros_like(thetas)
        for rows in parts:
            value, slope = _of_rows(space, thetas, inputs[:, rows], wanted[:, rows])
            values += value
            slopes += slope
        return values, slopes

    return evaluate


def _of_rows(
    space: GaussianNetwork, thetas: np.ndarray, x: np.ndarray, actions: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """−½ Σ (a − z)ᵀΣ⁻¹(a − z) [m] and its gradient [m, d] at every θ [m, d], over rows x [q, n]."""
    indices = space.layer_indices
    *inner, last = ((thetas[:, where], thetas[:, biases, None]) for where, biases in indices)
    values = [x]
    for weights, biases in inner:
        z = weights @ values[-1]
        z += biases
        values.append(space.activate(z))
    left = actions - last[0] @ values[-1] - last[1]
    delta, slopes = space.precision @ left, np.empty_like(thetas)
    found = -0.5 * (delta * left).sum(axis=(1, 2))
    for below, (weights, _), (where, biases) in zip(
        reversed(values), (last, *reversed(inner)), reversed(indices), strict=True
    ):
        slopes[:, where], slopes[:, biases] = delta @ below.swapaxes(-1, -2), delta.sum(axis=-1)
        if below is not x:
            delta = weights.swapaxes(1, 2) @ delta
            delta *= space.slope(below)
    return found, slopes


# -- Both identification rules as they are printed, on any λ: nothing is withheld, and nothing follows from monotonicity.


def all_of(space: PolicySpace) -> list[Support]:
    """The 2^d supports; bit b of a place in the list says whether the b-th tested group is in, so the last is the whole."""
    return [
        space.full_support.difference(g for bit, g in enumerate(space.tested) if not mask >> bit & 1)
        for mask in range(2 ** len(space.tested))
    ]


def one_out(space: PolicySpace) -> list[Support]:
    """The d supports that Rule 2 tests."""
    return [space.full_support - {g} for g in space.tested]


def rule_1(space: PolicySpace, statistics: np.ndarray, significance: float) -> list[list[str]]:
    """All I with λ_I ≤ c(I) and λ_{I∖i} > c(I∖i) for every i ∈ I, where c = χ²_{m,1−δ/2^d}, m the scalars that are zeroed.

    `statistics` are λ of `all_of` the supports.
    """
    law, level = ChiSquare(), significance / len(statistics)
    degrees = [int((~space.free_mask(support)).sum()) for support in all_of(space)]
    sufficient = statistics <= np.array([law.critical(level, m) for m in degrees])
    names = [space.groups[g].name for g in space.tested]
    return [
        [name for bit, name in enumerate(names) if mask >> bit & 1] for mask in without_sufficient_child(sufficient)
    ]


def rule_2(space: PolicySpace, statistics: np.ndarray, significance: float) -> list[str]:
    """All i with λ_{all∖i} > χ²_{m,1−δ/d}; `statistics` are λ of `one_out`."""
    groups = [space.groups[g] for g in space.tested]
    level = significance / len(groups)
    return [
        group.name
        for group, statistic in zip(groups, statistics, strict=True)
        if statistic > ChiSquare().critical(level, len(group.indices))
    ]


class RulesResult(TypedDict):
    """What both rules say, and λ of the tests of Rule 2."""

    rule_1: list[list[str]]
    rule_2: list[str]
    statistics: dict[str, float]


def both_rules(space: PolicySpace, statistics: np.ndarray, significance: float) -> RulesResult:
    """What the rules say of λ of all supports, and λ with one group out."""
    names = [space.groups[g].name for g in space.tested]
    without = statistics[[len(statistics) - 1 - 2**bit for bit in range(len(names))]]
    return {
        "rule_1": rule_1(space, statistics, significance),
        "rule_2": rule_2(space, without, significance),
        "statistics": dict(zip(names, np.round(without, 3).tolist(), strict=True)),
    }


# -- Every constant of the paper's settings, and where it states them, as a panel.

BETAS_SAID = "0.9 and 0.99 in learning, 0.9 and 0.999 elsewhere"
DEPARTURES = (
    ("departs: degrees of freedom", "d − |I|, the scalars that are zeroed, where c(l) has l = |I|", OURS),
    ("departs: early stop", "all steps of a fit are made, where the paper's number is a maximum", OURS),
)
"""Of the literal column from what is printed."""
OF_GRIDS = (
    ("controlled", "a random set of features", "Section 6.1, Appendix C.2"),
    ("chance of a feature to be in it", "½", AUTHORS),
    ("Adam's β", BETAS_SAID, AUTHORS),
)
FULL_BATCHES = ("likelihood batches", "all pairs in every step", OURS)
ALSO = {
    "gridworld": (
        *OF_GRIDS,
        FULL_BATCHES,
        ("first configuration", "logits 1, but for one of each coordinate, drawn uniformly, which is 5", AUTHORS),
        ("tested", "a feature, its three weights together; single weights in gridworld-weights", OURS),
        *DEPARTURES,
    ),
    "continuous-gridworld": (
        *OF_GRIDS,
        ("first configuration", "means uniform on (−2, 2)", AUTHORS),
        ("variances of the starts", "0.2 of the agent, 0.4 of the goal", AUTHORS),
        ("tested", "a feature, its two weights together", OURS),
        DEPARTURES[0],
        ("departs: order of features", "column by column of their centres, where Appendix C.2 goes row by row", OURS),
    ),
    "minigolf": (
        (
            "Σ of the policy",
            "0.01, read as a variance; in minigolf-curve and minigolf-strategies as a deviation, too",
            f"Appendix C.3 (0.01); {OURS} (both readings)",
        ),
        ("chance of a feature to be controlled, where they are random", "½", OURS),
        ("Adam's β", BETAS_SAID, AUTHORS),
        ("episodes observed before a putter is chosen", "100", OURS),
        ("putters compared", "15 lengths from 1 to 15, by the curves of minigolf-curve", OURS),
        DEPARTURES[0],
    ),
    "car": (
        ("Adam's β", BETAS_SAID, AUTHORS),
        FULL_BATCHES,
        ("starts of the fits", "drawn for every set of sensors apart", OURS),
        *DEPARTURES,
    ),
}
"""Settings beside those of `PaperSettings`: what, which, and where the paper says so."""


def settings_panels(
    experiment: str, world: str, records: list[Record[Any, Any]], num_episodes: tuple[int, ...] | None = None
) -> list[Panel]:
    """Beside results of the literal procedure, every constant of it and where the paper states it.

    An experiment may have other numbers of episodes than the paper's figure of its world, or none.
    """
    if records[0].setting.get("procedure") != "literal":
        return []
    stated = LITERAL[world]
    if num_episodes is not None:
        stated = replace(stated, num_episodes=Stated(num_episodes))
    own = [
        (one.name, getattr(stated, one.name))
        for one in fields(PaperSettings)
        if getattr(stated, one.name) != Stated(())
    ]
    rows: list[tuple[str, ...]] = [
        (
            name.replace("_", " "),
            ", ".join(map(str, said.value)) if isinstance(said.value, tuple) else str(said.value),
            said.where,
        )
        for name, said in own
        if said is not None
    ]
    rows += ALSO[world]
    authors, ours = (sum(row[-1].startswith(source) for row in rows) for source in (AUTHORS, OURS))
    return [
        Panel(
            f"{experiment}-settings",
            "The literal settings, and where the paper states them",
            Claim(
                "Which of these settings are the paper's, which its authors' code's where it is silent, and which ours?"
            ),
            f"{len(rows) - authors - ours} of {len(rows)} are stated in the paper, {authors} are of its authors' code, "
            f"{ours} are ours.",
            None,
            ("setting", "value", "source"),
            rows,
        )
    ]


# -- Algorithms 3 and 4 as they are printed: every round at full δ over all units, what is found united over the rounds.


Statistics = Callable[[Sample, Sequence[Support]], tuple[np.ndarray, np.ndarray]]
"""λ of some supports of one data set, the whole space not being one of them, and θ̂ in the whole space."""


def by_adam(space: Any, adam: AdamOptions) -> Statistics:
    """From the last points of Adam's paths, as the paper fits Boltzmann policies, or from the best ones."""
    best = adam.get("point") == "best"

    def statistics(data: Sample, supports: Sequence[Support]) -> tuple[np.ndarray, np.ndarray]:
        evaluate = boltzmann_likelihood(space, data.features, data.actions)
        everything = [*supports, space.full_support]
        found = adam_fits(space, evaluate, everything, adam["rate"], adam["num_steps"], adam["spreads"][0])
        values, thetas = (found.best, found.best_theta) if best else (found.last, found.last_theta)
        return 2 * (values[-1] - values[:-1]), thetas[-1]

    return statistics


def in_closed_form(space: PolicySpace) -> Statistics:
    """By exact maxima, as the paper fits Gaussian policies; λ = 0 where a batch is too small to be fitted."""

    def statistics(data: Sample, supports: Sequence[Support]) -> tuple[np.ndarray, np.ndarray]:
        theta = estimated_theta(space, data)
        try:
            likelihood = likelihood_of(space, data)
            fits = likelihood.fit_many(supports)
        except InputError:
            return np.zeros(len(supports)), theta
        return np.array([2 * (likelihood.full.log_likelihood - fit.log_likelihood) for fit in fits]), theta

    return statistics


@dataclass(frozen=True)
class Observed:
    """One data set: where it was seen, what was seen, and θ̂."""

    trajectories: Trajectories
    theta: np.ndarray
    statistics: np.ndarray


@dataclass
class PrintedAlgorithm:
    """The rounds of Algorithm 4, or of Algorithm 3, with the paper's C_I as it is printed."""

    world: ConfMDP
    space: PolicySpace
    observe: Observe
    key: Key
    design: PaperObjective
    fitted: Statistics
    significance: float
    num_episodes: int
    num_attempts: int

    def simplified(self, initial: Configuration) -> list[Round]:
        """Algorithm 4: for each unit not in Î, at most N_conf configurations, until it is.

        That a unit which has been selected is left is the text of Appendix C.1; the listing goes on to N_conf.
        """
        supports, units = one_out(self.space), [self.space.groups[g].name for g in self.space.tested]
        first = self._observed(initial, 0, supports)
        rounds = [self._round([], first, None, rule_2(self.space, first.statistics, self.significance))]
        for unit, name in zip(self.space.tested, units, strict=True):
            last = first
            for _ in range(self.num_attempts):
                if name in rounds[-1].selected:
                    break
                proposal = self._proposed(last, [unit], len(rounds))
                last = self._observed(self.world.check_configuration(proposal.configuration), len(rounds), supports)
                found = rule_2(self.space, last.statistics, self.significance)
                rounds.append(self._round(rounds, last, proposal, found))
        return rounds

    def combinatorial(self, initial: Configuration) -> list[list[list[str]]]:
        """Algorithm 3: for each set of units not yet in the collection, N_conf configurations; collections are united.

        The collection after every round. The empty set asks for nothing, so there is nothing to configure for.
        """
        supports = all_of(self.space)
        first = self._observed(initial, 0, supports[:-1])
        collection = self._collection(first)
        united = [self._named(collection)]
        for support in supports[1:]:
            if support in collection:
                continue
            last = first
            for _ in range(self.num_attempts):
                proposal = self._proposed(last, [g for g in self.space.tested if g in support], len(united))
                omega = self.world.check_configuration(proposal.configuration)
                last = self._observed(omega, len(united), supports[:-1])
                collection |= self._collection(last)
                united.append(self._named(collection))
        return united

    def _named(self, collection: set[Support]) -> list[list[str]]:
        """Smallest first."""
        named = [[self.space.groups[g].name for g in self.space.tested if g in support] for support in collection]
        return sorted(named, key=lambda names: (len(names), names))

    def _collection(self, seen: Observed) -> set[Support]:
        found = rule_1(self.space, np.append(seen.statistics, 0.0), self.significance)
        rest = self.space.full_support.difference(self.space.tested)
        number = {self.space.groups[g].name: g for g in self.space.tested}
        return {rest.union(number[name] for name in names) for names in found}

    def _observed(self, omega: Configuration, number: int, supports: Sequence[Support]) -> Observed:
        seen = self.observe(jax.random.fold_in(self.key, 2 * number), omega, self.num_episodes)
        data = pairs_of(self.world, seen)
        if isinstance(data, str):  # a single action: nothing can be told from it
            return Observed(seen, self.space.fixed.copy(), np.zeros(len(supports)))
        statistics, theta = self.fitted(data, supports)
        return Observed(seen, theta, statistics)

    def _proposed(self, last: Observed, units: list[int], number: int) -> Proposal:
        key = jax.random.fold_in(self.key, 2 * number - 1)
        return self.design.propose(
            DesignProblem(self.world, self.space, last.theta, last.trajectories, units, self.num_episodes, key)
        )

    def _round(self, before: list[Round], seen: Observed, proposal: Proposal | None, found: list[str]) -> Round:
        """As files and pictures know a round."""
        names = [self.space.groups[g].name for g in self.space.tested]
        earlier = before[-1].selected if before else ()
        selected = tuple(name for name in names if name in {*earlier, *found})
        return Round(
            len(before),
            plain(seen.trajectories.configuration),
            None if proposal is None else proposal.design,
            tuple(names) if proposal is None else proposal.units,
            {},
            self.num_episodes,
            self.num_episodes * (len(before) + 1),
            self.significance,
            [],
            tuple(name for name in selected if name not in earlier),
            selected,
            tuple(name for name in names if name not in selected),
            [list(selected)],
        )


# -- Algorithms 1 to 4 for whoever wants to call them.


def algorithm_1(
    dataset: Sample, space: PolicySpace, significance: float, fitted: Statistics | None = None
) -> list[list[str]]:
    """Algorithm 1, Identification Rule 1 (combinatorial), as printed.

    Parameters
    ----------
    dataset : Sample
        𝒟, the pairs of states and actions.
    space : PolicySpace
        Θ and its tested units, of which there are d.
    significance : float
        δ; the critical values are c(l) = χ²_{m, 1−δ/2^d}, m the scalars that are zeroed.
    fitted : callable, optional
        How ℒ̂_I and ℒ̂ are maximised; by default exactly.

    Returns
    -------
    list of list of str
        ℐ̂_c: every I with λ_I ≤ c and λ_{I∖i} > c for all i ∈ I.

    Examples
    --------
    >>> from policyspace import GaussianLinear
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(200, 2))
    >>> data = Sample(x, x[:, :1] + rng.normal(size=(200, 1)), ("near", "far"), ("push",))
    >>> algorithm_1(data, GaussianLinear(("near", "far"), ("push",), 1.0), 0.05)
    [['near']]
    """
    statistics, _ = (fitted or in_closed_form(space))(dataset, all_of(space)[:-1])
    return rule_1(space, np.append(statistics, 0.0), significance)


def algorithm_2(
    dataset: Sample, space: PolicySpace, significance: float, fitted: Statistics | None = None
) -> list[str]:
    """Algorithm 2, Identification Rule 2 (simplified), as printed: Î_c = {i : λ_i > c(1)}.

    Parameters
    ----------
    dataset : Sample
        𝒟, the pairs of states and actions.
    space : PolicySpace
        Θ and its tested units, of which there are d.
    significance : float
        δ; the critical value is c(1) = χ²_{m, 1−δ/d}, m the scalars of a unit.
    fitted : callable, optional
        How ℒ̂_i and ℒ̂ are maximised; by default exactly.

    Returns
    -------
    list of str
        Î_c.

    Examples
    --------
    >>> from policyspace import GaussianLinear
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(200, 2))
    >>> data = Sample(x, x[:, :1] + rng.normal(size=(200, 1)), ("near", "far"), ("push",))
    >>> algorithm_2(data, GaussianLinear(("near", "far"), ("push",), 1.0), 0.05)
    ['near']
    """
    statistics, _ = (fitted or in_closed_form(space))(dataset, one_out(space))
    return rule_2(space, statistics, significance)


class Attempts(TypedDict, total=False):
    """How Algorithms 3 and 4 configure: what is not said is as `LITERAL` has it for the discrete grid world."""

    significance: float  # δ, in every round
    num_episodes: int  # n, of every dataset
    num_attempts: int  # N_conf
    penalty: float  # ζ
    num_updates: int  # of ω
    learning_rate: float  # of ω
    fitted: Statistics  # by default exact maxima


def algorithm_3(
    world: ConfMDP, space: PolicySpace, observe: Observe, key: Key, initial: Configuration, **how: Unpack[Attempts]
) -> list[list[str]]:
    """Algorithm 3, Identification Rule 1 with environment configuration, as printed.

    Parameters
    ----------
    world : ConfMDP
        The Conf-MDP, with its configuration space Ω.
    space : PolicySpace
        Θ and its tested units.
    observe : callable (key, configuration, num_episodes) -> Trajectories
        Collects 𝒟 by observing the agent's optimal policy π* in ℳ_ω.
    key : jax.random.key
        What chance is drawn from.
    initial : mapping
        ω₀.
    **how
        δ, n, N_conf, ζ and the ascent of C_I, as in `Attempts`.

    Returns
    -------
    list of list of str
        ℐ̂, the union over all configurations.
    """
    return _printed(world, space, observe, key, how).combinatorial(initial)[-1]


def algorithm_4(
    world: ConfMDP, space: PolicySpace, observe: Observe, key: Key, initial: Configuration, **how: Unpack[Attempts]
) -> list[str]:
    """Algorithm 4, Identification Rule 2 with environment configuration, as printed.

    Parameters
    ----------
    world : ConfMDP
        The Conf-MDP, with its configuration space Ω.
    space : PolicySpace
        Θ and its tested units.
    observe : callable (key, configuration, num_episodes) -> Trajectories
        Collects 𝒟 by observing the agent's optimal policy π* in ℳ_ω.
    key : jax.random.key
        What chance is drawn from.
    initial : mapping
        ω₀.
    **how
        δ, n, N_conf, ζ and the ascent of C_I, as in `Attempts`.

    Returns
    -------
    list of str
        Î, the union over all configurations.
    """
    return list(_printed(world, space, observe, key, how).simplified(initial)[-1].selected)


def _printed(world: ConfMDP, space: PolicySpace, observe: Observe, key: Key, how: Attempts) -> PrintedAlgorithm:
    stated = LITERAL["gridworld"]
    assert stated.num_attempts is not None
    climbed = {name: value for name, value in how.items() if name in ("penalty", "num_updates", "learning_rate")}
    options = cast(ObjectiveOptions, {**stated.objective, **climbed})
    return PrintedAlgorithm(
        world, space, observe, key, PaperObjective(**options),
        how.get("fitted") or in_closed_form(space), how.get("significance", stated.significance.value),
        how.get("num_episodes", 100), how.get("num_attempts", stated.num_attempts.value),
    )  # fmt: skip
