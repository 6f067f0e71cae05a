"""The configuring loop: observe, identify, design, observe again — Algorithms 3 and 4, and joint designs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Literal, final

import numpy as np

from policyspace.answer import Identification
from policyspace.configuration.designs import Design, Information, Proposal, Question
from policyspace.data.demonstrations import Demonstrations
from policyspace.errors import InputError
from policyspace.fits import likelihood_of
from policyspace.fits.boltzmann_fits import BoltzmannLikelihood
from policyspace.fits.firth import FirthLikelihood
from policyspace.fits.subsets import COLLINEAR
from policyspace.identification import combinatorial, simplified, simplified_by
from policyspace.policies import BoltzmannLinear, PolicySpace
from policyspace.policies.jax_setup import jax
from policyspace.worlds.confmdp import Configuration, ConfMDP, Key
from policyspace.worlds.trajectories import Trajectories

Observe = Callable[[Key, Configuration, int], Trajectories]
"""The only door to the world: a simulator, a replay or a real agent, observed for some episodes under a configuration."""

Rule = Literal["simplified", "combinatorial"]

FEW = 20
"""Pairs a parameter below which Wilks' χ² is too liberal so far in its tail."""


@final
@dataclass(frozen=True)
class Round:
    """One look at the agent: where, why, at which level it was tested, and what fell."""

    number: int
    configuration: dict[str, np.ndarray]
    proposal: Proposal | None  # none in the first round, at ω₀
    num_episodes: int
    significance: float
    identification: Identification | None  # none where this batch alone could not be tested
    fell: tuple[str, ...]  # newly shown to be controlled
    selected: tuple[str, ...]  # so far
    undecided: tuple[str, ...]
    supports: list[list[str]]  # that explain every round so far
    total_episodes: int
    warnings: list[str] = field(default_factory=list)


@dataclass
class Ledger:
    """What has been decided so far, and by which rule batches are tested.

    Every round has a level of its own and the levels add up to δ: under the hypothesis, the chance that any round
    selects a unit wrongly is then at most δ, whatever the configurations depended on. The paper's union instead tests every
    round at full δ.
    """

    space: PolicySpace
    rule: Rule
    significance: float
    num_rounds: int
    paper_rule: bool = False
    selected: tuple[str, ...] = ()
    supports: list[list[str]] | None = None

    @property
    def level(self) -> float:
        """δ of one round."""
        return self.significance if self.paper_rule else self.significance / self.num_rounds

    @property
    def undecided(self) -> tuple[str, ...]:
        """The units not yet shown to be controlled."""
        return tuple(g.name for g in self.space.groups if not g.always and g.name not in self.selected)

    @property
    def units(self) -> list[int]:
        """The undecided units by index."""
        return [i for i, g in enumerate(self.space.groups) if g.name in self.undecided]

    def take(self, data: Demonstrations | str) -> tuple[Identification | None, tuple[str, ...], list[str]]:
        """Test one batch, or say why there is none, and unite: (its identification, what newly fell, what went wrong)."""
        if isinstance(data, str):
            return None, (), [f"this batch alone could not be tested: {data}"]
        space, data, warnings = played(self.space, data)
        try:
            if self.rule == "simplified":
                found = self._one_at_a_time(space.with_always(self.selected), data)
            else:
                found = combinatorial(space, data, self.level, self.paper_rule)
        except InputError as error:
            return None, (), [*warnings, f"this batch alone could not be tested: {error}"]
        fell = tuple(name for name in found.core if name not in self.selected and name in self.undecided)
        self.selected = tuple(g.name for g in self.space.groups if g.name in {*self.selected, *fell})
        self.supports = found.supports if self.supports is None else united(self.supports, found.supports)
        if self.rule == "simplified":
            self.supports = [
                self.space.named(frozenset(i for i, g in enumerate(self.space.groups) if g.name in self.selected))
            ]
        return found, fell, warnings

    def _one_at_a_time(self, space: PolicySpace, data: Demonstrations) -> Identification:
        """Rule 2 by Wilks' law, or by Firth's where that errs too often: on separated data and on few pairs."""
        if self.paper_rule:
            return simplified(space, data, self.level, "bonferroni")
        part = _independent_part(space, data)
        if part is not None:
            likelihood = likelihood_of(*part)
            if data.num_pairs < FEW * space.num_parameters or likelihood.full.separated:
                assert isinstance(likelihood, BoltzmannLikelihood)
                found = simplified_by(FirthLikelihood(likelihood), part[1], self.level, "holm")
                declared = {g.name for g in space.groups if g.always}
                shown = {t.group for t in found.tests if t.rejected}
                return replace(found, core=[name for name in found.core if name in declared | shown])
            if part[0].groups == space.groups and not space.fixed.any():
                return simplified_by(likelihood, data, self.level, "holm")  # nothing was left out
        return simplified(space, data, self.level, "holm")


