"""Designs for any world that can be played: they need episodes or nothing, and no densities."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.stats import qmc

from policyspace.configuration.designs import Design, Information, Proposal, Question, Stay, Uniform, without_reasons
from policyspace.configuration.observed_information import information_per_episode
from policyspace.policies.jax_setup import jax
from policyspace.worlds.configurable import CannotBePlayed, Configurable, generator
from policyspace.worlds.confmdp import ConfMDP


@final
@dataclass(frozen=True)
class SpaceFilling:
    """Fills the box of configurations evenly: the point of a Sobol sequence that, with all earlier ones, does it best.

    Evenness is the centred L²-discrepancy of the points, the smaller the better.
    """

    num_candidates: int = 64
    name: str = "space-filling"
    joint: bool = True

    def propose(self, question: Question) -> Proposal:
        """argmin over candidates of the discrepancy of the earlier configurations and the candidate."""
        low, high = question.box.bounds
        before = [np.asarray(question.box.vector(dict(omega))) for omega in question.earlier]
        seen = np.clip((np.reshape(before, (-1, len(low))) - low) / (high - low), 0.0, 1.0)
        candidates = sobol(len(low), self.num_candidates, generator(question.key))
        uneven = [qmc.discrepancy(np.vstack([seen, point])) for point in candidates]
        point = low + (high - low) * candidates[int(np.argmin(uneven))]
        return without_reasons(self.name, question, question.box.configuration(point))


@final
@dataclass(frozen=True)
class Simulated:
    """Where the estimated policy, simulated in candidate configurations, would tell most about the undecided units.

    The first candidates fill the box, and where the data come from is one of them; those of the next stages lie around the
    best, twice as close each time. All candidates of a stage are simulated with the same random numbers. The best is
    simulated anew in every stage and judged by all its episodes, so that luck does not keep it. A candidate that cannot
    be played tells nothing.
    """

    num_candidates: int = 16
    num_stages: int = 3
    num_simulated: int = 8  # episodes of a candidate in a stage
    name: str = "simulated"
    joint: bool = True

    def propose(self, question: Question) -> Proposal:
        """argmax over candidates of log det of what m episodes tell about the undecided units beyond the others."""
        low, high = question.box.bounds
        rng = generator(question.key)
        home = np.asarray(question.box.vector(question.logged.configuration), dtype=np.float64)
        unit = (home - low) / (high - low)
        points = np.vstack([unit, sobol(len(low), self.num_candidates, rng)])
        failed: list[CannotBePlayed] = []
        told = self._simulated(question, points, 0, failed)
        if len(failed) == len(points):
            raise failed[-1]
        # A guess worth one typical episode, so that the unit in which a feature is measured does not matter.
        typical = np.mean([np.diag(one) for one in told], axis=0)
        guess = np.diag(np.where(typical > 0, typical, 1.0))
        before = value = gain(question, told[0], guess)
        values, path, evaluations = [before], [home], 0
        for stage in range(1, self.num_stages + 1):
            gains = [gain(question, one, guess) for one in told]
            best = int(np.argmax(gains))
            unit, known, value = points[best], told[best], gains[best]
            evaluations = evaluations + 1 if best == 0 else 1
            values.append(value)
            path.append(low + (high - low) * unit)
            if stage == self.num_stages:
                break
            nearby = unit + (sobol(len(low), self.num_candidates, rng) - 0.5) / 2**stage
            points = np.vstack([unit, np.clip(nearby, 0.0, 1.0)])
            told = self._simulated(question, points, stage, failed)
            told[0] = (evaluations * known + told[0]) / (evaluations + 1)
        omega = {name: np.asarray(entry) for name, entry in question.box.configuration(path[-1]).items()}
        return Proposal(
            omega, self.name, question.names, value, value, 0.0, float(self.num_simulated), 1.0, np.array(path),
            np.array(values), _left_out(failed),
        )  # fmt: skip

    def _simulated(
        self, question: Question, points: np.ndarray, stage: int, failed: list[CannotBePlayed]
    ) -> list[np.ndarray]:
        """F̂ of one episode at every point [d, d], under common random numbers; zero where there is none."""
        low, high = question.box.bounds
        key = jax.random.fold_in(question.key, stage)
        told = []
        for point in points:
            omega = question.box.configuration(low + (high - low) * point)
            try:
                seen = question.world.simulate(question.space, question.theta, omega, key, self.num_simulated)
                told.append(information_per_episode(question.space, question.theta, seen))
            except CannotBePlayed as error:
                failed.append(error)
                told.append(np.zeros(2 * (question.space.num_parameters,)))
        return told


ANYWHERE: Mapping[str, Callable[..., Design]] = {
    "simulated": Simulated,
    "space-filling": SpaceFilling,
    "uniform": Uniform,
    "none": Stay,
}
"""The designs that every world allows."""


def default_design(world: Configurable) -> Design:
    """The joint design that fits a world: by densities where there are some."""
    return Information() if isinstance(world, ConfMDP) else Simulated()


def gain(question: Question, information: np.ndarray, guess: np.ndarray) -> float:
    """log det(mF + G) − log det(mF + G)|others over the parameters of the undecided units, G the information of a guess."""
    space = question.space
    units = np.zeros(space.num_parameters, dtype=bool)
    for u in question.units:
        units[list(space.groups[u].indices)] = True
    free = space.free(space.everything)
    matrix = question.num_episodes * information + guess
    return max(0.0, _log_det(matrix, free) - _log_det(matrix, free & ~units) - _log_det(guess, units))


def sobol(dimension: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """The first points of a scrambled Sobol sequence in the unit cube [count, p]; a power of two of them is balanced."""
    points: np.ndarray = qmc.Sobol(dimension, rng=rng).random(count)
    return points


def _left_out(failed: list[CannotBePlayed]) -> list[str]:
    """What a reader must know of the candidates that could not be played."""
    if not failed:
        return []
    return [f"{len(failed)} of the simulated configurations could not be played and were left out; in one, {failed[0]}"]


def _log_det(matrix: np.ndarray, chosen: np.ndarray) -> float:
    return float(np.linalg.slogdet(matrix[np.ix_(chosen, chosen)])[1])
