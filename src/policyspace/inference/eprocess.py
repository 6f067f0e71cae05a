"""The prequential e-process: bets on each episode with what was learned before it, valid at every stopping time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, final

import numpy as np
from scipy.special import logsumexp

from policyspace.data.demonstrations import Demonstrations
from policyspace.errors import InputError
from policyspace.fits import likelihood_of
from policyspace.fits.base import Likelihood
from policyspace.inference.base import SupportTest, e_value
from policyspace.inference.glr import Test
from policyspace.policies.base import Policy, PolicySpace
from policyspace.policies.groups import Support
from policyspace.printable import printable
from policyspace.progress import counted

BLOCK = 50
"""Rows that count as an episode where the data name none."""

GROWTH = 1.1
"""The bettor learns again when there are this many times more rows than at the last time."""


class Episode(NamedTuple):
    """The pairs of one episode; an agent may do one thing only in all of it."""

    features: np.ndarray  # [T, q]
    actions: np.ndarray  # [T] codes or [T, k]


class Bettor:
    """M_t = Π_s π_{θ̂_{s−1}}(a_s|s_s), the mean over a few priors: every episode is predicted from those before it.

    The first episodes, until a policy can be learned at all, are not bet on; E_t leaves them out of both its parts.
    """

    def __init__(self, space: PolicySpace) -> None:
        self.space = space
        self.bet_on: list[Episode] = []
        self._seen: list[Episode] = []
        self._policies: list[Policy] = []
        self._wealths = np.zeros(1)  # log, one a policy
        self._learned_from = 0

    @property
    def num_rows(self) -> int:
        """The rows seen so far."""
        return sum(len(part.features) for part in self._seen)

    def tell(self, episode: Episode) -> None:
        """Bet on an episode, then learn from it."""
        if self._policies:
            won = [policy.log_probs(episode.features, episode.actions).sum() for policy in self._policies]
            self._wealths = self._wealths + np.array(won)
            self.bet_on.append(episode)
        self._seen.append(episode)
        if self.num_rows >= (GROWTH * self._learned_from if self._policies else self.space.rows_to_learn_from):
            self._learn()

    @property
    def log_wealth(self) -> float:
        """log M_t: the wealth was divided evenly over the policies at the start."""
        return float(logsumexp(self._wealths)) - float(np.log(len(self._wealths)))

    def _learn(self) -> None:
        try:
            likelihood = likelihood_of(self.space, joined(self.space, self._seen))
        except InputError:
            return  # not yet: too few rows, or an agent that has done only one thing so far
        self._policies = likelihood.bets(self._policies)
        self._wealths = np.broadcast_to(self._wealths, len(self._policies))
        self._learned_from = self.num_rows


@dataclass(frozen=True)
class Unit:
    """Where one group stands in a stream."""

    group: str
    log_e: float  # the evidence now
    highest: float  # the most that there ever was, which is what counts
    state: Literal["controlled", "open"]


@dataclass(frozen=True)
class Standing:
    """Where all groups stand after an episode."""

    num_episodes: int
    num_pairs: int
    units: list[Unit]

    @property
    def decided(self) -> bool:
        """Whether every group is known to be controlled; that one is not can never be proven."""
        return all(unit.state == "controlled" for unit in self.units)

    @property
    def controlled(self) -> list[str]:
        """The groups found so far."""
        return [unit.group for unit in self.units if unit.state == "controlled"]

    def __str__(self) -> str:
        cells = [
            f"{printable(u.group)} {'controlled' if u.state == 'controlled' else f'E = {np.exp(u.log_e):.2g}'}"
            for u in self.units
        ]
        return f"episode {self.num_episodes}, {self.num_pairs} pairs: " + ", ".join(cells)


class Follower:
    """A stream of episodes, looked at as often as one likes: the chance of any false "controlled" ever is ≤ δ."""

    def __init__(self, space: PolicySpace, significance: float = 0.05) -> None:
        self.space, self.significance = space, significance
        self._bettor = Bettor(space)
        self._highest = dict.fromkeys(space.tested, -np.inf)
        self.num_episodes = 0

    def tell(self, episode: Episode, look: bool = True, late: bool = False) -> Standing:
        """Take in one episode, or `late` rows of an earlier one, and, if asked to, test every group that is still open."""
        self.num_episodes += not late
        self._bettor.tell(episode)
        now = dict(self._highest)
        open_ = [g for g in self.space.tested if self._highest[g] < self._threshold]
        if look and open_ and self._bettor.bet_on:
            supports = [self.space.everything - {g} for g in open_]
            now |= dict(zip(open_, evidence(self.space, self._bettor, supports), strict=True))
            self._highest |= {g: max(now[g], self._highest[g]) for g in open_}
        units = [
            Unit(
                self.space.groups[g].name,
                float(now[g]) if np.isfinite(now[g]) else 0.0,
                float(self._highest[g]),
                "controlled" if self._highest[g] >= self._threshold else "open",
            )
            for g in self.space.tested
        ]
        return Standing(self.num_episodes, self._bettor.num_rows, units)

    @property
    def _threshold(self) -> float:
        return -float(np.log(self.significance))


@final
class EProcess(SupportTest):
    """E_T(I) = M_T / sup_{Θ_I} L_T at the end of the data, the episodes taken in the order of the rows."""

    name = "eprocess"
    statistic_name = "2·log E"
    simultaneous = True

    def __init__(self, likelihood: Likelihood, data: Demonstrations, level: float = 0.05, seed: int = 0) -> None:
        self.space, self.likelihood = likelihood.space, likelihood
        self._bettor = Bettor(self.space)
        for episode in counted(list(episodes_of(data.without_weights("the e-process"))), "betting on episodes"):
            self._bettor.tell(episode)
        if not self._bettor.bet_on:
            raise InputError(
                f"{data.num_pairs} rows are too few to learn from the first and bet on the rest: collect more rows, "
                "or use another test."
            )
        self._after = likelihood_of(self.space, joined(self.space, self._bettor.bet_on))

    def test_many(self, supports: Sequence[Support]) -> list[Test]:
        """p = min(1, 1/E_T(I)), all supports that are asked for fitted together."""
        values = [self._bettor.log_wealth - fit.log_likelihood for fit in self._after.fit_many(supports)]
        return [
            Test(s, 2 * e, self.likelihood.degrees_of_freedom(s), float(np.exp(-max(e, 0.0))), e_value(e))
            for s, e in zip(supports, values, strict=True)
        ]

    def evidence(self, test: Test) -> float:
        """2·log E_I, which only grows as I shrinks: the sup over a smaller Θ_J is smaller."""
        return test.statistic

    def note(self) -> str:
        """What it is."""
        return "prequential e-process, each episode predicted from those before it; valid at every look"


def evidence(space: PolicySpace, bettor: Bettor, supports: Sequence[Support]) -> list[float]:
    """log E_t(I) for each support; 0 while the data cannot be fitted."""
    try:
        fits = likelihood_of(space, joined(space, bettor.bet_on)).fit_many(supports)
    except InputError:
        return [0.0 for _ in supports]
    return [bettor.log_wealth - fit.log_likelihood for fit in fits]


def episodes_of(data: Demonstrations) -> Iterator[Episode]:
    """The episodes in the order in which they begin, or blocks of rows where the data name none."""
    labels = np.arange(data.num_pairs) // BLOCK if data.episodes is None else data.episodes
    order = np.argsort(labels, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1):
        yield Episode(data.features[rows], data.actions[rows])


def joined(space: PolicySpace, parts: Sequence[Episode]) -> Demonstrations:
    """Several episodes as one data set."""
    return Demonstrations(
        np.concatenate([part.features for part in parts]),
        np.concatenate([part.actions for part in parts]),
        space.feature_names,
        space.action_names,
        np.repeat(np.arange(len(parts)), [len(part.features) for part in parts]),
    )