def configure(
    world: ConfMDP,
    observe: Observe,
    key: Key,
    space: PolicySpace | None = None,
    rule: Rule = "simplified",
    significance: float = 0.05,
    design: Design | None = None,
    num_episodes: int = 100,
    num_attempts: int = 3,
    budget: int | None = None,
    initial: Configuration | None = None,
    paper_rule: bool = False,
) -> Iterator[Round]:
    """Observe at ω₀, identify, then configure for what is undecided, round by round (Algorithms 3 and 4).

    A design for one unit at a time (the paper's C_I) asks for every undecided unit at most `num_attempts` times, each time
    from the data of its last attempt; a joint design asks `num_attempts` times for all of them at once. Rounds observe
    `num_episodes` each; with a `budget` the total is shared out over the rounds of a joint design. What has been decided
    is not asked again.
    """
    space = world.policy_space() if space is None else space
    design = Information() if design is None else design
    num_units = len(space.tested)
    num_rounds = 1 + num_attempts * (1 if design.joint else num_units)
    ledger = Ledger(space, rule, significance, num_rounds, paper_rule)
    sizes = _batches(num_episodes, num_rounds, budget, design.joint)
    start = world.check_configuration({}) if initial is None else initial
    number, total = 0, 0

    def look(proposal: Proposal | None, omega: Configuration) -> tuple[Round, Trajectories]:
        nonlocal number, total
        size = sizes[number] if budget is None else min(sizes[number], budget - total)
        seen = observe(jax.random.fold_in(key, 2 * number), omega, size)
        total += seen.num_episodes
        level = ledger.level
        found, fell, warnings = ledger.take(_pairs(world, seen))
        noted = [*(proposal.warnings if proposal else []), *warnings]
        result = Round(
            number, {name: np.asarray(value) for name, value in omega.items()}, proposal, seen.num_episodes, level, found,
            fell, ledger.selected, ledger.undecided, ledger.supports or [], total, noted,
        )  # fmt: skip
        number += 1
        return result, seen

    def ask(units: Sequence[int], logged: Trajectories) -> Proposal:
        data = _pairs(world, logged)
        theta = space.fixed.copy() if isinstance(data, str) else estimate(space, data)
        draw = jax.random.fold_in(key, 2 * number + 1)
        return design.propose(Question(world, space, theta, logged, units, sizes[number], draw))

    first, seen = look(None, start)
    yield first
    for attempt_units in _agenda(design, ledger, num_attempts):
        logged = seen
        for units in attempt_units:
            exhausted = budget is not None and total >= budget
            if not units or exhausted:
                break
            proposal = ask(units, logged)
            result, logged = look(proposal, world.check_configuration(proposal.configuration))
            yield result


def _pairs(world: ConfMDP, seen: Trajectories) -> Demonstrations | str:
    """The pairs of a batch, or why it has none worth the name: few episodes may show a single action."""
    try:
        return seen.pairs(world.feature_names, world.action_names)
    except InputError as error:
        return str(error)


def _agenda(design: Design, ledger: Ledger, num_attempts: int) -> Iterator[Iterator[list[int]]]:
    """For whom to configure: all undecided units together, or each in turn; every attempt looks again at what is open."""
    if design.joint:
        yield (ledger.units for _ in range(num_attempts))
        return
    for unit in ledger.units:
        yield ([unit] if unit in ledger.units else [] for _ in range(num_attempts))


def _batches(num_episodes: int, num_rounds: int, budget: int | None, joint: bool) -> list[int]:
    """Episodes of each round; a joint design shares its budget out evenly, the first look takes what is left over."""
    if budget is None or not joint:
        return [num_episodes] * num_rounds
    if budget < num_rounds:
        raise InputError(
            f"a budget of {budget} episodes is too small for {num_rounds} rounds: allow at least one each."
        )
    share, rest = divmod(budget, num_rounds)
    return [share + (rest if i == 0 else 0) for i in range(num_rounds)]


