"""The assumption-lean score test: sign flips, e-values, and closed testing over groups."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import final

import numpy as np

from policyspace.answer import AssumptionCheck, ClusterSummary, Grade, Note, Reason
from policyspace.data.large.layout import STRETCH
from policyspace.data.rows import RowBlock
from policyspace.data.sample import Sample
from policyspace.display import listed_names
from policyspace.errors import InputError
from policyspace.families.base import PolicySpace, Support
from policyspace.inference.base import ClusterKind, SupportTest, TestResult, e_value
from policyspace.inference.effects import NOISE_ROWS, SAMPLE, Behaviour, GroupEffect, effect_of_change, evenly
from policyspace.inference.lean.clusters import (
    Clustering,
    Clusters,
    InMemory,
    InPasses,
    UnitChoice,
    fewest_clusters,
    in_order_of_rows,
    levels_of,
    merged,
)
from policyspace.inference.lean.regression import (
    MEMORY,
    Further,
    ResidualDiagnosis,
    further_inputs,
    largest_basis,
    unit_choices,
)
from policyspace.inference.lean.rows import Levels, checked_rows
from policyspace.inference.lean.scores import BATCH, ClusterScores, Projector, Scorer, ScoreSpec
from policyspace.runtime import counted

# -- How much the agent's behaviour hangs on an input: what changes when the other inputs' guess of it takes its place.


def effect_of(scorer: Scorer, kept: list[int], tested: list[int], dependence: float) -> GroupEffect:
    """The mean absolute change of the fitted action: of probabilities for labels, in standard deviations otherwise.

    For labels it is half the summed change of all probabilities (the share of decisions that changes). Random waves are
    left out of the fit: a guess lies between values that were seen, where waves may be anything. `dependence` is how many
    times its variance the noise has because rows depend on each other.
    """
    rows, basis, (used, table) = scorer.rows, scorer.basis, scorer.looked_at
    inside = basis.within(kept)
    everything, slopes, (least, most) = smooth_fit(scorer)
    guess = Projector(scorer.gram, inside & scorer.smooth).coefficients(scorer.gram[:, 1 + np.array(tested)])
    replaced = rows.inputs[used].copy()
    replaced[:, tested] = table @ guess
    changed = ~inside & scorer.smooth
    moved = np.zeros_like(table)
    moved[:, changed] = table[:, changed] - basis.only(changed).columns(replaced)
    expected, shift = scorer.expected, moved[:, changed] @ slopes[changed]
    # A guess may lie where no state ever was: no action beyond those that were seen is expected there.
    change = np.clip(expected, least, most) - np.clip(expected - shift, least, most)
    some = evenly(len(used), NOISE_ROWS)
    whole = scorer.source.num_rows
    spread = np.sqrt(dependence * ((rows.actions[used] - expected) ** 2).mean(axis=0))
    spread *= np.sqrt(whole / max(whole - scorer.smooth.sum(), 1.0))
    factors, raw = everything.whitened(moved[some])[:, None, :], shift[some]
    if rows.num_labels is None:
        return effect_of_change(raw, float(np.abs(change).mean()), factors, spread)
    change = change * rows.label_spread
    share = float((np.abs(change).sum(axis=1) + np.abs(change.sum(axis=1))).mean() / 2)
    return effect_of_change(raw, share, factors, spread, 1.0)


def smooth_fit(scorer: Scorer) -> tuple[Projector, np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """The regression of the actions on all columns but waves: its moments, its slopes, and the range of the actions."""
    actions = scorer.rows.actions
    return scorer.smooth_projector, scorer.smoothly, (actions.min(axis=0), actions.max(axis=0))


def dependence_of(scorer: Scorer, plan: ScoreSpec, unit: Clustering) -> float:
    """How many times the variance of independent rows the scores of linear use have, summed over clusters."""
    codes, look = unit.codes, plan.look
    part = slice(0, int(np.searchsorted(codes, codes[min(scorer.rows.num - 1, SAMPLE)])) or scorer.rows.num)
    rows = RowBlock(scorer.rows.inputs[part], scorer.rows.actions[part])
    left = look.left(rows, scorer.basis.columns(rows.features) @ look.slopes)
    scores = (left[:, : look.num_actions, None] * left[:, None, look.num_actions :]).reshape(len(left), -1)
    starts = np.flatnonzero(np.diff(codes[part], prepend=-1))
    by_cluster = np.add.reduceat(scores, starts, axis=0)
    return max(1.0, float((by_cluster**2).sum() / max((scores**2).sum(), 1e-300)))


ECHO, CURVED, BENT, NOISE = 0.7, 0.05, 0.01, 3.0
"""An input echoes the policy if its guess and that of the actions, by the other inputs, correlate so much beyond what is
linear in them, and so much of its variance, and of theirs, is of that kind, so many standard errors beyond chance."""


def echo_of(scorer: Scorer, plan: ScoreSpec) -> float:
    """How much tested inputs follow what the others say of the actions: the correlation of what is curved in both guesses.

    What regressions miss of a policy with kinks is then missed of the input too, and their product looks like use. Fitted
    curves hold noise as well: as many columns of it as are curved, with the covariance of what is left, are subtracted.
    """
    num_actions, num = scorer.cross.shape[1], scorer.source.num_rows
    straight, whole = plan.mask & scorer.linear, plan.mask
    (before, few), (after, many) = (scorer.left_over(mask, plan.look.tested) for mask in (straight, whole))
    left = after / max(num - many, 1)
    curved = (before - after) / num - (many - few) / num * left
    chance = NOISE * np.sqrt(2 * (many - few)) / num * np.diag(left)
    size = np.diag(curved)
    real = size >= chance + np.where(np.arange(len(size)) < num_actions, BENT, CURVED)
    of_actions = np.flatnonzero(real[:num_actions])
    of_inputs = num_actions + np.flatnonzero(real[num_actions:])
    together = curved[np.ix_(of_actions, of_inputs)] / np.sqrt(np.outer(size[of_actions], size[of_inputs]))
    return float(min(1.0, np.abs(together).max(initial=0.0)))


# -- Regressions pull residuals towards zero, most in clusters far from the others: by how much scores are too alike.

MOST_CLUSTERS = 40
MOST_ROWS = 400
"""Clusters are looked at in a sample, and of a long one only so many rows."""

NEGLIGIBLE = 0.02


def shrink_factor(scorer: Scorer, plan: ScoreSpec, codes: np.ndarray, num_summed: int) -> float:
    """√(Σ‖g‖²/Σ‖g̃‖²) ≤ 1 over clusters, g̃ from residuals divided by the root of 1 − leverage (Bell and McCaffrey's CR2).

    `codes` of the clusters of the rows at hand, `num_summed` the number of clusters of all rows.
    """
    columns, look = int(plan.mask.sum()), plan.look
    if columns / num_summed < NEGLIGIBLE:
        return float(np.sqrt(1 - columns / num_summed / 2))
    num = int(codes[-1]) + 1
    starts = np.searchsorted(codes, np.arange(num + 1))
    raw = corrected = 0.0
    num_actions = scorer.cross.shape[1]
    for cluster in np.unique(np.linspace(0, num - 1, min(num, MOST_CLUSTERS)).astype(np.intp)):
        part = slice(int(starts[cluster]), int(min(starts[cluster + 1], starts[cluster] + MOST_ROWS)))
        table = scorer.basis.columns(scorer.rows.inputs[part])
        left = look.left(RowBlock(scorer.rows.inputs[part], scorer.rows.actions[part]), table @ look.slopes)
        hat = table @ plan.projector.coefficients(table.T)
        values, vectors = np.linalg.eigh((hat + hat.T) / 2)
        root = 1 / np.sqrt(np.maximum(1 - values, 1e-2))
        actions = vectors @ (root[:, None] * (vectors.T @ left[:, :num_actions]))
        tested = left[:, num_actions:]
        raw += float(np.sum((tested.T @ left[:, :num_actions]) ** 2))
        corrected += float(np.sum((tested.T @ actions) ** 2))
    return float(np.sqrt(min(1.0, raw / corrected))) if corrected > 0 else 1.0


# -- How large a score is: a mixture e-value, and the share of sign flips that make it as large.

SPREADS = (0.05, 0.15, 0.45)
"""Sizes of use that are looked for: correlations of action and input given the rest."""

MINOR = 0.5
"""The size at which interactions, even use and use in the spread are looked for, against that of linear use."""

EXHAUSTIVE = 12
"""Up to so many clusters all sign flips are tried."""

ENOUGH = 20
"""Random flips stop when so many were as large as what was seen (Besag and Clifford)."""


class GaussianMixtureEValue:
    """E(s) = mean over D of |1 + DVD|^−½ exp{½ (Ds)ᵀ(1 + DVD)⁻¹(Ds)}: N(0, V) against shifts Vθ with θ ~ N(0, D²)."""

    def __init__(self, variance: np.ndarray, major: np.ndarray) -> None:
        """`variance` V [m, m] of the score, `major` [m] which of its entries are linear use."""
        self._roots: list[np.ndarray] = []
        self._prices: list[float] = []
        for spread in SPREADS:
            for minor in (0.0, MINOR):
                size = spread * np.where(major, 1.0, minor)
                kept = size > 0
                if (minor and major.all()) or not kept.any():
                    continue
                values, vectors = np.linalg.eigh(size[kept, None] * variance[np.ix_(kept, kept)] * size[kept])
                values = np.maximum(values, 0.0)
                root = np.zeros((len(size), kept.sum()))
                root[kept] = size[kept, None] * vectors / np.sqrt(1 + values)
                self._roots.append(root)
                self._prices.append(-0.5 * float(np.log1p(values).sum()))

    def log(self, scores: np.ndarray) -> np.ndarray:
        """log E of each score [f, m]."""
        terms = [
            price + 0.5 * ((scores @ root) ** 2).sum(axis=1)
            for root, price in zip(self._roots, self._prices, strict=True)
        ]
        return np.logaddexp.reduce(terms, axis=0) - np.log(len(terms))


def merge_small_clusters(clusters: np.ndarray, most: int) -> np.ndarray:
    """Neighbouring clusters [G, m] added up until there are at most so many."""
    together = -(-len(clusters) // most)
    return np.add.reduceat(clusters, np.arange(0, len(clusters), together), axis=0)


def log_evidence(clusters: np.ndarray, major: np.ndarray, correction: float = 1.0) -> float:
    """log E of the sum of cluster scores [G, m], their variance inflated by `correction`."""
    return float(GaussianMixtureEValue(correction * clusters.T @ clusters, major).log(clusters.sum(axis=0)[None])[0])


def sign_flip_p_value(
    clusters: np.ndarray, major: np.ndarray, shrink: float, most: int, seed: int
) -> tuple[float, float]:
    """The share of sign flips of whole clusters whose mixture statistic is as large as the observed one, and its log.

    `clusters` [G, m]; the observed sum is multiplied by `shrink`; `most` random flips at most where there are too many.
    """
    mixture = GaussianMixtureEValue(clusters.T @ clusters, major)
    observed = float(mixture.log(shrink * clusters.sum(axis=0)[None])[0])
    edge = observed - 1e-9 * max(1.0, abs(observed))
    num = len(clusters)
    if num <= EXHAUSTIVE:
        codes = np.arange(2 ** (num - 1))
        signs = 1.0 - 2.0 * ((codes[:, None] >> np.arange(num)) & 1)
        return float(np.mean(mixture.log(signs @ clusters) >= edge)), observed
    rng = np.random.default_rng([seed, 7])
    drawn = as_large = 0
    while drawn < most:
        size = min(500, most - drawn)
        signs = rng.integers(0, 2, (size, num), dtype=np.int8) * 2.0 - 1.0
        as_large += int(np.sum(mixture.log(signs @ clusters) >= edge))
        drawn += size
        if as_large >= ENOUGH:
            break
    return (1 + as_large) / (1 + drawn), observed


# -- Does the agent use these inputs? Answered by regressions of actions and inputs on the rest, without a policy model.


SHARE_OF_E = 0.01
"""The part of the level that a p-value of independent rows gives to 1/E, the rest to sign flips."""

MOST_FLIPPED = 512
"""Independent rows are united into so many clusters before their signs are flipped: cheaper, and nothing is lost."""


@dataclass(frozen=True)
class LeanResult:
    """One hypothesis: given the groups in `support`, the agent uses none of the others."""

    support: Support
    log_evidence: float
    """log of the mixture statistic E."""
    p_value: float
    """For one look at the data: the share of sign flips of clusters with as large a statistic; for independent rows the
    geometric mean of that and 1/E, if larger."""
    degrees: int
    """Directions in which use was looked for, times the columns of the action."""
    is_e_value: bool
    """Whether E is an e-value (independent rows): then it may be looked at again and again, and 1/E is a p-value too."""
    unit: str
    num_clusters: int
    promise: bool
    """False where nothing can be said: p = 1 then means that nothing was tested."""
    note: str = ""


MOST_FLIPS = 100_000
"""Of signs, whatever the significance: a smaller p-value is not reached, so that less is found and nothing falsely."""


class ScoreTest:
    """Tests of supports (groups that are kept; the others are tested) on one data set."""

    def __init__(
        self,
        features: np.ndarray,
        actions: np.ndarray,
        groups: Sequence[tuple[int, ...]],
        num_labels: int | None = None,
        episodes: np.ndarray | None = None,
        subjects: np.ndarray | None = None,
        weights: np.ndarray | None = None,
        assume: Iterable[int] = (),
        clusters: ClusterKind = "auto",
        significance: float = 0.05,
        seed: int = 0,
        whole: InPasses | None = None,
        levels: Levels = (),
    ) -> None:
        """`groups` of columns; those in `assume` (by number) are kept in every support.

        `significance` says how small p-values must be able to be. Of a log that is read in passes these rows are a sample,
        by which regressions and units are chosen; all sums are over the `whole`.
        """
        if not 0 < significance < 1:
            raise InputError(f"the significance must lie between 0 and 1, and is {significance}.")
        standard = None if whole is None else whole.standard
        self.rows = checked_rows(features, actions, num_labels, episodes, subjects, weights, standard, levels)
        if whole is not None and episodes is None and subjects is None:
            self.rows = replace(self.rows, episode=np.arange(self.rows.num) // STRETCH)
        self.groups = [tuple(group) for group in groups]
        if sorted(i for group in self.groups for i in group) != list(range(self.rows.inputs.shape[1])):
            raise InputError("every column of the features must be in exactly one group: check the groups' columns.")
        self.assume = frozenset(assume)
        self._check_groups(self.assume)
        self.tested = [group for group in range(len(self.groups)) if group not in self.assume]
        hypotheses = max(len(self.tested), 1)
        self._most_flips, self._seed = int(np.clip(np.ceil(8 * hypotheses / significance) - 1, 999, MOST_FLIPS)), seed
        self._whole = whole
        self._earlier: list[list[int]] = [[] for _ in self.groups]
        self._prepare(clusters, significance)
        self.further = Further({}, (), True, ())
        """What explains the actions beside the inputs, and is kept like inputs that are assumed to be used."""
        alone = subjects is None and clusters == "auto"
        first: ResidualDiagnosis = self.diagnosis
        if alone and not (first.greedy or first.doubtful):
            self.further = further_inputs(self._scorer, seed, [self.groups[group] for group in self.tested])
            if whole is not None:  # sums over files have no columns for what is in other rows
                self.further = Further({}, (), True, (*self.further.names, *self.further.left_out))
            if self.further.names:
                self._take_in(self.further)
                self._prepare(clusters, significance)
                self.diagnosis = first

    def _take_in(self, further: Further) -> None:
        """Further inputs are always kept; earlier values of an input are kept where it is."""
        at = width = self.rows.inputs.shape[1]
        self.rows = further.rows(self.rows)
        for columns in further.columns.values():
            self.assume |= {len(self.groups)}
            self.groups.append(tuple(range(at, at + columns.shape[1])))
            at += columns.shape[1]
        for group in range(len(self._earlier)):
            self._earlier[group] = [
                at + lag * width + column for lag in range(len(further.earlier)) for column in self.groups[group]
            ]

    units: dict[int, UnitChoice]
    diagnosis: ResidualDiagnosis

    @property
    def scorer(self) -> Scorer:
        """What scores supports."""
        return self._scorer

    def _prepare(self, clusters: ClusterKind, significance: float) -> None:
        """The regressions that the rows can feed, and the unit of every tested group."""
        whole = self._whole
        self.family = largest_basis(self.rows, self._seed)
        tested = [self.groups[group] for group in self.tested]
        self.sampled = "" if whole is None else whole.why_not(self.rows, self.family.basis.width, tested)
        """Why only the rows at hand are looked at, where there are others."""
        source = InMemory(self.rows) if whole is None or self.sampled else whole
        self._scorer = Scorer(self.rows, self.family.basis, source)
        self._clusters: dict[str, Clusters] = {}
        self._plans: dict[Support, ScoreSpec] = {}
        self._known: dict[Support, LeanResult] = {}
        plans = {group: self._plan(self._all_but(group)) for group in self.tested}
        fewest = fewest_clusters(max(len(self.tested), 1), significance)
        self.units, self.diagnosis = unit_choices(self._scorer, plans, self.groups, clusters, fewest)

    def test(self, support: Support) -> LeanResult:
        """One support."""
        return self.test_many([support])[0]

    def one_out(self) -> dict[int, LeanResult]:
        """For every tested group, the hypothesis that it alone is not used."""
        found = self.test_many([self._all_but(group) for group in self.tested])
        return dict(zip(self.tested, found, strict=True))

    def test_many(self, supports: Sequence[Support]) -> list[LeanResult]:
        """Several supports in few passes over the rows."""
        full = [support | self.assume for support in supports]
        self._check_groups(frozenset().union(*full))
        new = [support for support in dict.fromkeys(full) if support not in self._known]
        scored: list[tuple[Support, ScoreSpec, Clustering, UnitChoice]] = []
        for support in counted(new, "preparing tests"):
            plan, choice = self._plan(support), self._unit(support)
            if len(plan.look.tested) == 0:
                self._known[support] = self._nothing(support, "the kept inputs determine the tested ones", True)
            elif choice.unit is None:
                self._known[support] = self._nothing(support, choice.reason, False)
            else:
                scored.append((support, plan, choice.unit, choice))
        plans, clusters = [one[1] for one in scored], [self._clusters_of(one[2]) for one in scored]
        for one, sums in zip(scored, self._scorer.cluster_scores(plans, clusters), strict=True):
            self._known[one[0]] = self._judge(*one, sums)
        return [self._known[support] for support in full]

    def local_p_values(self, supports: Sequence[Support]) -> list[float]:
        """For closed testing: each support together with the one-out tests of what it leaves out.

        If H_I is true so are all of them. E-values are averaged with weights ½ and ½/|J|, p-values divided by these. Where
        one group is left out, its own p-value.
        """
        single = self.one_out()
        found = self.test_many(supports)
        return [self._local(result, single) for result in found]

    def effect(self, group: int) -> GroupEffect:
        """How much the fitted action changes when the guess of the other inputs replaces the group (see `effect_of`)."""
        inputs = frozenset(range(len(self.groups) - len(self.further.columns)))
        kept = self._columns(inputs - {group})
        return effect_of(self._scorer, kept, list(self.groups[group]), self.dependence(group))

    def dependence(self, group: int) -> float:
        """How many times the noise of a group's effect has the variance that independent rows would give it."""
        unit, plan = self.units[group].unit, self._plan(self._all_but(group))
        if unit is None or unit.length == 1 or not len(plan.look.tested):
            return 1.0
        return dependence_of(self._scorer, plan, unit)

    def echo(self, group: int) -> float:
        """How much a group follows what the other inputs say of the actions (see `echo_of`)."""
        return echo_of(self._scorer, self._plan(self._all_but(group)))

    def _local(self, result: LeanResult, single: dict[int, LeanResult]) -> float:
        outside = [group for group in self.tested if group not in result.support]
        weighted = [(result, 0.5)] + [(single[group], 0.5 / len(outside)) for group in outside]
        if len(outside) == 1:
            return result.p_value
        logs = [r.log_evidence + np.log(w) for r, w in weighted if r.is_e_value]
        shares = [r.p_value / w for r, w in weighted if not r.is_e_value]
        by_evidence = float(np.exp(-max(0.0, np.logaddexp.reduce(logs)))) if logs else 1.0
        return min([1.0, by_evidence, *shares])

    def _check_groups(self, named: Support) -> None:
        unknown = named - frozenset(range(len(self.groups)))
        if unknown:
            raise InputError(f"groups are numbered 0 to {len(self.groups) - 1}, and group {min(unknown)} was named.")

    def _all_but(self, group: int) -> Support:
        return frozenset(range(len(self.groups))) - {group}

    def _columns(self, groups: Iterable[int]) -> list[int]:
        return sorted(column for group in groups for column in self.groups[group])

    def _kept(self, groups: Iterable[int]) -> list[int]:
        """The columns of groups, and what they were earlier."""
        earlier = [column for group in groups if group < len(self._earlier) for column in self._earlier[group]]
        return self._columns(groups) + sorted(earlier)

    def _plan(self, support: Support) -> ScoreSpec:
        if support not in self._plans:
            outside = [group for group in range(len(self.groups)) if group not in support]
            self._plans[support] = self._scorer.plan(self._kept(support), self._columns(outside))
        return self._plans[support]

    def _unit(self, support: Support) -> UnitChoice:
        """The coarsest unit of the groups that are tested."""
        choices = [self.units[group] for group in self.tested if group not in support]
        if not choices:
            return UnitChoice(None, "nothing is tested")
        return max(choices, key=lambda choice: np.inf if choice.unit is None else 1 / choice.unit.num)

    def _clusters_of(self, unit: Clustering) -> Clusters:
        if unit.name not in self._clusters:
            self._clusters[unit.name] = self._scorer.source.clusters(unit)
        return self._clusters[unit.name]

    def _judge(
        self, support: Support, plan: ScoreSpec, unit: Clustering, choice: UnitChoice, clusters: ClusterScores
    ) -> LeanResult:
        independent = unit.length == 1
        flipped = clusters.sums
        if independent:
            left = 1 - clusters.num_regressors / self._scorer.source.num_rows
            log_e = log_evidence(clusters.sums, clusters.major, 1 / left)
            flipped, shrink = merge_small_clusters(clusters.sums, MOST_FLIPPED), float(np.sqrt(left))
        else:
            shrink = shrink_factor(self._scorer, plan, merged(unit), len(flipped)) * float(np.sqrt(1 - 1 / unit.num))
        shrink /= np.sqrt(max(choice.missed, 1.0))
        p_value, statistic = sign_flip_p_value(flipped, clusters.major, shrink, self._most_flips, self._seed)
        if independent:
            # Both hold, so a weighted minimum does; E goes on where flips cannot show a smaller share.
            p_value = min(1.0, p_value / (1 - SHARE_OF_E), float(np.exp(-max(0.0, log_e + np.log(SHARE_OF_E)))))
            # Halfway up to 1/E, where that is larger: what is between them leaves room for misfit of the regressions.
            p_value = max(p_value, float(np.sqrt(p_value * np.exp(-max(0.0, log_e)))))
        return LeanResult(
            support=support,
            log_evidence=log_e if independent else statistic,
            p_value=p_value,
            degrees=clusters.sums.shape[1],
            is_e_value=independent,
            unit=unit.name,
            num_clusters=unit.num,
            promise=True,
            note=choice.reason,
        )

    def _nothing(self, support: Support, why: str, promise: bool) -> LeanResult:
        return LeanResult(support, 0.0, 1.0, 0, True, "none", 0, promise, why)


# -- The assumption-lean test of supports: does the agent use a feature, whatever its policy looks like?


@final
class LeanTest(SupportTest):
    """Action and features are regressed on the rest; what is left of both must be uncorrelated if the feature is not used.

    No policy model is fitted. Rows that depend on each other are summed to blocks, episodes or subjects, whose signs are
    flipped; rows that do not give an e-value.
    """

    name, in_words, grade = "lean", "lean test", Grade.MODEL_FREE
    statistic_name = "2·log E"
    monotone = False
    assumes = ("independent clusters", "stochastic actions", "flexible regressions", "no echo", "no feedback")

    def __init__(
        self, space: PolicySpace, data: Sample, level: float = 0.05, seed: int = 0, clusters: str = "auto"
    ) -> None:
        columns = space.group_columns()
        if columns is None:
            raise InputError(
                "the test 'lean' asks which features are used, found groups of single parameters, hidden units or outputs: "
                "use the groups 'feature', or another test."
            )
        if space.fixed.any():
            raise InputError(
                "the test 'lean' asks whether a feature is used at all, found fixed values other than zero: leave them out, "
                "or use another test."
            )
        if data.origin.formula is not None and data.origin.formula.shares_columns:
            raise InputError(
                "the test 'lean' asks whether a column is used in any form, found several terms of one column: "
                "leave the formula out, or use another test."
            )
        self.space, self._data, self._level = space, data, level
        self._numbers = [number for number, inside in columns.items() if inside]
        self._index = {number: position for position, number in enumerate(self._numbers)}
        self._core = partial(
            ScoreTest,
            data.features,
            data.actions,
            [columns[number] for number in self._numbers],
            num_labels=data.action_type.num_labels,
            weights=data.weights,
            assume=[self._index[n] for n in self._numbers if n not in space.tested],
            clusters=clusters,  # type: ignore[arg-type]
            significance=level,
            seed=seed,
            levels=levels_of(data),
        )
        if not data.in_memory:
            self.batch = BATCH // 2
        self._num_supports = 0

    def prepare(self, groups: Sequence[int]) -> None:
        """How many supports there are to test says whether all rows of a log in files can be looked at."""
        self._num_supports = 2 ** len(groups) if len(groups) <= self.max_exhaustive_groups else 4 * len(groups)

    @cached_property
    def core(self) -> ScoreTest:
        """The test itself."""
        data = self._data
        if data.in_memory or not InPasses.is_needed(data):
            return self._core(
                whole=None, episodes=in_order_of_rows(data.episodes), subjects=in_order_of_rows(data.subjects)
            )
        whole = InPasses(data.rows, data, self._num_supports)
        return self._core(whole=whole, episodes=data.episodes, subjects=data.subjects)

    @property
    def sampled(self) -> bool:  # type: ignore[override]
        """Where there would be too much work, or the sample does not show what to look for."""
        return bool(self.core.sampled)

    def test_many(self, supports: Sequence[Support]) -> list[TestResult]:
        """For one group left out its own test, for several that of all together with each of theirs."""
        inner = [frozenset(self._index[n] for n in support if n in self._index) for support in supports]
        results = self.core.test_many(inner)
        local = self.core.local_p_values(inner)
        return [_as_test(s, result, p) for s, result, p in zip(supports, results, local, strict=True)]

    def evidence_lower_bound(self, test: TestResult) -> float:
        """The one-out tests of what is left out have a part in every smaller support's, of at least ½ over their number."""
        logs = [
            one.log_evidence if one.is_e_value else -np.log(one.p_value)
            for number, one in self._one_out.items()
            if number not in test.support
        ]
        least = 2 * (max(logs, default=0.0) - np.log(2 * max(len(self._one_out), 1)))
        return float(np.clip(least, 0.0, self.evidence(test)))

    def action_effect(self, group: int) -> GroupEffect:
        """How far the action moves when what the others predict of a group takes its place."""
        return self.core.effect(self._index[group])

    def behaviour(self) -> Behaviour:
        """The curves and products that were fitted to the actions; further inputs are at their means."""
        core, data, kind = self.core, self._data, self._data.action_type
        standard = core.rows.standard
        smooth, slopes, (least, most) = smooth_fit(core.scorer)
        width = core.rows.inputs.shape[1] - data.features.shape[1]

        def table(features: np.ndarray) -> np.ndarray:
            inputs = standard.inputs(np.array(features, dtype=np.float64))
            return core.scorer.basis.columns(np.hstack([inputs, np.zeros((len(inputs), width))]))

        def mean(features: np.ndarray) -> np.ndarray:
            return np.clip(table(features) @ slopes, least, most) * standard.action_scale + standard.action_shift

        def factor(features: np.ndarray) -> np.ndarray:
            return smooth.whitened(table(features))[:, None, :]

        used = core.rows.inputs[evenly(core.rows.num, SAMPLE)]
        left = core.rows.actions[evenly(core.rows.num, SAMPLE)] - core.scorer.basis.columns(used) @ slopes
        left = left * standard.action_scale * np.sqrt(max(map(core.dependence, core.tested), default=1.0))
        spread, rest = np.sqrt((left**2).mean(axis=0)), float(np.sqrt((left.sum(axis=1) ** 2).mean()))
        names = tuple(data.action_names[i] for i in standard.kept)
        others = [name for name in data.action_names if name not in names]
        discrete = kind.kind == "discrete"
        last = (others[0] if len(others) == 1 else "other") if discrete else None
        return Behaviour(mean, factor, spread, names, last, rest)

    @cached_property
    def _one_out(self) -> dict[int, LeanResult]:
        return {self._numbers[position]: result for position, result in self.core.one_out().items()}

    @property
    def clusters(self) -> ClusterSummary:
        """What was taken as independent of each other: the coarsest, and of these the fewest, if groups differ."""
        found = [(result.unit, result.num_clusters) for result in self._one_out.values() if result.num_clusters]
        for kind in ("subjects", "episodes", "blocks", "rows"):
            if of_kind := [(count, unit) for unit, count in found if unit.startswith(kind)]:
                count, unit = min(of_kind)
                return ClusterSummary(kind, count, int(unit.split()[2]) if kind == "blocks" else None)
        return ClusterSummary("rows")

    def conditions(self) -> tuple[Note, ...]:
        """No form of the policy is assumed; actions may be autocorrelated where what is left of a feature is not."""
        kind = self.clusters.kind
        scores = Note(Reason.INDEPENDENT_SCORES)
        independent = scores if kind == "rows" else Note(Reason.INDEPENDENT_CLUSTERS, {"clusters": kind})
        memory = (Note(Reason.SHORT_MEMORY, {"rows": MEMORY}),) if self.core.further.earlier else ()
        shared = Note(Reason.FLEXIBLE_REGRESSIONS), Note(Reason.LARGE_SAMPLE), Note(Reason.LOGGED_CAUSES)
        return independent, *shared, *memory

    def own_assumptions(self) -> list[AssumptionCheck]:
        """That there are enough independent clusters, and that actions are not a function of the features."""
        results = self._one_out
        failed = [self.space.groups[n].name for n, r in results.items() if not r.promise]
        diagnosis = self.core.diagnosis
        units = sorted({f"{r.num_clusters} {r.unit}" for r in results.values() if r.num_clusters})
        words = f"{' and '.join(units)} are taken as independent of each other" if units else "nothing could be tested"
        if failed and not diagnosis.greedy:
            words = next(r.note for r in results.values() if not r.promise)
        enough = AssumptionCheck.of("independent clusters", not failed or diagnosis.greedy, words)
        without_chance = diagnosis.greedy or diagnosis.doubtful
        chance = AssumptionCheck.of("stochastic actions", not without_chance, diagnosis.sentence())
        family = self.core.family
        words = family.too_simple or f"the regressions are {family.name} ({family.basis.width} columns)"
        if self.unfed:
            words = self.unfed
        flexible = AssumptionCheck.of("flexible regressions", family.too_simple is None and not self.unfed, words)
        used = {n: self.core.echo(self._index[n]) for n, one in results.items() if one.p_value <= self._level}
        echoes = [f"{self.space.groups[n].name} ({size:.2f})" for n, size in used.items() if size >= ECHO]
        words = "no input that seems used is a function of what the others say of the actions"
        if echoes:
            words = (
                f"{listed_names(echoes)}: in curves, what the other inputs say of it is what they say of the actions "
                "(correlation); what regressions miss of both appears as use"
            )
        return [enough, chance, flexible, AssumptionCheck.of("no echo", not echoes, words)]

    @property
    def unfed(self) -> str:
        """What explains the actions beside the inputs, and could not be taken in."""
        if not (found := self.core.further.left_out):
            return ""
        why = "rows are too few to test inputs given that"
        if self.core.further.determines:
            why = "they determine inputs of now, so that nothing could be tested given them"
        if not self._data.in_memory and InPasses.is_needed(self._data):
            why = (
                "a log that is read in passes is not tested given that: take fewer rows, or set "
                "POLICYSPACE_MAX_BYTES_AT_ONCE"
            )
        return f"{' and '.join(found)} tell what the agent does, too, and {why}"

    def note(self) -> str:
        """Which regressions, which clusters."""
        family, by_unit = self.core.family, dict[str, list[str]]()
        for number, result in self._one_out.items():
            if result.num_clusters:
                by_unit.setdefault(f"{result.num_clusters} {result.unit}", []).append(self.space.groups[number].name)
        units = " and ".join(f"{unit} for {', '.join(names)}" for unit, names in by_unit.items())
        if len(by_unit) == 1:
            units = next(iter(by_unit))
        regressions = (
            f"regressions are {family.name} ({family.basis.width} columns), the richest that so many rows can feed"
        )
        said = f"assumption-lean test, no policy model; {regressions}" + (
            f"; its clusters are {units}" if units else ""
        )
        if self.core.further.names:
            said += f"; given {' and '.join(self.core.further.names)} too, which explain the actions"
        if self.sampled:
            return f"{said}; {self.core.sampled}"
        data = self._data
        chosen = f"by a sample of {data.num_rows} of which regressions and clusters were chosen"
        return f"{said}; it looked at all {data.num_rows_total} rows, {chosen}" if not data.in_memory else said


def _as_test(support: Support, result: LeanResult, p_value: float) -> TestResult:
    log_e = result.log_evidence
    # A p-value of sign flips becomes an e-value by ½p^(−½), whose mean is at most 1 for every valid p.
    evidence = e_value(log_e) if result.is_e_value else 0.5 / np.sqrt(result.p_value)
    return TestResult(support, 2 * log_e, max(result.degrees, 1), p_value, float(evidence))
