"""The assumption-lean test of supports: does the agent use a feature, whatever its policy looks like?"""

from collections.abc import Sequence
from functools import cached_property, partial
from typing import final

import numpy as np

from policyspace.answer import Assumption
from policyspace.data.demonstrations import Demonstrations
from policyspace.errors import InputError
from policyspace.inference.base import SupportTest, e_value
from policyspace.inference.glr import Test
from policyspace.inference.lean import LeanResult, LeanTest
from policyspace.inference.lean.all_rows import InPasses
from policyspace.inference.lean.scores import BATCH
from policyspace.policies.base import PolicySpace
from policyspace.policies.groups import Support


@final
class AssumptionLean(SupportTest):
    """Action and features are regressed on the rest; what is left of both must be uncorrelated if the feature is not used.

    No policy model is fitted. Rows that depend on each other are summed to blocks, episodes or subjects, whose signs are
    flipped; rows that do not give an e-value.
    """

    name = "lean"
    statistic_name = "2·log E"
    monotone = False
    assumes = ("independent units", "decisions with chance", "flexible regressions", "no feedback")

    def __init__(
        self, space: PolicySpace, data: Demonstrations, level: float = 0.05, seed: int = 0, dependence: str = "auto"
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
        if data.metadata.get("terms_share_columns"):
            raise InputError(
                "the test 'lean' asks whether a column is used in any form, found several terms of one column: "
                "leave the formula out, or use another test."
            )
        self.space, self._data = space, data
        self._numbers = [number for number, inside in columns.items() if inside]
        self._index = {number: position for position, number in enumerate(self._numbers)}
        self._core = partial(
            LeanTest,
            data.features,
            data.actions,
            [columns[number] for number in self._numbers],
            num_labels=len(data.action_names) if data.discrete else None,
            episodes=data.episodes,
            subjects=data.subjects,
            weights=data.weights,
            always=[self._index[n] for n in self._numbers if n not in space.tested],
            dependence=dependence,  # type: ignore[arg-type]
            significance=level,
            seed=seed,
        )
        if data.whole is not None:
            self.batch = BATCH // 2
        self._num_supports = 0

    def prepare(self, groups: Sequence[int]) -> None:
        """How many supports there are to test says whether all rows of a log in files can be looked at."""
        self._num_supports = 2 ** len(groups) if len(groups) <= self.most_searched else 4 * len(groups)

    @cached_property
    def core(self) -> LeanTest:
        """The test itself."""
        data = self._data
        return self._core(whole=None if data.whole is None else InPasses(data.whole, data, self._num_supports))

    @property
    def sampled(self) -> bool:  # type: ignore[override]
        """Where there would be too much work, or the sample does not show what to look for."""
        return bool(self.core.sampled)

    def test_many(self, supports: Sequence[Support]) -> list[Test]:
        """For one group left out its own test, for several that of all together with each of theirs."""
        inner = [frozenset(self._index[n] for n in support if n in self._index) for support in supports]
        results = self.core.test_many(inner)
        local = self.core.local_p_values(inner)
        return [_as_test(s, result, p) for s, result, p in zip(supports, results, local, strict=True)]

    def behavioural_effect(self, group: int) -> float:
        """How much the action changes when what the others predict of a group takes its place."""
        return self.core.effect(self._index[group])

    @cached_property
    def _one_out(self) -> dict[int, LeanResult]:
        return {self._numbers[position]: result for position, result in self.core.one_out().items()}

    @property
    def dependence(self) -> str:
        """What was taken as independent of each other: rows, blocks, episodes or subjects; the coarsest, if several."""
        kinds = {result.unit for result in self._one_out.values() if result.num_clusters}
        order = ("subjects", "episodes", "blocks", "rows")
        return next((kind for kind in order if any(unit.startswith(kind) for unit in kinds)), "rows")

    def condition(self) -> str:
        """No form of the policy is assumed, and decisions may hang together where what is left of a feature does not."""
        units = {"rows": "what a row says about a feature is independent of what other rows say about it"}.get(
            self.dependence, f"{self.dependence} are independent of each other"
        )
        return f"{units} and the regressions are flexible enough for what the agent does"

    def own_assumptions(self) -> list[Assumption]:
        """That there are enough independent units, and that actions are not a function of the features."""
        results = self._one_out
        failed = [self.space.groups[n].name for n, r in results.items() if not r.promise]
        diagnosis = self.core.diagnosis
        units = sorted({f"{r.num_clusters} {r.unit}" for r in results.values() if r.num_clusters})
        words = f"{' and '.join(units)} are taken as independent of each other" if units else "nothing could be tested"
        if failed and not diagnosis.greedy:
            words = next(r.note for r in results.values() if not r.promise)
        enough = Assumption("independent units", not failed or diagnosis.greedy, diagnosis.lag_one, words)
        without_chance = diagnosis.greedy or diagnosis.doubtful
        chance = Assumption("decisions with chance", not without_chance, diagnosis.explained, diagnosis.sentence())
        family = self.core.family
        words = family.too_simple or f"the regressions are {family.name} ({family.basis.width} columns)"
        return [enough, chance, Assumption("flexible regressions", family.too_simple is None, None, words)]

    def note(self) -> str:
        """Which regressions, which units."""
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
        said = f"assumption-lean test, no policy model; {regressions}" + (f"; its units are {units}" if units else "")
        if self.sampled:
            return f"{said}; {self.core.sampled}"
        data = self._data
        chosen = f"by a sample of {data.num_pairs} of which regressions and units were chosen"
        return f"{said}; it looked at all {data.num_logged} rows, {chosen}" if data.whole is not None else said


def _as_test(support: Support, result: LeanResult, p_value: float) -> Test:
    log_e = result.log_evidence
    # A p-value of sign flips becomes an e-value by ½p^(−½), whose mean is at most 1 for every valid p.
    evidence = e_value(log_e) if result.is_e_value else 0.5 / np.sqrt(result.p_value)
    return Test(support, 2 * log_e, max(result.degrees, 1), p_value, float(evidence))
