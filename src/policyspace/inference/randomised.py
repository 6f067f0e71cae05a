"""The randomisation test for features that were drawn at random, and its betting version."""

from collections.abc import Sequence
from typing import final

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from policyspace.answer import Grade, Note, Reason
from policyspace.data.draws import LEVELS, Draws, chances_of, draws_of, levels_of
from policyspace.data.sample import Sample
from policyspace.errors import InputError
from policyspace.families.base import PolicySpace, Support
from policyspace.inference.base import SupportTest, TestOptions, TestResult, e_value
from policyspace.inference.betting import (
    DrawBets,
    DrawnRows,
    closed_e_values,
    neighbours,
    products,
    randomisation_p_value,
)
from policyspace.runtime import counted, say_progress

# -- Rows with draws, from a log that has recorded them.


def rows_with_draws(draws: Draws, actions: np.ndarray, starts: np.ndarray) -> DrawnRows:
    """The rows as they are bet on: levels of categories as zeros and ones, in the order of the groups."""
    record = draws.record
    candidates = [record.encoded(draws.readings[:, :, place], group) for group, place in record.places.items()]
    places = np.arange(len(draws))
    delivered = [found[places, draws.drawn[:, g]] for g, found in enumerate(candidates)]
    streams = np.zeros(len(draws), dtype=np.int64)
    return DrawnRows(np.hstack(delivered), actions, candidates, draws.chances, draws.drawn, starts, streams)


def columns_of(rows: DrawnRows) -> list[np.ndarray]:
    """The columns of each group among the numbers of such rows."""
    ends = np.cumsum([candidates.shape[2] for candidates in rows.candidates])
    return [np.arange(end - c.shape[2], end) for end, c in zip(ends, rows.candidates, strict=True)]


def starts_of(episodes: np.ndarray | None, num_rows: int) -> np.ndarray:
    """In which rows [n] an episode begins."""
    if episodes is None:
        return np.arange(num_rows) == 0
    return np.concatenate([[True], episodes[1:] != episodes[:-1]])


# -- Rows of an experiment, whose stimuli were drawn in a way that is known.

OTHERS = 15
"""Of a drawn number: what was shown is looked for among so many others that might have been."""


def assigned_rows(data: Sample, starts: np.ndarray, seed: int) -> tuple[DrawnRows, list[tuple[str, ...]]]:
    """The rows as they are bet on, and the columns of each drawn feature.

    All features describe a row. The candidates are the values that a feature may have had in its row, given those before.
    """
    rng = np.random.default_rng(seed)
    n, candidates, chances, drawn, names = data.num_rows, [], [], [], []
    for name, how in data.origin.assigned.items():
        values, codes = levels_of(data, name)
        names.append(tuple(data.blocks.get(name, (name,))))
        if how.startswith("permuted"):
            within = data.recorded.get(f"assigned.{name}", np.zeros(n))
            left, probable, shown = _permuted(codes, within, len(values), rng)
            read = values[left]
        elif how == "uniform" and len(values) > LEVELS:
            read, probable, shown = _uniform_numbers(values[codes, 0], rng)
        else:
            said = chances_of(how)
            share = np.full(len(values), 1 / len(values)) if said is None else said
            read, probable, shown = np.tile(values, (n, 1, 1)), np.tile(share, (n, 1)), codes
        candidates.append(read)
        chances.append(probable)
        drawn.append(shown)
    actions = data.actions.reshape(n, -1)
    streams = np.zeros(n, dtype=np.int64)
    rows = DrawnRows(data.features, actions, candidates, chances, np.stack(drawn, axis=1), starts, streams)
    return rows, names


