"""Does the agent use these inputs? Answered by regressions of actions and inputs on the rest, without a policy model."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from policyspace.data.large.samples import STRETCH
from policyspace.errors import InputError
from policyspace.inference.lean.all_rows import InMemory, InPasses
from policyspace.inference.lean.clusters import Clusters
from policyspace.inference.lean.dependence import Unitwise, unit_choices
from policyspace.inference.lean.effects import effect_of
from policyspace.inference.lean.evidence import flip_p_value, log_evidence, united
from policyspace.inference.lean.leverage import shrink_factor
from policyspace.inference.lean.nuisance import richest_family
from policyspace.inference.lean.rows import checked_rows
from policyspace.inference.lean.scores import ClusterScores, Plan, Scorer
from policyspace.inference.lean.units import Unit, UnitChoice, fewest_clusters, merged
from policyspace.progress import counted

Support = frozenset[int]

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
    """The share of sign flips of clusters with as large a statistic (smaller where E says so): for one look at the data."""
    degrees: int
    """Directions in which use was looked for, times the columns of the action."""
    is_e_value: bool
    """Whether E is an e-value (independent rows): then it may be looked at again and again, and 1/E is a p-value too."""
    unit: str
    num_clusters: int
    promise: bool
    """False where nothing can be said: p = 1 then means that nothing was tested."""
    note: str = ""


class LeanTest:
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
        always: Iterable[int] = (),
        dependence: Unitwise = "auto",
        significance: float = 0.05,
        seed: int = 0,
        whole: InPasses | None = None,
    ) -> None:
        """`groups` of columns; those `always` used (by number) are kept in every support.

        `significance` says how small p-values must be able to be. Of a log that is read in passes these rows are a sample,
        by which regressions and units are chosen; all sums are over the `whole`.
        """
        if not 0 < significance < 1:
            raise InputError(f"the significance must lie between 0 and 1, and is {significance}.")
        standard = None if whole is None else whole.standard
        self.rows = checked_rows(features, actions, num_labels, episodes, subjects, weights, standard)
        if whole is not None and episodes is None and subjects is None:
            self.rows = replace(self.rows, episode=np.arange(self.rows.num) // STRETCH)
        self.groups = [tuple(group) for group in groups]
        if sorted(i for group in self.groups for i in group) != list(range(self.rows.inputs.shape[1])):
            raise InputError("every column of the features must be in exactly one group: check the groups' columns.")
        self.always = frozenset(always)
        self._check_groups(self.always)
        self.tested = [group for group in range(len(self.groups)) if group not in self.always]
        hypotheses = max(len(self.tested), 1)
        self._most_flips, self._seed = int(max(999, np.ceil(8 * hypotheses / significance) - 1)), seed
        self.family = richest_family(self.rows, seed)
        tested = [self.groups[group] for group in self.tested]
        self.sampled = "" if whole is None else whole.why_not(self.rows, self.family.basis.width, tested)
        """Why only the rows at hand are looked at, where there are others."""
        source = InMemory(self.rows) if whole is None or self.sampled else whole
        self._scorer = Scorer(self.rows, self.family.basis, source)
        self._clusters: dict[str, Clusters] = {}
        self._plans: dict[Support, Plan] = {}
        self._known: dict[Support, LeanResult] = {}
        plans = {group: self._plan(self._all_but(group)) for group in self.tested}
        fewest = fewest_clusters(hypotheses, significance)
        self.units, self.diagnosis = unit_choices(self._scorer, plans, self.groups, dependence, fewest)

    def test(self, support: Support) -> LeanResult:
        """One support."""
        return self.test_many([support])[0]

    def one_out(self) -> dict[int, LeanResult]:
        """For every tested group, the hypothesis that it alone is not used."""
        found = self.test_many([self._all_but(group) for group in self.tested])
        return dict(zip(self.tested, found, strict=True))

    def test_many(self, supports: Sequence[Support]) -> list[LeanResult]:
        """Several supports in few passes over the rows."""
        full = [support | self.always for support in supports]
        self._check_groups(frozenset().union(*full))
        new = [support for support in dict.fromkeys(full) if support not in self._known]
        scored: list[tuple[Support, Plan, Unit, UnitChoice]] = []
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

        If H_I is true so are all of them. E-values are averaged with weights ½ and ½/|J|, p-values divided by these.
        """
        single = self.one_out()
        found = self.test_many(supports)
        return [self._local(result, single) for result in found]

    def effect(self, group: int) -> float:
        """How much the fitted action changes when the others' guess replaces the group (see `effects`)."""
        kept = self._columns(self._all_but(group))
        return effect_of(self._scorer, kept, list(self.groups[group]))

    def _local(self, result: LeanResult, single: dict[int, LeanResult]) -> float:
        outside = [group for group in self.tested if group not in result.support]
        weighted = [(result, 0.5)] + [(single[group], 0.5 / len(outside)) for group in outside]
        if len(outside) == 1:
            weighted = [(result, 1.0)]
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

    def _plan(self, support: Support) -> Plan:
        if support not in self._plans:
            outside = [group for group in range(len(self.groups)) if group not in support]
            self._plans[support] = self._scorer.plan(self._columns(support), self._columns(outside))
        return self._plans[support]

    def _unit(self, support: Support) -> UnitChoice:
        """The coarsest unit of the groups that are tested."""
        choices = [self.units[group] for group in self.tested if group not in support]
        if not choices:
            return UnitChoice(None, "nothing is tested")
        return max(choices, key=lambda choice: np.inf if choice.unit is None else 1 / choice.unit.num)

    def _clusters_of(self, unit: Unit) -> Clusters:
        if unit.name not in self._clusters:
            self._clusters[unit.name] = self._scorer.source.clusters(unit)
        return self._clusters[unit.name]

    def _judge(
        self, support: Support, plan: Plan, unit: Unit, choice: UnitChoice, clusters: ClusterScores
    ) -> LeanResult:
        independent = unit.length == 1
        flipped = clusters.sums
        if independent:
            left = 1 - clusters.num_regressors / self._scorer.source.num_rows
            log_e = log_evidence(clusters.sums, clusters.major, 1 / left)
            flipped, shrink = united(clusters.sums, MOST_FLIPPED), float(np.sqrt(left))
        else:
            shrink = shrink_factor(self._scorer, plan, merged(unit), len(flipped)) * float(np.sqrt(1 - 1 / unit.num))
        shrink /= np.sqrt(max(choice.missed, 1.0))
        p_value, statistic = flip_p_value(flipped, clusters.major, shrink, self._most_flips, self._seed)
        if independent:
            # Both hold, so a weighted minimum does; E goes on where flips cannot show a smaller share.
            p_value = min(1.0, p_value / (1 - SHARE_OF_E), float(np.exp(-max(0.0, log_e + np.log(SHARE_OF_E)))))
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
