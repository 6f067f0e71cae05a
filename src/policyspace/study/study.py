"""The study itself: what to try next, what was seen there, and what is decided, kept in one file."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, final

import numpy as np

from policyspace.configuration.request import Request
from policyspace.configuration.round import Round, plain
from policyspace.configuration.schedule import Options, Schedule
from policyspace.configuration.status import Status, check_history
from policyspace.configuration.stored import check_entries, is_names, is_setting, is_table_of, is_text
from policyspace.data.limits import check_seed
from policyspace.data.vocabulary import one_vocabulary
from policyspace.errors import InputError
from policyspace.study.settings import design_for, load_world, not_in_question, space_for
from policyspace.study.study_file import StudyStore

if TYPE_CHECKING:
    from policyspace.configuration.loop import Loop
    from policyspace.configuration.testable import Batch
    from policyspace.data.demonstrations import Demonstrations
    from policyspace.policies import PolicySpace
    from policyspace.worlds.confmdp import ConfMDP
    from policyspace.worlds.trajectories import Trajectories


SETTINGS = {
    "world": is_text,
    "world_name": is_text,
    "groups": lambda groups: is_text(groups) or is_table_of(is_names)(groups),
    "always": is_names,
    "design": is_text,
    "initial": is_table_of(is_setting),
    "seed": lambda seed: type(seed) is int,
}
"""What a study was created with, beside its schedule."""


@final
class Study:
    """Which configuration to try next, what was seen there, and what is decided: `ask`, let the agent act, `tell`.

    The chance of any false 'controlled' in the whole study is at most δ whatever was asked and however long it takes:
    the levels of all rounds add up to δ, or the evidence of all of them multiplies. Everything is in the one file.
    """

    def __init__(self, store: StudyStore) -> None:
        self._store = store
        self.settings: dict[str, Any] = store.settings()
        with store.located():
            check_entries(self.settings, SETTINGS, "the settings")
            check_seed(self.settings["seed"])
            Schedule.from_settings(self.settings)

    @classmethod
    @one_vocabulary
    def create(
        cls,
        path: str | Path,
        world: str,
        features: Iterable[str] | None = None,
        groups: Any = "feature",
        always: Iterable[str] = (),
        design: str = "d-optimal",
        configuration: Mapping[str, Any] | None = None,
        seed: int = 0,
        **options: Unpack[Options],
    ) -> "Study":
        """A new study in a new file.

        `world` is one of ours by name or `module:Class`. `features` are those in question; the others may be used by the
        agent and are not tested, like the groups in `always`. After the first round, at `configuration`, a joint design asks
        `attempts` (3) times, one for single units (the paper's) as often for every unit; each round has `episodes`
        (100), or its share of the `budget`. `test` "batches" tests every batch alone, at its share of the `significance`
        δ (0.05); "eprocess" tests after every episode by all that was reported so far, at full δ, and is the default for
        networks: no batch has to decide alone. `rule` and `paper_rule` are those of `identify`.
        """
        place = load_world(world)
        check_seed(seed)
        if features is not None and groups != "feature":
            raise InputError("features and groups exclude each other: name the known groups in always instead.")
        known = [*always, *not_in_question(place, features)]
        schedule = Schedule.of(space_for(place, groups, known), design_for(design, place).joint, **options)
        settings = asdict(schedule) | {
            "num_rounds": schedule.num_rounds,
            "world": world,
            "world_name": place.name,
            "groups": groups if isinstance(groups, str) else {name: list(inside) for name, inside in groups.items()},
            "always": known,
            "design": design,
            "initial": plain(place.check_configuration(configuration or {})),
            "seed": seed,
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

    def rounds(self) -> list[Round]:
        """What has been reported so far."""
        return self.status().rounds

    def status(self) -> Status:
        """What is decided, what is open, the history, and what was asked last."""
        rows = self._store.rounds()
        asked = self._store.request(len(rows))
        schedule = Schedule.from_settings(self.settings)
        with self._store.located():
            for _, metadata, _ in rows:
                known = {"truth": is_names} if isinstance(metadata, dict) and "truth" in metadata else {}
                check_entries(metadata, known, "what is known of a round")
            rounds = [Round.from_dict(record) for record, _, _ in rows]
            request = None if asked is None else Request.from_dict(asked)
            check_history(rounds, request, schedule)
        truths = [metadata["truth"] for _, metadata, _ in rows if "truth" in metadata]
        truth = truths[0] if truths and all(truth == truths[0] for truth in truths) else None
        return Status(schedule, rounds, request, [moment for _, _, moment in rows], self.settings, truth)

    def ask(self) -> Request | None:
        """The next configuration, why, what it would settle and how many episodes it needs; None at the study's end.

        The same answer until the next `tell`, on every machine: it is written down when it is first asked for.
        """
        status = self.status()
        if status.finished is not None or status.request is not None:
            return None if status.finished is not None else status.request
        from policyspace.policies.jax_setup import jax

        number = len(status.rounds)
        keys = jax.random.split(jax.random.fold_in(jax.random.key(self.settings["seed"]), number))
        request = self._loop(status).ask(keys[0], keys[1])
        assert request is not None  # for the study is not finished
        return Request.from_dict(self._store.keep_request(number, request.to_dict()))

    def tell(self, batch: "Batch", configuration: Mapping[str, Any] | None = None) -> Round:
        """Test a batch of demonstrations or trajectories, and keep it: one transaction.

        The configuration is the one given, else the one that the data carry, else the one asked for last.
        """
        from policyspace.study.data import configuration_of, to_arrays, to_demonstrations

        status = self.status()
        loop = self._loop(status)
        arrays = to_arrays(self.world, batch)
        if (before := self._store.round_with(arrays)) is not None:
            raise InputError(f"these very data were reported before, in round {before + 1}: tell new ones.")
        asked = status.request.configuration if status.request else self.settings["initial"]
        omega = self.world.check_configuration(configuration_of(batch, configuration, asked))
        result = loop.tell(to_demonstrations(self.world, arrays), omega)
        self._store.tell(result.number, _now(), result.to_dict(), _truth(batch), arrays)
        return result

    def demonstrations(self, number: int) -> "Demonstrations":
        """The pairs reported in a round."""
        from policyspace.study.data import to_demonstrations

        return to_demonstrations(self.world, self._store.data(number))

    def _trajectories(self, number: int, theta: np.ndarray) -> "Trajectories":
        """What was seen in a round with its states and rewards; where only pairs were reported, episodes of π_θ there."""
        from policyspace.configuration.forecast import NUM_SIMULATED
        from policyspace.policies.jax_setup import jax
        from policyspace.study.data import to_trajectories
        from policyspace.worlds.confmdp import rollout

        omega = self.world.check_configuration(self.rounds()[number].configuration)
        seen = to_trajectories(self.world, self._store.data(number), omega)
        key = jax.random.fold_in(jax.random.key(self.settings["seed"]), 1000 + number)
        return rollout(self.world, self.space, theta, omega, key, NUM_SIMULATED) if seen is None else seen

    def _loop(self, status: Status) -> "Loop":
        """The loop where it stands, with the data in the file."""
        from policyspace.configuration.loop import Loop

        world, space, design = self.world, self.space, design_for(self.settings["design"], self.world)
        return Loop(world, space, design, self.settings["initial"], status, self.demonstrations, self._trajectories)


def _truth(batch: "Batch") -> dict[str, Any]:
    """What the file says is controlled, if it says so."""
    truth = getattr(batch, "metadata", {}).get("truth")
    known = isinstance(truth, list | tuple) and all(isinstance(name, str) for name in truth)
    return {"truth": sorted(truth)} if known else {}  # type: ignore[arg-type]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