def _permuted(
    codes: np.ndarray, within: np.ndarray, size: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of every row the values that were left [n, c], their chances, and which was shown [n].

    Few values have the chances of what is left of each. Of many, what was shown is looked for among some that are left.
    """
    n, few = len(codes), size <= LEVELS
    width = size if few else OTHERS + 1
    found, chances = np.zeros((n, width), dtype=np.int64), np.zeros((n, width))
    drawn = codes.copy()
    for part in np.unique(within):
        rows = np.flatnonzero(within == part)
        if few:
            left = np.cumsum((codes[rows][::-1, None] == np.arange(size)), axis=0)[::-1]
            found[rows], chances[rows] = np.arange(size), left / left.sum(axis=1, keepdims=True)
            continue
        for i, row in enumerate(rows):
            later = rows[i + 1 :]
            others = codes[rng.choice(later, min(OTHERS, len(later)), replace=False)]
            place = int(rng.integers(len(others) + 1))
            items = np.insert(others, place, codes[row])
            found[row, : len(items)], chances[row, : len(items)], drawn[row] = items, 1 / len(items), place
    return found, chances, drawn


def _uniform_numbers(shown: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers between the smallest and the largest, given which these are: candidates [n, c, 1], chances, draws."""
    n, low, high = len(shown), shown.min(), shown.max()
    drawn = rng.integers(OTHERS + 1, size=n)
    found = rng.uniform(low, high, (n, OTHERS + 1))
    found[np.arange(n), drawn] = shown
    chances = np.full((n, OTHERS + 1), 1 / (OTHERS + 1))
    ends = (shown == low) | (shown == high)
    chances[ends] = 0.0
    chances[ends, drawn[ends]] = 1.0
    return found[:, :, None], chances, drawn


# -- The draws made again: p-values for a number of rows that did not depend on them.

MOST_REDRAWS = 20_000

MOST_PRODUCTS = 40
"""With other inputs, of the statistic; more are left out."""


def randomisation_p_values(
    rows: DrawnRows,
    columns: Sequence[np.ndarray],
    choices: tuple[int, ...],
    memory: int,
    redraws: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """For every group [G] the share of redraws whose statistic is no smaller than that of the draws themselves.

    The actions, less what the other inputs say of them, are multiplied by the readings, their products with each other and
    with other inputs, each less its mean over the candidates; the sums are compared with their covariance over the redraws.
    """
    found = np.ones(len(columns))
    for g in counted(range(len(columns)), "making draws again"):
        chances = rows.chances[g]
        used = np.flatnonzero(chances.max(axis=1) < 1.0)
        if not len(used):
            continue
        scores, blocks = _scores(rows, columns, choices, memory, g, used)
        n, c, _ = scores.shape
        variance = np.einsum("nk,nki,nkj->ij", chances[used], scores, scores)
        factors = []
        for block in blocks:
            inside = variance[block, block]
            scale = np.trace(inside) / len(inside)
            factors.append(np.linalg.cholesky(inside + 1e-6 * max(scale, 1e-12) * np.eye(len(inside))))

        def statistic(
            sums: np.ndarray, blocks: list[slice] = blocks, factors: list[np.ndarray] = factors
        ) -> np.ndarray:
            each = []
            for block, factor in zip(blocks, factors, strict=True):
                z = solve_triangular(factor, sums[block], lower=True)
                each.append(((z**2).sum(axis=0) - len(z)) / np.sqrt(2 * len(z)))
            return np.asarray(np.max(each, axis=0))

        at = np.arange(n)
        observed = float(statistic(scores[at, rows.drawn[used, g]].sum(axis=0)[:, None])[0])
        ends, redrawn = np.cumsum(chances[used], axis=1), []
        for start in range(0, redraws, 250):
            number = min(250, redraws - start)
            which = (rng.random((n, number))[:, :, None] > ends[:, None, :-1]).sum(axis=2)
            redrawn.append(statistic(sum(scores[:, k].T @ (which == k) for k in range(c))))
        found[g] = randomisation_p_value(observed, np.concatenate(redrawn))
    return found


def _scores(
    rows: DrawnRows, columns: Sequence[np.ndarray], choices: tuple[int, ...], memory: int, group: int, used: np.ndarray
) -> tuple[np.ndarray, list[slice]]:
    """What every candidate would add to the sums [n, c, d], and the blocks of the sums that are compared together."""
    others = np.delete(rows.numbers, columns[group], axis=1)
    others = (others - others.mean(axis=0)) / np.maximum(others.std(axis=0), 1e-9)
    outputs = []
    for action, k in zip(rows.actions.T, choices, strict=True):
        if k:
            levels = np.unique(action)[:-1] if len(np.unique(action)) > 1 else np.unique(action)
            outputs.append((action[:, None] == levels).astype(np.float64))
        else:
            outputs.append(((action - action.mean()) / max(float(action.std()), 1e-9))[:, None])
    given = np.hstack(outputs)
    design = products(others, len(others))
    solve = cho_factor(design.T @ design + np.diag([1e-3, *np.ones(design.shape[1] - 1)]))
    left = given - design @ cho_solve(solve, design.T @ given)
    after, _ = neighbours(rows, memory)
    later = [np.where(after[used, lag, None] >= 0, left[after[used, lag]], 0.0) for lag in range(memory + 1)]
    weights = np.hstack(later)
    chances, read = rows.chances[group][used], rows.candidates[group][used]
    centre = np.einsum("nk,nkq->q", chances, read) / len(used)
    spread = np.sqrt(np.einsum("nk,nkq->q", chances, (read - centre) ** 2) / len(used))
    read = (read - centre) / np.maximum(spread, 1e-9)
    first, second = np.triu_indices(read.shape[2])
    terms = [read, read[:, :, first] * read[:, :, second]]
    if others.shape[1] * read.shape[2] <= MOST_PRODUCTS:
        mixed = read[:, :, :, None] * others[used][:, None, None, :]
        terms.append(mixed.reshape(*read.shape[:2], -1))
    parts = []
    for term in terms:
        centred = term - np.einsum("nk,nkd->nd", chances, term)[:, None]
        parts.append((centred[:, :, :, None] * weights[:, None, None, :]).reshape(*read.shape[:2], -1))
    ends = np.cumsum([0, *(part.shape[2] for part in parts)])
    blocks = [slice(0, int(end)) for end in ends[1:]]
    return np.concatenate(parts, axis=2), blocks


# -- The test.


@final
class RandomisedTest(SupportTest):
    """Whether actions depend on readings that were drawn at random, of which the log says how.

    Bets on the draws (`DrawBets`) hold at every look, whatever the agent is. Where the chances were fixed beforehand, the
    draws are also made again, many times: for a number of rows that did not depend on the draws, that is exact, too.
    """

    name, in_words, grade = "randomised", "bets on the draws", Grade.EXACT
    statistic_name = "log E"
    assumes = ()
    monotone = False

    def __init__(self, space: PolicySpace, data: Sample, options: TestOptions) -> None:
        if not data.in_memory:
            raise InputError(
                f"the test 'randomised' needs all rows in memory, found {data.num_rows_total} that are read in passes: set "
                "POLICYSPACE_MAX_BYTES_AT_ONCE."
            )
        if space.group_columns() is None:
            raise InputError(
                f"the test 'randomised' tests features, found {type(space).__name__}, whose groups are parameters: take the "
                "groups 'feature', or another test."
            )
        self.space, self._assigned = space, bool(data.origin.assigned)
        starts = starts_of(data.episodes, data.num_rows)
        memory, record = 0, data.origin.draws
        if self._assigned:
            rows, names = assigned_rows(data, starts, options.seed)
            choices = (data.action_type.num_labels or 0,) * rows.actions.shape[1]
            columns = [np.array([data.names.index(name) for name in inside]) for inside in names]
        else:
            draws, actions, choices = draws_of(data)
            rows, memory = rows_with_draws(draws, actions, starts), draws.record.memory
            columns = columns_of(rows)
            parts = [
                [data.blocks.get(f, (f,) if f in data.names else ()) for f in fs] for fs in draws.record.groups.values()
            ]
            names = [tuple(name for part in group for name in part) if all(group) else () for group in parts]
        say_progress("betting on draws")
        bets = DrawBets(columns, choices, memory)
        bets.tell(rows)
        bets.settle(ended=True)
        self.by_redraws = not self._assigned and record is not None and not record.adaptive
        self._redraws = min(max(999, int(np.ceil(10 * len(columns) / options.significance))), MOST_REDRAWS)
        p_values = np.exp(-np.maximum(bets.log_wealth, 0.0))
        if self.by_redraws:
            rng = np.random.default_rng(options.seed)
            p_values = randomisation_p_values(rows, columns, choices, memory, self._redraws, rng)
        self._drawn, self._log_wealth, self._p_values = tuple(names), bets.log_wealth, p_values
        self._closed = np.log(closed_e_values(bets.log_wealth))
        self._members = {g: self._parts(g) for g in space.tested}
        if not any(self._members.values()):
            raise InputError(
                "none of the tested groups was drawn at random: name those that were, or take another test."
            )

    def _parts(self, group: int) -> tuple[int, ...]:
        """The drawn groups that make up a tested one; none where it was not drawn."""
        columns = (self.space.group_columns() or {}).get(group, ())
        names = {self.space.feature_names[c] for c in columns}
        found = [i for i, inside in enumerate(self._drawn) if inside and names.intersection(inside)]
        together = {name for i in found for name in self._drawn[i]}
        if not together <= names:
            raise InputError(
                f"{', '.join(sorted(together))} were drawn together: test them as one group, or leave the groups out."
            )
        return tuple(found)

    @property
    def simultaneous(self) -> bool:  # type: ignore[override]
        """Closed testing is done already where bets decide."""
        return not self.by_redraws

    def test_many(self, supports: Sequence[Support]) -> list[TestResult]:
        """The groups that a support leaves out, together: by the mean of their wealths, or by their smallest p-value."""
        return [self._test(support) for support in supports]

    def _test(self, support: Support) -> TestResult:
        out = [g for g in self.space.tested if g not in support]
        parts = sorted({i for g in out for i in self._members[g]})
        if not parts:
            return TestResult(support, 0.0, int(bool(out)), 1.0, 1.0)
        wealth = float(np.logaddexp.reduce(self._log_wealth[parts]) - np.log(len(parts)))
        if self.by_redraws:
            p = min(1.0, len(parts) * float(self._p_values[parts].min()))
        else:
            decisive = float(self._closed[parts].max()) if len(out) == 1 else wealth
            p = float(np.exp(-max(decisive, 0.0)))
        return TestResult(support, wealth, 1, p, e_value(wealth))

    def conditions(self) -> tuple[Note, ...]:
        """What must be true."""
        if self._assigned:
            return (Note(Reason.DRAWN_AS_STATED),)
        delivered = Note(Reason.DELIVERED_READINGS)
        return (delivered, Note(Reason.FIXED_NUMBER)) if self.by_redraws else (delivered,)

    def note(self) -> str:
        """What the numbers are."""
        how = "p is the smallest of 1 and 1/E, at every look"
        if self.by_redraws:
            how = f"p is the share of {self._redraws} redraws that say as much; E holds at every look"
        missing = [self.space.groups[g].name for g, parts in self._members.items() if not parts]
        rest = f"; {', '.join(missing)} was not drawn, and is not tested" if missing else ""
        return f"bets on readings that were drawn at random; {how}{rest}"
