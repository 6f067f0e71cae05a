"""How much rows depend on each other: looked at once for all groups of inputs, from what the regressions leave."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from policyspace.data.blocks import Block
from policyspace.errors import InputError
from policyspace.inference.lean.moments import Projector
from policyspace.inference.lean.rows import sample_of_episodes
from policyspace.inference.lean.scores import Plan, Scorer
from policyspace.inference.lean.sums import chunks
from policyspace.inference.lean.units import Unit, UnitChoice, autocorrelations, choose_unit, ladder

Unitwise = Literal["auto", "rows", "episodes"]

MOST_ROWS = 60_000
"""Rows in which dependence is looked for: whole episodes, evenly spaced."""

NEARLY_ALL = 0.9
GREEDY_CORRELATION = 0.15
GREEDY_ACCURACY = 0.97
CERTAIN = 0.995
"""Labels whose surest half is predicted so well, whatever the correlation, may follow without chance."""

MISFIT_ACCURACY, MISFIT_CORRELATION = 0.94, 0.3
"""Labels that are predicted this well while what is left still correlates this much: misfit rather than chance."""


@dataclass(frozen=True)
class Diagnosis:
    """What is left of the actions given all inputs."""

    explained: float
    """The share of the actions' variance that the flexible fit explains."""
    lag_one: float
    """The correlation of what is left in neighbouring rows of an episode."""
    sure_accuracy: float
    """Labels: how often the fitted label is right in the half of the rows where it is surest; 0 for other actions."""
    greedy: bool
    """Labels follow nearly without chance from the inputs: scores are then made of misfit, and nothing is tested."""
    doubtful: bool = False
    """Labels may follow without chance: tests are made, but nothing is promised of them."""

    def sentence(self) -> str:
        """The numbers in words."""
        said = (
            f"the fit explains {self.explained:.0%} of the actions; neighbouring residuals correlate {self.lag_one:.2f}"
        )
        if self.greedy:
            said += (
                f"; the surest half of the labels is predicted {self.sure_accuracy:.0%} right: an agent that takes its best "
                "action without chance, for which this test makes no promise"
            )
        elif self.doubtful:
            said += (
                f"; the surest half of the labels is predicted {self.sure_accuracy:.1%} right: the agent may take its best "
                "action without chance, for which this test makes no promise"
            )
        elif self.explained > NEARLY_ALL and self.lag_one > 0.5:
            said += "; hardly any chance in the actions: what is left is mostly the misfit of the regressions"
        return said


def unit_choices(
    scorer: Scorer, plans: dict[int, Plan], groups: Sequence[tuple[int, ...]], dependence: Unitwise, fewest: int
) -> tuple[dict[int, UnitChoice], Diagnosis]:
    """The unit of every tested group, with at least `fewest` clusters, and what was seen of the residuals.

    `plans` of the one-out tests by the group's number; `groups` of columns.
    """
    if dependence not in ("auto", "rows", "episodes"):
        raise InputError(f"dependence must be 'auto', 'rows' or 'episodes', and is '{dependence}'.")
    rows = scorer.rows
    used = sample_of_episodes(rows.episode, rows.num, MOST_ROWS)
    tested, residuals = _left(scorer, plans, used)
    diagnosis = _diagnose(scorer, used, residuals)
    if diagnosis.greedy and dependence == "auto":
        return {group: UnitChoice(None, diagnosis.sentence()) for group in plans}, diagnosis
    if dependence != "auto":
        forced = _forced(scorer, dependence, fewest)
        return dict.fromkeys(plans, forced), diagnosis
    units = ladder(rows, fewest, scorer.source.num_rows, scorer.source.num_owners)
    if rows.subject is not None:
        choice = UnitChoice(units[0], "subjects were named") if units else _too_few("subjects", fewest)
        return dict.fromkeys(plans, choice), diagnosis
    residuals = residuals / np.maximum(np.sqrt((residuals**2).mean(axis=0)), 1e-300)
    # Of an input that the others determine nothing is left: its own range stands in, for tests together with others.
    series = {
        group: left if left.shape[1] else rows.inputs[used][:, list(groups[group])] for group, left in tested.items()
    }
    return {group: choose_unit(units, series[group], residuals, rows, used) for group in plans}, diagnosis


def _forced(scorer: Scorer, dependence: Unitwise, fewest: int) -> UnitChoice:
    rows, source = scorer.rows, scorer.source
    if dependence == "rows":
        return UnitChoice(Unit("rows", 1, np.arange(rows.num), source.num_rows), "asked for")
    codes = rows.episode if rows.subject is None else rows.subject
    name = "episodes" if rows.subject is None else "subjects"
    unit = Unit(name, max(2.0, source.num_rows / source.num_owners), codes, source.num_owners)
    return UnitChoice(unit, "asked for") if unit.num >= fewest else _too_few(name, fewest)


def _too_few(name: str, fewest: int) -> UnitChoice:
    return UnitChoice(None, f"there are fewer than {fewest} {name}, too few for any promise")


def _left(scorer: Scorer, plans: dict[int, Plan], used: np.ndarray) -> tuple[dict[int, np.ndarray], np.ndarray]:
    """What is left of each group given the others, and of the actions given everything, at the rows looked at."""
    num_actions = scorer.cross.shape[1]
    everything = Projector(scorer.gram, np.ones(scorer.basis.width, bool)).coefficients(scorer.cross)
    looks = [plan.look for plan in plans.values()]
    slopes = np.hstack([everything] + [look.slopes[:, num_actions:] for look in looks])
    columns = np.concatenate([look.tested for look in looks])
    spread = np.concatenate([look.spread[num_actions:] for look in looks])
    left = np.empty((len(used), slopes.shape[1]))
    for part, rows in chunks(Block(scorer.rows.inputs[used], scorer.rows.actions[used])):
        seen = np.hstack([rows.actions, rows.features[:, columns]])
        left[part] = seen - scorer.basis.columns(rows.features) @ slopes
    left[:, num_actions:] /= spread
    tested, at = {}, num_actions
    for group, look in zip(plans, looks, strict=True):
        tested[group] = left[:, at : at + len(look.tested)]
        at += len(look.tested)
    return tested, left[:, :num_actions]


def _diagnose(scorer: Scorer, used: np.ndarray, residuals: np.ndarray) -> Diagnosis:
    rows = scorer.rows
    explained = 1 - float((residuals**2).mean() / (rows.actions[used] ** 2).mean())
    found, _ = autocorrelations(residuals, rows.episode[used], 1)
    lag_one = float(found[0].mean()) if len(found) else 0.0
    accuracy = 0.0
    if rows.discrete:
        # Indicators of all labels but the commonest, whose own indicator is one minus their sum.
        seen, guess = rows.actions[used] * rows.label_spread, (rows.actions[used] - residuals) * rows.label_spread
        low = seen.min(axis=0)
        seen, guess = seen - low, guess - low
        seen = np.hstack([1 - seen.sum(axis=1, keepdims=True), seen])
        guess = np.hstack([1 - guess.sum(axis=1, keepdims=True), guess])
        ranked = np.sort(guess, axis=1)
        margin = ranked[:, -1] - ranked[:, -2]
        right = seen.argmax(axis=1) == guess.argmax(axis=1)
        accuracy = float(right[margin >= np.median(margin)].mean())
    greedy = rows.discrete and accuracy > GREEDY_ACCURACY and lag_one > GREEDY_CORRELATION
    misfit = accuracy > MISFIT_ACCURACY and lag_one > MISFIT_CORRELATION
    return Diagnosis(explained, lag_one, accuracy, greedy, rows.discrete and (accuracy > CERTAIN or misfit))
