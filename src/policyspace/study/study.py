"""The study itself: what to try next, what was seen there, and what is decided."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from policyspace.data.vocabulary import one_vocabulary
from policyspace.errors import InputError
from policyspace.study.answers import Request, Status
from policyspace.study.round_record import RoundRecord, plain, reasons, same_configuration
from policyspace.study.settings import check_settings, chosen_test, design_for, load_world, not_in_question, space_for
from policyspace.study.study_file import StudyStore

if TYPE_CHECKING:
    from policyspace.configuration import Proposal
    from policyspace.data.demonstrations import Demonstrations
    from policyspace.policies import PolicySpace
    from policyspace.study.data import Told
    from policyspace.worlds.confmdp import ConfMDP
    from policyspace.worlds.trajectories import Trajectories


@final
class Study:
    """Which configuration to try next, what was seen there, and what is decided: `ask`, let the agent act, `tell`.

    The chance of any false 'controlled' in the whole study is at most δ whatever was asked and however long it takes:
    the levels of all rounds add up to δ, or the evidence of all of them multiplies. Everything is in the one file.
    """

    def __init__(self, store: StudyStore) -> None:
        self._store = store
        self.settings: dict[str, Any] = store.settings()

    @classmethod
    @one_vocabulary
    def create(
        cls,
        path: str | Path,
        world: str,
        features: Iterable[str] | None = None,
        groups: Any = "feature",
        always: Iterable[str] = (),
        significance: float = 0.05,
        rule: str = "simplified",
        design: str = "d-optimal",
        attempts: int = 3,
        episodes: int = 100,
        budget: int | None = None,
        configuration: Mapping[str, Any] | None = None,
        paper_rule: bool = False,
        seed: int = 0,
        test: str = "auto",
    ) -> "Study":
        """A new study in a new file.

        `world` is one of ours by name or `module:Class`. `features` are those in question; the others may be used by the
        agent and are not tested, like the groups in `always`. After the first round, at `configuration`, a joint design
        asks `attempts` times, one for single units (the paper's) as often for every unit; each round has `episodes`, or its
        share of the `budget`. `test` "batches" tests every batch alone, at its share of δ; "eprocess" looks after every
        episode at all that was told so far, at full δ, and is the default for networks: no batch has to decide alone.
        """
        place = load_world(world)
        check_settings(significance, rule, design, attempts, episodes, budget, seed)
        if features is not None and groups != "feature":
            raise InputError("features and groups exclude each other: name the known groups in always instead.")
        always = [*always, *not_in_question(place, features)]
        space = space_for(place, groups, always)
        units = [space.groups[i].name for i in space.tested]
        if not units:
            raise InputError("a study needs at least one unit to test, found none: declare fewer of them known.")
        test = chosen_test(test, space, rule, paper_rule)
        joint = design_for(design, place).joint
        num_rounds = 1 + attempts * (1 if joint else len(units))
        if budget is not None and budget < num_rounds:
            raise InputError(
                f"a budget of {budget} episodes is too small for {num_rounds} rounds: allow at least one each."
            )
        settings = {
            "world": world,
            "world_name": place.name,
            "units": units,
            "groups": groups if isinstance(groups, str) else {name: list(inside) for name, inside in groups.items()},
            "always": always,
            "significance": significance,
            "rule": rule,
            "design": design,
            "joint": joint,
            "num_attempts": attempts,
            "num_rounds": num_rounds,
            "num_episodes": episodes,
            "budget": budget,
            "initial": plain(place.check_configuration(configuration or {})),
            "paper_rule": paper_rule,
            "seed": seed,
            "test": test,
        }
        return cls(StudyStore.create(path, settings))

    @classmethod
    def open(cls, path: str | Path) -> "Study":
        """The study in a file."""
        return cls(StudyStore.open(path))

    @property
    def path(self) -> Path:
        """The file of the study."""
        return self._store.path

    @cached_property
    def world(self) -> "ConfMDP":
        """The world that the study is about."""
        world = load_world(self.settings["world"])
        if world.name != self.settings["world_name"]:
            raise InputError(
                f"{self.path}: is about the world '{self.settings['world_name']}', but '{self.settings['world']}' is now "
                f"'{world.name}': run it where the world is the same."
            )
        return world

    @cached_property
    def space(self) -> "PolicySpace":
        """The policy space in which the agent is sought."""
        space = space_for(self.world, self.settings["groups"], self.settings["always"])
        if [space.groups[i].name for i in space.tested] != self.settings["units"]:
            raise InputError(
                f"{self.path}: the world '{self.settings['world']}' has other features than when the study was created: "
                "use the version that it was created with."
            )
        return space

    def rounds(self) -> list[RoundRecord]:
        """What has been told so far."""
        return [RoundRecord.from_dict(record) for record, _, _ in self._store.rounds()]

    def demonstrations(self, number: int) -> "Demonstrations":
        """The pairs told in a round."""
        from policyspace.study.data import to_demonstrations

        return to_demonstrations(self.world, self._store.data(number))

    def status(self) -> Status:
        """What is decided, what is open, the history, and what was asked last."""
        rows = self._store.rounds()
        records = [RoundRecord.from_dict(record) for record, _, _ in rows]
        request = self._store.request(len(records))
        truths = [metadata["truth"] for _, metadata, _ in rows if "truth" in metadata]
        return Status(
            self.settings,
            records,
            [told_at for _, _, told_at in rows],
            None if request is None else Request.from_dict(request),
            truths[0] if truths and all(truth == truths[0] for truth in truths) else None,
        )

    def ask(self) -> Request | None:
        """The next configuration, why, what it would settle and how many episodes it needs; None at the study's end.

        The same answer until the next `tell`, on every machine: it is written down when it is first asked for.
        """
        status = self.status()
        if status.finished is not None:
            return None
        if status.request is not None:
            return status.request
        number = len(status.rounds)
        request = self._first(status) if number == 0 else self._next(status, number)
        return Request.from_dict(self._store.keep_request(number, request.to_dict()))

    def tell(self, told: "Told", configuration: Mapping[str, Any] | None = None) -> RoundRecord:
        """Test a batch of demonstrations or trajectories, and keep it: one transaction.

        The configuration is the one given, else the one that the data carry, else the one asked for last.
        """
        from policyspace.study.data import to_arrays, to_demonstrations

        status = self.status()
        number = len(status.rounds)
        self._check_open(status)
        arrays = to_arrays(self.world, told)
        if (before := self._store.told_before(arrays)) is not None:
            raise InputError(f"these very data were told before, in round {before + 1}: tell new ones.")
        omega = self._collected_under(told, configuration, status)
        data = to_demonstrations(self.world, arrays)
        outcome = self._by_eprocess(status, data, omega) if status.sequential else self._by_batch(status, data)
        request = status.request
        followed = request is not None and same_configuration(request.configuration, omega)
        record = RoundRecord(
            number,
            omega,
            request.design if request is not None and followed else None,
            request.asked_for if request is not None and followed else (),
            request.reasons if request is not None and followed else {},
            int(data.num_episodes or 0),
            status.total_episodes + int(data.num_episodes or 0),
            status.level,
            *outcome,
        )
        self._store.tell(number, _now(), record.to_dict(), _truth(told), arrays)
        return record

    def _by_batch(self, status: Status, data: "Demonstrations") -> "Outcome":
        """The batch alone, at its share of δ."""
        from policyspace.configuration.rounds import Ledger

        ledger = Ledger(
            self.space,
            self.settings["rule"],
            self.settings["significance"],
            self.settings["num_rounds"],
            self.settings["paper_rule"],
            status.selected,
            status.supports,
        )
        found, fell, warnings = ledger.take(data)
        tests = [] if found is None else found.to_dict()["tests"]
        return Outcome(tests, fell, ledger.selected, ledger.undecided, ledger.supports or [], warnings)

    def _by_eprocess(self, status: Status, data: "Demonstrations", omega: dict[str, Any]) -> "Outcome":
        """The batch together with all before it, after each of its episodes."""
        from policyspace.study.sequential import History, take

        rounds = status.rounds
        first = len(rounds)  # of the rounds at this configuration, without a break
        while first and same_configuration(rounds[first - 1].configuration, omega):
            first -= 1
        history = History(
            {row["group"]: row for row in rounds[-1].tests} if rounds else {},
            {row["group"]: row for row in rounds[first - 1].tests} if first else {},
            [self.demonstrations(number) for number in range(first, len(rounds))],
            status.total_episodes,
        )
        units = take(self.space, data, self.settings["significance"], history)
        selected = tuple(unit.group for unit in units if unit.state == "controlled")
        fell = tuple(name for name in selected if name not in status.selected)
        undecided = tuple(unit.group for unit in units if unit.state == "open")
        support = frozenset(i for i, group in enumerate(self.space.groups) if group.name in selected)
        rows = [unit.to_dict() for unit in units]
        return Outcome(rows, fell, selected, undecided, [self.space.named(support)], [])

    def _check_open(self, status: Status) -> None:
        if not status.sequential and len(status.rounds) >= self.settings["num_rounds"]:
            raise InputError(
                f"{self.path}: its δ was shared out over {self.settings['num_rounds']} rounds, and all have been told: "
                "begin another study to go on."
            )

    def _collected_under(self, told: "Told", given: Mapping[str, Any] | None, status: Status) -> dict[str, Any]:
        """The ω of the data, complete and inside its bounds."""
        from policyspace.worlds.trajectories import Trajectories

        if given is None:
            given = told.configuration if isinstance(told, Trajectories) else told.metadata.get("configuration")
        if given is None:
            given = status.request.configuration if status.request else self.settings["initial"]
        if not isinstance(given, Mapping):
            raise InputError(f"a configuration is a table of names and numbers, found {given!r:.40}: correct it.")
        return plain(self.world.check_configuration(given))

    def _first(self, status: Status) -> Request:
        return Request(
            0, self.settings["initial"], None, tuple(self.settings["units"]), {}, status.batch, status.level, [], []
        )

    def _next(self, status: Status, number: int) -> Request:
        from policyspace.configuration.designs import Question
        from policyspace.configuration.rounds import estimate
        from policyspace.policies.base import ExponentialFamily
        from policyspace.policies.jax_setup import jax
        from policyspace.study.forecast import forecast

        world, space = self.world, self.space
        names, source = status.agenda()
        units = [i for i, group in enumerate(space.groups) if group.name in names]
        theta = estimate(space, self.demonstrations(source))
        logged = self._logged(status.rounds[source], theta)
        key, forecast_key = jax.random.split(jax.random.fold_in(jax.random.key(self.settings["seed"]), number))
        question = Question(world, space, theta, logged, units, status.batch, key)
        proposal = design_for(self.settings["design"], world).propose(question)
        omega = world.check_configuration(proposal.configuration)
        known = status.rounds[source].num_episodes
        still_open = [i for i, group in enumerate(space.groups) if group.name in status.undecided]
        # The weights of a network are not known one by one, and e-values have no law of λ: nothing can be foretold.
        expected = (
            forecast(world, space, theta, logged, known, omega, still_open, status.batch, status.level, forecast_key)
            if isinstance(space, ExponentialFamily) and not status.sequential
            else []
        )
        return Request(
            number,
            plain(omega),
            proposal.design,
            proposal.units,
            reasons(proposal),
            status.batch,
            status.level,
            expected,
            [*proposal.warnings, *_doubts(proposal)],
        )

    def _logged(self, record: RoundRecord, theta: np.ndarray) -> "Trajectories":
        """What was seen in a round with its states and rewards; where only features were logged, episodes of π_θ̂ there."""
        from policyspace.policies.jax_setup import jax
        from policyspace.study.data import to_trajectories
        from policyspace.study.forecast import NUM_SIMULATED
        from policyspace.worlds.confmdp import rollout

        omega = self.world.check_configuration(record.configuration)
        seen = to_trajectories(self.world, self._store.data(record.number), omega)
        key = jax.random.fold_in(jax.random.key(self.settings["seed"]), 1000 + record.number)
        return rollout(self.world, self.space, theta, omega, key, NUM_SIMULATED) if seen is None else seen


class Outcome(NamedTuple):
    """What a batch has changed, in the order of a record."""

    tests: list[dict[str, Any]]
    fell: tuple[str, ...]
    selected: tuple[str, ...]
    undecided: tuple[str, ...]
    supports: list[list[str]]
    warnings: list[str]


def _doubts(proposal: "Proposal") -> list[str]:
    """What the numbers of a design say against it."""
    if proposal.objective >= proposal.values[0]:
        return []
    return [
        "by its own estimate the design has found nothing better than where it began: its simulated episodes are few, and "
        "another design may do better."
    ]


def _truth(told: "Told") -> dict[str, Any]:
    """What the file says is controlled, if it says so."""
    truth = getattr(told, "metadata", {}).get("truth")
    known = isinstance(truth, list | tuple) and all(isinstance(name, str) for name in truth)
    return {"truth": sorted(truth)} if known else {}  # type: ignore[arg-type]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
