"""Algorithms 3 and 4 as they are printed: every round at full δ over all units, what is found united over the rounds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from policyspace.configuration.designs import PaperObjective, Proposal, Question
from policyspace.configuration.loop import Observe
from policyspace.configuration.round import Round, plain
from policyspace.configuration.testable import estimated_theta, pairs_of
from policyspace.data.demonstrations import Demonstrations
from policyspace.errors import InputError
from policyspace.experiments.adam_fits import adam_fits, boltzmann_likelihood
from policyspace.experiments.printed_rules import all_of, one_out, rule_1, rule_2
from policyspace.fits import likelihood_of
from policyspace.policies import PolicySpace
from policyspace.policies.groups import Support
from policyspace.policies.jax_setup import jax
from policyspace.worlds.confmdp import Configuration, ConfMDP, Key
from policyspace.worlds.trajectories import Trajectories


class Statistics(Protocol):
    """λ of some supports, the whole space not being one of them, and θ̂ in the whole space."""

    def __call__(self, data: Demonstrations, supports: Sequence[Support]) -> tuple[np.ndarray, np.ndarray]:
        """Of one data set."""


def by_adam(space: Any, adam: dict[str, Any]) -> Statistics:
    """From the last points of Adam's paths, as the paper fits Boltzmann policies, or from the best ones."""
    best = adam.get("point") == "best"

    def statistics(data: Demonstrations, supports: Sequence[Support]) -> tuple[np.ndarray, np.ndarray]:
        evaluate = boltzmann_likelihood(space, data.features, data.actions)
        everything = [*supports, space.everything]
        found = adam_fits(space, evaluate, everything, adam["rate"], adam["num_steps"], adam["spreads"][0])
        values, thetas = (found.best, found.best_theta) if best else (found.last, found.last_theta)
        return 2 * (values[-1] - values[:-1]), thetas[-1]

    return statistics


def in_closed_form(space: PolicySpace) -> Statistics:
    """By exact maxima, as the paper fits Gaussian policies; λ = 0 where a batch is too small to be fitted."""

    def statistics(data: Demonstrations, supports: Sequence[Support]) -> tuple[np.ndarray, np.ndarray]:
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
        rest = self.space.everything.difference(self.space.tested)
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
            Question(self.world, self.space, last.theta, last.trajectories, units, self.num_episodes, key)
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
