"""The loop of configuring: ask, observe, tell, and ask again (Algorithms 3 and 4, and joint designs)."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Unpack, final

import numpy as np

from policyspace.answer import Grade
from policyspace.data.sample import Sample
from policyspace.data.validation import explain_arguments, translate_keywords
from policyspace.display import remembering_its_call
from policyspace.errors import InputError
from policyspace.families.base import PolicySpace
from policyspace.families.jax_backend import jax
from policyspace.study.designs import Design, DesignProblem, default_design
from policyspace.study.evidence import (
    Batch,
    estimated_theta,
    outcome_of_batch,
    outcome_with_all_before,
    outcome_with_rounds_before,
    pairs_of,
)
from policyspace.study.forecast import forecast, schedule_for
from policyspace.study.records import (
    Round,
    RoundPlan,
    Rounds,
    Schedule,
    Status,
    Testing,
    check_needs_no_model,
    plain,
    same_configuration,
)
from policyspace.worlds.base import Configurable, Configuration, Key, Trajectories

Observe = Callable[[Key, Configuration, int], Trajectories]
"""The only way in from a world: a simulator, a replay or a real agent, observed for some episodes in a configuration."""

Rule = Literal["simplified", "combinatorial"]


@final
@dataclass
class Loop:
    """The rounds of one agent in one world, for a file, a simulator or a real agent to drive.

    `ask` gives the next configuration and its number of episodes, or None when `status.finished` says why; `tell` tests
    what was observed there. The chance of any false 'controlled' in all rounds is at most δ, whatever was asked.
    """

    world: Configurable
    space: PolicySpace
    design: Design
    initial: Mapping[str, Any]  # ω₀
    status: Status
    pairs: Callable[[int], Sample | str]  # of an earlier round, or why it has none
    trajectories: Callable[[int, np.ndarray], Trajectories]  # of a round; where only pairs are known, such of π_θ
    relearns: bool = False  # whether the agent may be another one in every round, though ω is the same

    def __post_init__(self) -> None:
        if self.space.guess:  # a study's file may ask for what is refused when one is created
            check_needs_no_model(self.status.schedule.test, self.space, self.status.schedule.paper_rule)

    def ask(self, key: Key, forecast_key: Key | None = None) -> RoundPlan | None:
        """The next round, the same until it is reported.

        With a `forecast_key`, for a person who may follow it or not, also what it would settle and what speaks against it.
        """
        if self.status.finished is not None:
            return None
        if self.status.request is None:
            request = self._designed(key, forecast_key) if self.status.rounds else self._first()
            self.status = replace(self.status, request=request)
        return self.status.request

    def tell(self, batch: Batch, configuration: Mapping[str, Any]) -> Round:
        """Test the episodes that were observed in a configuration, which need not be the one that was asked for."""
        status, omega, data = self.status, plain(configuration), pairs_of(self.world, batch)
        schedule = status.schedule
        if schedule.sequential:
            outcome = outcome_with_all_before(self.space, status, data, omega, self.pairs, self.relearns)
        else:
            if len(status.rounds) >= schedule.num_rounds:
                raise InputError(
                    f"δ was shared out over {schedule.num_rounds} rounds, and all have been reported: "
                    "begin another study to go on."
                )
            if schedule.combined:
                outcome = outcome_with_rounds_before(self.space, status, data)
            else:
                outcome = outcome_of_batch(self.space, schedule, data, status.selected, status.supports)
        asked = status.request
        if asked is not None and (asked.design is None or not same_configuration(asked.configuration, omega)):
            asked = None  # nothing was designed, or it was not followed
        count = int(batch.num_episodes or 0)
        result = Round(
            len(status.rounds),
            omega,
            asked.design if asked else None,
            asked.asked_for if asked else (),
            asked.reasons if asked else {},
            count,
            status.total_episodes + count,
            schedule.level_of(len(status.rounds)),
            **outcome._asdict(),
            exact=outcome.identification is not None and outcome.identification.grade is Grade.EXACT,
        )
        self.status = replace(status, rounds=[*status.rounds, result], request=None)
        return result

    @property
    def _earlier(self) -> list[Mapping[str, Any]]:
        """Where the agent has been observed."""
        return [before.configuration for before in self.status.rounds]

    def _first(self) -> RoundPlan:
        """ω₀, where nothing has been seen yet."""
        status, initial = self.status, plain(self.world.check_configuration(self.initial))
        return RoundPlan(0, initial, None, status.schedule.units, {}, status.next_episodes, status.schedule.level_of(0))

    def _designed(self, key: Key, forecast_key: Key | None) -> RoundPlan:
        """The configuration that the design chooses for the units whose turn it is."""
        world, space, status = self.world, self.space, self.status
        names, source = status.next_units
        theta = estimated_theta(space, self.pairs(source))
        space = space.acting(theta, self.pairs(source))
        logged = self.trajectories(source, theta)
        size, level = status.next_episodes, status.schedule.level_of(len(status.rounds))
        proposal = self.design.propose(
            DesignProblem(world, space, theta, logged, _indices(space, names), size, key, self._earlier)
        )
        omega = world.check_configuration(proposal.configuration)
        # Why this ω: the objective, its two terms, and how far the data can be trusted about it.
        names_of_reasons = ("objective", "gain", "cost", "effective_sample_size", "largest_weight")
        reasons = {name: float(getattr(proposal, name)) for name in names_of_reasons}
        reasons["objective_before"] = float(proposal.values[0])
        request = RoundPlan(
            len(status.rounds), plain(omega), proposal.design, proposal.units,
            {name: value if math.isfinite(value) else None for name, value in reasons.items()}, size, level, [],
            proposal.warnings,
        )  # fmt: skip
        if forecast_key is None:
            return request
        # The weights of a network are not known one by one, and e-values have no law of λ: nothing can be forecast.
        expected = []
        if space.linear and not status.schedule.sequential:
            known, undecided = status.rounds[source].num_episodes, _indices(space, status.undecided)
            expected = forecast(world, space, theta, logged, known, omega, undecided, size, level, forecast_key)
        doubts = []
        if proposal.objective < proposal.values[0]:
            doubts = [
                "by its own estimate the design has found nothing better than where it began: its simulated episodes are "
                "few, and another design may do better."
            ]
        return replace(request, forecasts=expected, warnings=[*proposal.warnings, *doubts])


@explain_arguments
@remembering_its_call
@translate_keywords
def configure(
    world: Configurable,
    observe: Observe,
    key: Key,
    space: PolicySpace | None = None,
    rule: Rule = "simplified",
    significance: float = 0.05,
    design: Design | None = None,
    episodes: int | None = None,
    max_rounds: int | None = None,
    budget: int | None = None,
    configuration: Configuration | None = None,
    **testing: Unpack[Testing],
) -> "ConfiguredRun":
    """Observe at ω₀, identify, then configure for what is undecided, round by round (Algorithms 3 and 4).

    What has been decided is not asked again. The agent may be another one in every round.

    Parameters
    ----------
    world : Configurable
        A `ConfMDP` or a `GymnasiumWorld`.
    observe : callable (key, configuration, num_episodes) -> Trajectories
        How the agent is observed: a simulator, a replay or a real agent.
    key : jax.random.key
        What chance is drawn from.
    space : PolicySpace, optional
        Where the agent is sought; by default the world's.
    rule : {"simplified", "combinatorial"}
        As in `identify`.
    significance : float
        δ, the accepted probability of any false "controlled" in all rounds.
    design : Design, optional
        Chooses ω; by default that of the world. One for a unit at a time is the paper's C_I.
    episodes : int, optional
        Of each round, 100.
    max_rounds : int, optional
        Rounds after the first: of a joint design for all groups at once, of a design for one group (the paper's) for each,
        from the data of its last round. 3, or as many as the budget pays for.
    budget : int, optional
        Episodes that the rounds of a joint design share, in place of `episodes`.
    configuration : mapping, optional
        ω₀; by default the world's.
    **testing
        `test` and `paper_rule` of `Study.create`; by default networks are tested by the e-process.

    Returns
    -------
    ConfiguredRun
        Makes the rounds as one goes over them, and keeps them for its report.

    Raises
    ------
    InputError
        If ω₀ is out of its bounds, or the words contradict each other.

    Examples
    --------
    >>> import jax
    >>> import policyspace
    >>> world = policyspace.make_world("gridworld")
    >>> agent = policyspace.learn(world, controls=world.feature_names[:2], num_steps=2, num_episodes=5)
    >>> def observe(key, configuration, num_episodes):
    ...     return agent.act(world, configuration, key, num_episodes)
    >>> first = next(policyspace.configure(world, observe, jax.random.key(0), episodes=20))
    >>> first.num_episodes, first.asked_for == ()
    (20, True)
    """
    space = world.policy_space() if space is None else space
    design = default_design(world) if design is None else design
    schedule = schedule_for(
        world,
        space,
        design.joint,
        significance=significance,
        rule=rule,
        max_rounds=max_rounds,
        episodes=episodes,
        budget=budget,
        **testing,
    )
    return ConfiguredRun(world, space, design, configuration or {}, schedule, observe, key)


@final
class ConfiguredRun(Rounds, Iterator[Round]):
    """A study in memory: every step asks, observes and tells, until there is nothing left to ask."""

    def __init__(
        self,
        world: Configurable,
        space: PolicySpace,
        design: Design,
        initial: Mapping[str, Any],
        schedule: Schedule,
        observe: Observe,
        key: Key,
        truth: Sequence[str] | None = None,
    ) -> None:
        self._observe, self._key, self._seen = observe, key, list[Trajectories]()
        known = None if truth is None else list(truth)
        status = Status(schedule, settings={"world": world.name, "design": design.name}, truth=known)
        self._loop = Loop(
            world, space, design, initial, status, lambda number: pairs_of(world, self._seen[number]),
            lambda number, theta: self._seen[number], relearns=True,
        )  # fmt: skip

    @property
    def world(self) -> Configurable:
        """The world that is configured."""
        return self._loop.world

    def status(self) -> Status:
        """What is decided after the rounds so far."""
        return self._loop.status

    def __next__(self) -> Round:
        seen, loop = self._seen, self._loop
        request = loop.ask(jax.random.fold_in(self._key, 2 * len(seen) + 1))
        if request is None:
            raise StopIteration
        omega = loop.world.check_configuration(request.configuration)
        seen.append(self._observe(jax.random.fold_in(self._key, 2 * request.number), omega, request.num_episodes))
        result = loop.tell(seen[-1], omega)
        warnings = [*request.warnings, *seen[-1].notes, *result.warnings]  # nobody else has read the request
        result = replace(result, warnings=warnings)
        loop.status = replace(loop.status, rounds=[*loop.status.rounds[:-1], result])
        return result


def _indices(space: PolicySpace, names: tuple[str, ...]) -> list[int]:
    return [i for i, group in enumerate(space.groups) if group.name in names]
