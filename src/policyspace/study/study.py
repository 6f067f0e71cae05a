"""The study itself: what to try next, what was seen there, and what is decided, kept in one file."""

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, final

import numpy as np

from policyspace.configuration.request import Request
from policyspace.configuration.round import Round, plain
from policyspace.configuration.rounds import Rounds
from policyspace.configuration.schedule import Options, Schedule
from policyspace.configuration.status import Status, check_history
from policyspace.configuration.stored import check_entries, is_names
from policyspace.data.limits import check_seed
from policyspace.data.readers import located
from policyspace.data.vocabulary import one_vocabulary
from policyspace.errors import InputError
from policyspace.study.settings import (
    check_own_world,
    check_settings,
    default_design,
    design_for,
    load_world,
    not_in_question,
    playable,
    settings_of_environment,
    space_for,
    stored_environment,
    world_of,
)
from policyspace.study.study_file import StudyStore

if TYPE_CHECKING:
    from policyspace.configuration.loop import Loop
    from policyspace.configuration.testable import Batch
    from policyspace.data.demonstrations import Demonstrations
    from policyspace.data.missing import Missing
    from policyspace.policies import PolicySpace
    from policyspace.worlds.configurable import Configurable
    from policyspace.worlds.trajectories import Trajectories


@final
class Study(Rounds):
    """Which configuration to try next, what was seen there, and what is decided: `ask`, let the agent act, `tell`.

    The chance of any false 'controlled' in the whole study is at most δ whatever was asked and however long it takes:
    the levels of all rounds add up to δ, or the evidence of all of them multiplies. Everything is in the one file.
    """

    def __init__(self, store: StudyStore, own_world: str | None = None, given: "Configurable | None" = None) -> None:
        self._store = store
        self.settings: dict[str, Any] = store.settings()
        with located(store.path):
            check_settings(self.settings)
            check_own_world(self.settings, own_world)
        self.made_by = f"policyspace study status {shlex.quote(str(store.path))} --report report.html"
        self._own_world = own_world  # module:Class, as the user named it
        self._given = given  # a world that is already made

    @classmethod
    @one_vocabulary
    def create(
        cls,
        path: str | Path,
        world: "str | Configurable | None" = None,
        features: Iterable[str] | None = None,
        groups: Any = "feature",
        always: Iterable[str] = (),
        design: str | None = None,
        configuration: Mapping[str, Any] | None = None,
        seed: int = 0,
        env: Any = None,
        parameters: Mapping[str, Sequence[float]] | None = None,
        **options: Unpack[Options],
    ) -> "Study":
        """A new study in a new file.

        `world` is one of ours by name or `module:Class`, or a `GymnasiumWorld`; in its place `env` is a Gymnasium id or a
        function that makes an environment, whose `parameters` lie between bounds, {"gravity": (5, 15)}. `features` are
        those in question; the others may be used by the agent and are not tested, like the groups in `always`. After the
        first round, at `configuration`, a joint design asks `attempts` (3) times, one for single units (the paper's) as
        often for every unit; each round has `episodes` (100), or its share of the `budget`, which pays for as many rounds
        as can tell their weights apart unless `attempts` says otherwise. `test` "combined" adds the evidence of all rounds
        up, by their p-values, at the `significance` δ (0.05) for all of them; "batches" tests every batch alone, at its
        share of δ; "eprocess" tests after every episode by all that was reported so far, and is the default for networks.
        `rule` and `paper_rule` are those of `identify`.
        """
        from policyspace.configuration.plan import schedule_for

        place = world_of(world, env, parameters)
        check_seed(seed)
        if features is not None and groups != "feature":
            raise InputError("features and groups exclude each other: name the known groups in always instead.")
        known = [*always, *not_in_question(place, features)]
        design = default_design(place) if design is None else design
        joint = design_for(design, place).joint
        schedule = schedule_for(place, space_for(place, groups, known), joint, **options)
        settings = asdict(schedule) | {
            "num_rounds": schedule.num_rounds,
            "world": world if isinstance(world, str) else None,
            "world_name": place.name,
            "environment": settings_of_environment(place),
            "groups": groups if isinstance(groups, str) else {name: list(inside) for name, inside in groups.items()},
            "always": known,
            "design": design,
            "initial": plain(place.check_configuration(configuration or {})),
            "seed": seed,
        }
        return cls(StudyStore.create(path, settings), given=place)

    @classmethod
    def open(cls, path: str | Path, world: str | None = None, env: Any = None) -> "Study":
        """The study in a file, which never chooses code: what is your own is imported only if you name it here too.

        `world` is the `module:Class` that the study was created with; for the worlds of policyspace it is not needed.
        `env` is the function that makes the study's environment, or its `module:function`, needed where it must be played
        (to ask for a simulated design, or to let an agent act); for registered ids of Gymnasium it is not needed.
        """
        store = StudyStore.open(path)
        return cls(store, world, None if env is None else stored_environment(store.settings(), env))

    @property
    def path(self) -> Path:
        """The file of the study."""
        return self._store.path

    @cached_property
    def world(self) -> "Configurable":
        """The world that the study is about."""
        if self._given is not None:
            return self._given
        if self.settings.get("environment") is not None:
            return stored_environment(self.settings)
        named = self.settings["world"]
        if ":" in named and self._own_world is None:
            raise InputError(
                f"{self.path}: is about the world '{named}', which would run code from outside policyspace: if you trust "
                f"it, name it too, with --world or Study.open(path, world=…)."
            )
        world = load_world(named)
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
                f"{self.path}: the world '{self.settings['world_name']}' has other features than when the study was "
                "created: use the version that it was created with."
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
        with located(self.path):
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

    @one_vocabulary
    def tell(
        self,
        data: Any,
        configuration: Mapping[str, Any] | None = None,
        actions: Any = None,
        features: Sequence[str] | None = None,
        episodes: Any = None,
        weights: Any = None,
        missing: "Missing" = "error",
    ) -> Round:
        """Test what was observed, and keep it: one transaction.

        `data` is whatever `identify` reads (demonstrations, a file, a folder or a pattern, a table, arrays, what a tool
        keeps), where the other words say which columns are what; or trajectories. Numbers of an observation without
        names, `observation[0]`, …, are those of the study's environment if they are as many, and the round's warnings say
        so. Rows with `missing` values are an "error", or they "drop" out. The configuration is the one given, else the one
        that the data carry, else the one asked for last.
        """
        from policyspace.study.data import batch_of, configuration_of, to_arrays, to_batch
        from policyspace.study.told_again import check_new

        status = self.status()
        loop = self._loop(status)
        said = {"actions": actions, "features": features, "episodes": episodes, "weights": weights, "missing": missing}
        batch, notes = batch_of(self.world, data, **said)
        arrays = to_arrays(self.world, batch)
        if (before := self._store.round_with(arrays)) is not None:
            raise InputError(f"these very data were reported before, in round {before + 1}: tell new ones.")
        check_new(arrays, map(self._store.data, range(len(status.rounds))))
        asked = status.request.configuration if status.request else self.settings["initial"]
        omega = self.world.check_configuration(configuration_of(self.world, batch, configuration, asked))
        result = loop.tell(to_batch(self.world, arrays), omega)
        result = replace(result, warnings=[*notes, *result.warnings])
        told_at = datetime.now(UTC).isoformat(timespec="seconds")
        self._store.tell(result.number, told_at, result.to_dict(), _truth(batch), arrays)
        return result

    def play(self, agent: Any = None, learn: Callable[[Any], Any] | None = None) -> Round | None:
        """Let an agent act in what is asked next, and tell it: one round, or None at the study's end.

        For studies of a Gymnasium environment. The agent is a function from observations to actions or a model with
        `predict`, the same in all rounds; or `learn(env)` trains and returns one in every configuration.
        """
        from policyspace.policies.jax_setup import jax

        observe = playable(self.world).observe(agent, learn)
        request = self.ask()
        if request is None:
            return None
        key = jax.random.fold_in(jax.random.key(self.settings["seed"]), 2000 + request.number)
        seen = observe(key, self.world.check_configuration(request.configuration), request.num_episodes)
        return self.tell(seen, request.configuration)

    def demonstrations(self, number: int) -> "Demonstrations":
        """The pairs reported in a round."""
        from policyspace.study.data import to_demonstrations

        return to_demonstrations(self.world, self._store.data(number))

    def _pairs(self, number: int) -> "Demonstrations | str":
        """The pairs reported in a round, or why it has none to test."""
        from policyspace.configuration.testable import pairs_of
        from policyspace.study.data import to_batch

        return pairs_of(self.world, to_batch(self.world, self._store.data(number)))

    def _trajectories(self, number: int, theta: np.ndarray) -> "Trajectories":
        """What was seen in a round with its states and rewards; where only pairs were reported, episodes of π_θ there."""
        from policyspace.configuration.forecast import NUM_SIMULATED
        from policyspace.policies.jax_setup import jax
        from policyspace.study.data import to_trajectories

        omega = self.world.check_configuration(self.rounds()[number].configuration)
        seen = to_trajectories(self.world, self._store.data(number), omega)
        key = jax.random.fold_in(jax.random.key(self.settings["seed"]), 1000 + number)
        return self.world.simulate(self.space, theta, omega, key, NUM_SIMULATED) if seen is None else seen

    def _loop(self, status: Status) -> "Loop":
        """The loop where it stands, with the data in the file."""
        from policyspace.configuration.loop import Loop

        world, space, design = self.world, self.space, design_for(self.settings["design"], self.world)
        return Loop(world, space, design, self.settings["initial"], status, self._pairs, self._trajectories)


def _truth(batch: "Batch") -> dict[str, Any]:
    """What the file says is controlled, if it says so."""
    truth = getattr(batch, "metadata", {}).get("truth")
    known = isinstance(truth, list | tuple) and all(isinstance(name, str) for name in truth)
    return {"truth": sorted(truth)} if known else {}  # type: ignore[arg-type]