def united(before: list[list[str]], now: list[list[str]]) -> list[list[str]]:
    """The minimal supports that explain both: unions of one support from each, without those that hold another."""
    unions = {frozenset(a) | frozenset(b) for a, b in product(before, now)}
    order = list(dict.fromkeys(name for support in [*before, *now] for name in support))
    least = [u for u in unions if not any(v < u for v in unions)]
    return sorted(([name for name in order if name in u] for u in least), key=lambda u: (len(u), u))


def played(space: PolicySpace, data: Demonstrations) -> tuple[PolicySpace, Demonstrations, list[str]]:
    """Space and data without the actions that this batch never shows: they have no parameters to test here."""
    if not isinstance(space, BoltzmannLinear):
        return space, data, []
    seen = np.unique(data.actions)
    if len(seen) == len(space.action_names):
        return space, data, []
    names = tuple(data.action_names[code] for code in seen)
    missing = [name for name in data.action_names if name not in names]
    smaller = Demonstrations(
        data.features, np.searchsorted(seen, data.actions), data.names, names, data.episodes, data.weights, data.blocks
    )
    always = [g.name for g in space.groups if g.always and g.name != "intercept"]
    reduced = BoltzmannLinear(space.feature_names, names, "feature", always, 0.0, space.intercept)
    if {g.name for g in reduced.groups} != {g.name for g in space.groups}:
        return space, data, []
    return reduced, smaller, [f"never played in this batch: {', '.join(missing)}."]


def _independent_part(space: PolicySpace, data: Demonstrations) -> tuple[BoltzmannLinear, Demonstrations] | None:
    """Space and data without what Firth's penalty cannot take, collinear features; None where nothing could be tested.

    Constant ones drop out, of dependent ones so many that the others are not, and none of those is tested: this batch
    cannot tell them apart.
    """
    if not isinstance(space, BoltzmannLinear) or not {g.name for g in space.groups}.issuperset(data.names):
        return None  # groups of several features: what could drop out is not theirs alone
    kept, dependent = _independent(data.features)
    names = tuple(data.names[j] for j in kept)
    declared = {g.name for g in space.groups if g.always}
    always = [data.names[j] for j in kept if j in dependent or data.names[j] in declared]
    if len(always) == len(names):
        return None
    smaller = BoltzmannLinear(names, space.action_names, "feature", always, 0.0, space.intercept)
    part = Demonstrations(data.features[:, kept], data.actions, names, data.action_names, data.episodes, data.weights)
    return smaller, part


def _independent(features: np.ndarray) -> tuple[list[int], set[int]]:
    """Columns that vary and are independent, and those of them that columns left out depend on."""
    varies = np.flatnonzero(np.ptp(features, axis=0) > 0)
    if not len(varies):
        return [], set()
    columns = (features - features.mean(axis=0))[:, varies]
    num_rows = len(columns)
    # The triangle of a QR decomposition has the dependences of all rows.
    columns = np.asarray(np.linalg.qr(columns / columns.std(axis=0), mode="r"))
    eigenvalues, vectors = np.linalg.eigh(columns.T @ columns / num_rows)
    involved = np.abs(vectors[:, eigenvalues < COLLINEAR]).max(axis=1, initial=0.0) > 1e-6
    chosen = list(np.flatnonzero(~involved))
    for j in np.flatnonzero(involved):
        if np.linalg.matrix_rank(columns[:, [*chosen, j]], tol=1e-8 * np.sqrt(num_rows)) > len(chosen):
            chosen.append(j)
    return sorted(varies[chosen].tolist()), set(varies[involved].tolist())


def estimate(space: PolicySpace, data: Demonstrations) -> np.ndarray:
    """θ̂ for a design: finite even where the data are separated, zero where a batch says nothing."""
    reduced, smaller, _ = played(space, data)
    try:
        likelihood = likelihood_of(reduced, smaller)
    except InputError:
        return space.fixed.copy()
    if not isinstance(likelihood, BoltzmannLikelihood):
        return likelihood.full.theta
    weights = reduced.weights(likelihood.regularised())  # type: ignore[attr-defined]
    return _with_unplayed(space, reduced, weights)


def _with_unplayed(space: Any, reduced: Any, weights: np.ndarray) -> np.ndarray:
    """Weights of the full space: an action never played gets a low constant against the others."""
    if reduced is space:
        return weights.ravel()
    logits = np.zeros((len(space.action_names), weights.shape[1]))
    logits[:, 0] = -3.0 if space.intercept else 0.0
    for row, name in enumerate(reduced.action_names):
        logits[space.action_names.index(name)] = weights[row] if row < len(weights) else 0.0
    return (logits[:-1] - logits[-1]).ravel()
