"""Episodes that were reported before, told from those that only look like them by chance."""

from collections import Counter
from collections.abc import Iterable

import numpy as np
from scipy.stats import binom

from policyspace.errors import InputError
from policyspace.study.study_file import Arrays, rows_of

CHANCE = 1e-6
"""So rarely does chance put as many episodes into two reports as are refused."""
FEWEST = 6
"""Episodes that are enough where they are all of a report: of equally likely ones, however many there are, chance
repeats six less than once in 2000 times."""


def check_new(arrays: Arrays, earlier: Iterable[Arrays]) -> None:
    """Refuse a report that holds episodes of an earlier one, or is held by it.

    Short episodes come twice by chance, and an agent that never wavers repeats whole ones from equal starts; but then they
    come twice within a report, too. Of the episodes that occur exactly twice in two reports, chance puts at most about a
    half into different ones, if episodes are independent: one that occurs λ times in one report on average and μ times in
    the other occurs once in each with the chance λμ·e^−(λ+μ), and twice in one of them with ½(λ² + μ²)·e^−(λ+μ), which is
    no less. So the number of those in both is compared with fair coins, whatever the world, the agent and its
    configurations are. Where several begin alike and go on otherwise, the same starts were used again on purpose, and
    nothing is refused.
    """
    new, begun = _episodes(arrays)
    for number, other in enumerate(earlier, 1):
        old, begun_before = _episodes(other)
        twice = [episode for episode, count in (new + old).items() if count == 2]
        shared = sum(new[episode] == 1 for episode in twice)
        whole = shared == len(twice) == min(new.total(), old.total()) >= FEWEST
        starts = [{begun[e] for e in new if e not in old}, {begun_before[e] for e in old if e not in new}]
        if (whole or binom.sf(shared - 1, len(twice), 0.5) <= CHANCE) and len(starts[0] & starts[1]) <= 1:
            raise InputError(
                f"{shared} of these {new.total()} episodes were reported before, in round {number}: tell only new ones."
            )


def _episodes(arrays: Arrays) -> tuple[Counter[bytes], dict[bytes, bytes]]:
    """How often each episode occurs, as its rows in whatever order, and the observation that it begins with."""
    features, actions, episodes = rows_of(arrays)
    columns = [features, actions.reshape(len(actions), -1), *([arrays["weights"]] if "weights" in arrays else [])]
    table = np.column_stack(columns) + 0.0  # so that no zero is negative
    _, first, number = np.unique(episodes, return_index=True, return_inverse=True)
    order = np.lexsort((*table.T, number))
    parts = np.split(table[order], np.flatnonzero(np.diff(number[order])) + 1)
    found = [part.tobytes() for part in parts]
    begun = [row.tobytes() for row in table[first, : features.shape[1]]]
    return Counter(found), dict(zip(found, begun, strict=True))
