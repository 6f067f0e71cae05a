"""`Study`: ask, tell, status."""

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, Unpack, cast, final, get_type_hints

import numpy as np

from policyspace.data.files import located
from policyspace.data.sample import Sample
from policyspace.data.validation import translate_keywords
from policyspace.errors import InputError, nearest, reason_of
from policyspace.runtime import check_seed, known_world
from policyspace.safe_io import JSON
from policyspace.study.records import (
    Options,
    Round,
    RoundPlan,
    Rounds,
    Schedule,
    Status,
    StudySettings,
    check_history,
    plain,
)
from policyspace.study.store import Names, SQLiteStore, checked_entries, is_setting

if TYPE_CHECKING:
    from policyspace.data.validation import Missing
    from policyspace.environments.gymnasium_world import EnvironmentSpec, GymnasiumWorld
    from policyspace.families.base import PolicySpace
    from policyspace.study.designs import Design
    from policyspace.study.loop import Loop
    from policyspace.worlds.base import Configurable, Trajectories
    from policyspace.worlds.confmdp import ConfMDP


Told = ParamSpec("Told")
Found = TypeVar("Found")


def in_one_connection(
    method: Callable[Concatenate["Study", Told], Found],
) -> Callable[Concatenate["Study", Told], Found]:
    """A method that opens the file of its study once."""

    @wraps(method)
    def call(self: "Study", /, *args: Told.args, **words: Told.kwargs) -> Found:
        with self._store.opened():
            return method(self, *args, **words)

    return call


# -- What a study names: its world, its units and its design, found or refused with a sentence.

PENALTIES = {"continuous-gridworld": 1e-6, "minigolf": 0.25}
"""The paper's ζ, where it is not that of the grid world."""


def load_world(spec: str) -> "ConfMDP":
    """One of our worlds by name, or `module:Class` (or a ready-made `module:world`), found from the working folder too."""
    from policyspace.worlds import make_world

    known_world(spec, or_class=True)
    if ":" not in spec:
        return make_world(spec)
    from policyspace.environments.checks import imported
    from policyspace.worlds.confmdp import ConfMDP

    found = imported(spec, "the world")
    try:
        world = found() if isinstance(found, type) else found
    except Exception as error:  # whatever a user's class does
        raise InputError(f"the world '{spec}' cannot be made ({reason_of(error)}): correct it.") from error
    if not isinstance(world, ConfMDP):
        raise InputError(
            f"the world '{spec}' must be a policyspace.worlds.confmdp.ConfMDP, found a {type(world).__name__}."
        )
    return world


def world_of(world: Any, env: Any = None, parameters: Mapping[str, Sequence[float]] | None = None) -> "Configurable":
    """The world that is meant: by name, a world itself, or an environment with its parameters; exactly one of these."""
    if (world is None) == (env is None):
        raise InputError(
            "say what the study is about: a world, or an environment (env) with its parameters; one of them."
        )
    if env is not None:
        from policyspace.environments.gymnasium_world import GymnasiumWorld

        return GymnasiumWorld.of(env, parameters or {})
    if parameters is not None:
        raise InputError("parameters belong to an environment (env), found a world, which has its own: leave them out.")
    if isinstance(world, str):
        return load_world(world)
    return playable(world)


def playable(world: Any) -> "GymnasiumWorld":
    """A world that is a Gymnasium environment; the others are known by name, so that a file can say which they are."""
    from policyspace.environments.gymnasium_world import GymnasiumWorld

    if isinstance(world, GymnasiumWorld):
        return world
    found = getattr(world, "name", type(world).__name__)
    raise InputError(
        f"expected a Gymnasium environment, found '{found}': name our worlds, and simulate agents in them."
    )


def settings_of_environment(world: "Configurable") -> dict[str, JSON] | None:
    """What a study's file says about an environment; None of our worlds, which have names."""
    from policyspace.environments.gymnasium_world import GymnasiumWorld

    return world.facts.to_dict() if isinstance(world, GymnasiumWorld) else None


def check_settings(settings: Mapping[str, Any]) -> None:
    """What a file says that a study was created with, entry by entry."""
    checked_entries(get_type_hints(StudySettings, include_extras=True), settings, "the settings", ("environment",))
    check_seed(settings["seed"])
    Schedule.from_settings(settings)
    if settings.get("environment") is not None:
        check_environment(settings["environment"])
    elif settings["world"] is None:
        raise InputError("the settings must name a world or an environment, found neither: the file is damaged.")


def check_own_world(settings: Mapping[str, Any], named: str | None) -> None:
    """A world that is named when a study is opened must be the one that the study is about."""
    about = settings["world"]
    if named is None or named == about:
        return
    if about is None:
        where = f"is about the environment '{settings['world_name']}', found the world '{named}' named"
        raise InputError(f"{where}: leave the world (--world, world=) out.")
    raise InputError(f"is about the world '{about}', found '{named}' named instead: name that, or no world.")


def check_environment(stored: Any) -> "EnvironmentSpec":
    """What a file says about an environment, entry by entry."""
    from policyspace.environments.gymnasium_world import EnvironmentSpec

    kinds = get_type_hints(EnvironmentSpec, include_extras=True)
    checked_entries(kinds, stored, "the environment", ("own_names",))
    found = EnvironmentSpec.from_dict(stored)
    names = (found.feature_names, found.action_names)
    if stored.keys() - kinds.keys() or not all(len(set(some)) == len(some) for some in names):
        raise InputError("the environment has entries that are not known, or names twice: the file is damaged.")
    if not all(is_setting(parameter["default"]) for parameter in stored["parameters"]):
        raise InputError("the defaults of the environment's parameters must be numbers: the file is damaged.")
    return found


def stored_environment(settings: Mapping[str, Any], env: Any = None) -> "GymnasiumWorld":
    """The environment that the settings of a study are about, with the function that makes it where that is given."""
    from policyspace.environments.gymnasium_world import GymnasiumWorld

    stored = settings.get("environment")
    if stored is None:
        raise InputError(f"the study is about the world '{settings.get('world_name')}', no environment: leave env out.")
    return GymnasiumWorld.from_facts(check_environment(stored), env)


def space_for(world: "Configurable", groups: Any, assume: Iterable[str]) -> "PolicySpace":
    """The world's space with the units of the study; a space that knows no such options is asked for none."""
    space = world.policy_space() if groups == "feature" else world.policy_space(groups=groups)
    known = [group.name for group in space.groups]
    for name in assume:
        if name not in known:
            raise InputError(f"there is no group '{name}' to assume: {nearest(name, known)}")
    return space.with_assumed(assume)


def assumed_names(world: "Configurable", features: Iterable[str] | None) -> list[str]:
    """The features that are not tested, given those that are."""
    if features is None:
        return []
    asked = list(features)
    known = [group.name for group in world.policy_space().groups if not group.assumed]
    for name in asked:
        if name not in known:
            raise InputError(f"there is no feature '{name}' in '{world.name}': {nearest(name, known)}")
    return [name for name in known if name not in asked]


def default_design(world: "Configurable") -> str:
    """The design of a study that names none."""
    from policyspace.worlds.confmdp import ConfMDP

    return "d-optimal" if isinstance(world, ConfMDP) else "simulated"


def design_for(
    name: str, world: "Configurable", learn: Callable[[Any], Any] | None = None, tolerance: float | None = None
) -> "Design":
    """A design by name, with the paper's penalty for the paper's worlds; who learns, for the design "decision"."""
    from policyspace.study.deciding import DecisionDesign
    from policyspace.study.designs import ANYWHERE, DESIGNS, PaperObjective
    from policyspace.worlds.confmdp import ConfMDP

    if name == "decision":
        return DecisionDesign(world, learn, tolerance)
    known = {**DESIGNS, **ANYWHERE, "decision": DecisionDesign}
    if name not in known:
        raise InputError(f"there is no design '{name}': {nearest(name, known)}")
    if name not in ANYWHERE and not isinstance(world, ConfMDP):
        raise InputError(
            f"the design '{name}' weights trajectories by densities, which '{world.name}' does not have: use "
            f"{', '.join(ANYWHERE)}."
        )
    if name == "paper":
        return PaperObjective(penalty=PENALTIES.get(world.name, 0.125))
    made: Design = known[name]()
    return made


# -- The study itself: what to try next, what was seen there, and what is decided, kept in one file.


@final
class Study(Rounds):
    """Which configuration to try next, what was seen there, and what is decided: `ask`, let the agent act, `tell`.

    The chance of any false "controlled" in the whole study is at most δ whatever was asked and however long it takes:
    the levels of all rounds add up to δ, or the evidence of all of them multiplies. Everything is in the one file, which
    `create` makes and `open` opens.

    Examples
    --------
    >>> import tempfile
    >>> import policyspace
    >>> study = policyspace.Study.create(f"{tempfile.mkdtemp()}/golf.study", "minigolf", episodes=50)
    >>> plan = study.ask()
    >>> plan.number, plan.num_episodes
    (0, 50)
    """

    def __init__(self, store: SQLiteStore, own_world: str | None = None, given: "Configurable | None" = None) -> None:
        self._store = store
        self.settings = cast(StudySettings, store.settings())  # checked below
        with located(store.path):
            check_settings(self.settings)
            check_own_world(self.settings, own_world)
        self.made_by = f"policyspace study status {shlex.quote(str(store.path))} --report report.html"
        self._own_world = own_world  # module:Class, as the user named it
        self._given = given  # a world that is already made

    @classmethod
    @translate_keywords
    def create(
        cls,
        path: str | Path,
        world: "str | Configurable | None" = None,
        features: Iterable[str] | None = None,
        groups: Any = "feature",
        assume: Iterable[str] = (),
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
        those in question; the others may be used by the agent and are not tested, like the groups in `assume`. After the
        first round, at `configuration`, a joint design asks for at most `max_rounds` (3) rounds, one for single groups
        (the paper's) for as many for every group; each round has `episodes` (100), or its share of the `budget`, which pays
        for as many rounds as can tell their weights apart unless `max_rounds` says otherwise. `test` "combined" adds the
        evidence of all rounds up, by their p-values, at the `significance` δ (0.05) for all of them; "batches" tests every
        batch alone, at its share of δ; "eprocess" tests after every episode by all that was reported so far, and is the
        default for networks. `rule` and `paper_rule` are those of `identify`.
        """
        from policyspace.study.forecast import schedule_for

        place = world_of(world, env, parameters)
        check_seed(seed)
        if features is not None and groups != "feature":
            raise InputError("features and groups exclude each other: name the known groups in assume instead.")
        known = [*assume, *assumed_names(place, features)]
        design = default_design(place) if design is None else design
        joint = design_for(design, place).joint
        schedule = schedule_for(place, space_for(place, groups, known), joint, **options)
        settings = asdict(schedule) | {
            "num_rounds": schedule.num_rounds,
            "world": world if isinstance(world, str) else None,
            "world_name": place.name,
            "environment": settings_of_environment(place),
            "groups": groups if isinstance(groups, str) else {name: list(inside) for name, inside in groups.items()},
            "assume": known,
            "design": design,
            "initial": plain(place.check_configuration(configuration or {})),
            "seed": seed,
        }
        return cls(SQLiteStore.create(path, settings), given=place)

    @classmethod
    def open(cls, path: str | Path, world: str | None = None, env: Any = None) -> "Study":
        """The study in a file, which never chooses code: what is your own is imported only if you name it here too.

        `world` is the `module:Class` that the study was created with; for the worlds of policyspace it is not needed.
        `env` is the function that makes the study's environment, or its `module:function`, needed where it must be played
        (to ask for a simulated design, or to let an agent act); for registered ids of Gymnasium it is not needed.
        """
        store = SQLiteStore.open(path)
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
        named = str(self.settings["world"])
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
        space = space_for(self.world, self.settings["groups"], self.settings["assume"])
        if [space.groups[i].name for i in space.tested] != list(self.settings["units"]):
            raise InputError(
                f"{self.path}: the world '{self.settings['world_name']}' has other features than when the study was "
                "created: use the version that it was created with."
            )
        return space

    def rounds(self) -> list[Round]:
        """What has been reported so far."""
        return self.status().rounds

    @in_one_connection
    def status(self) -> Status:
        """What is decided, what is open, the history, and what was asked last."""
        rows = self._store.rounds()
        asked = self._store.request(len(rows))
        schedule = Schedule.from_settings(self.settings)
        with located(self.path):
            for row in rows:
                checked_entries({"truth": Names}, row.metadata, "what is known of a round", ("truth",))
            rounds = [Round.from_dict(row.record) for row in rows]
            request = None if asked is None else RoundPlan.from_dict(asked)
            check_history(rounds, request, schedule)
        truths = [cast(list[str], row.metadata["truth"]) for row in rows if "truth" in row.metadata]
        truth = truths[0] if truths and all(truth == truths[0] for truth in truths) else None
        return Status(schedule, rounds, request, [row.told_at for row in rows], self.settings, truth)

    @in_one_connection
    def ask(
        self, design: str | None = None, tolerance: float | None = None, learn: Callable[[Any], Any] | None = None
    ) -> RoundPlan | None:
        """The next configuration, why, what it would settle and how many episodes it needs; None at the study's end.

        The same answer until the next `tell`, on every machine: it is written down when it is first asked for. A `design`
        takes the place of the study's own for this round: "decision" is the round that most lowers the regret of choosing a
        configuration for the agent; where the regret is at most the `tolerance`, it says that the study may stop. In an
        environment it needs `learn(env)`.
        """
        status = self.status()
        name = str(self.settings["design"]) if design is None else design
        chosen = design_for(name, self.world, learn, tolerance) if design is not None or learn or tolerance else None
        if chosen is not None and not (chosen.joint and status.schedule.joint):
            raise InputError("a design of one round is for all undecided groups at once, found one for single groups.")
        if status.finished is not None:
            return None
        if status.request is not None:
            if design is not None and status.request.design not in (None, design):
                raise InputError(
                    f"round {status.request.number + 1} was asked for by the design '{status.request.design}' and is "
                    "not yet reported: tell it first."
                )
            return status.request
        from policyspace.families.jax_backend import jax

        number = len(status.rounds)
        keys = jax.random.split(jax.random.fold_in(jax.random.key(self.settings["seed"]), number))
        request = self._loop(status, chosen).ask(keys[0], keys[1])
        assert request is not None  # for the study is not finished
        return RoundPlan.from_dict(self._store.keep_request(number, request.to_dict()))

    @translate_keywords
    @in_one_connection
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
        from policyspace.data.request import ColumnOptions, Request
        from policyspace.study.batches import batch_of, configuration_of, to_arrays, to_batch
        from policyspace.study.store import check_new

        status = self.status()
        loop = self._loop(status)
        columns: ColumnOptions = {"features": features, "episodes": episodes, "weights": weights, "missing": missing}
        batch, notes = batch_of(self.world, Request(data, actions, columns))
        arrays = to_arrays(self.world, batch)
        if (before := self._store.round_with(arrays)) is not None:
            raise InputError(f"these very data were reported before, in round {before + 1}: tell new ones.")
        check_new(arrays, map(self._store.data, range(len(status.rounds))))
        asked = status.request.configuration if status.request else self.settings["initial"]
        omega = self.world.check_configuration(configuration_of(self.world, batch, configuration, asked))
        told = to_batch(self.world, arrays)
        if isinstance(batch, Sample) and isinstance(told, Sample) and batch.origin.draws is not None:
            told = replace(told, origin=batch.origin, recorded=batch.recorded)  # to be tested by its draws
        result = loop.tell(told, omega)
        result = replace(result, warnings=[*notes, *result.warnings])
        told_at = datetime.now(UTC).isoformat(timespec="seconds")
        truth = batch.origin.ground_truth if isinstance(batch, Sample) else None
        self._store.tell(
            result.number, told_at, result.to_dict(), {} if truth is None else {"truth": sorted(truth)}, arrays
        )
        return result

    def play(
        self, agent: Any = None, learn: Callable[[Any], Any] | None = None, randomise: bool = False
    ) -> Round | None:
        """Let an agent act in what is asked next, and tell it: one round, or None at the study's end.

        With `randomise` its readings are drawn at random now and then (`RandomisedReadings`), and the round is tested by
        the draws: exactly, whatever the agent is.

        For studies of a Gymnasium environment. The agent is a function from observations to actions or a model with
        `predict`, the same in all rounds; or `learn(env)` trains and returns one in every configuration.
        """
        from policyspace.families.jax_backend import jax
        from policyspace.study.batches import DrawingRound

        request = self.ask()
        number = 0 if request is None else request.number
        drawing = DrawingRound(playable(self.world), self.space, (1000 * self.settings["seed"] + number) % 2**62)
        observe = playable(self.world).observe(agent, learn, drawing.wrap) if randomise else None
        observe = observe or playable(self.world).observe(agent, learn)
        if request is None:
            return None
        key = jax.random.fold_in(jax.random.key(self.settings["seed"]), 2000 + request.number)
        seen = observe(key, self.world.check_configuration(request.configuration), request.num_episodes)
        return self.tell(drawing.pairs(seen) if randomise else seen, request.configuration)

    def demonstrations(self, number: int) -> "Sample":
        """The pairs reported in a round."""
        from policyspace.study.batches import to_demonstrations

        return to_demonstrations(self.world, self._store.data(number))

    def episodes(self, number: int) -> "Trajectories | None":
        """What was reported in a round with its rewards; None where no rewards were reported (a column "reward")."""
        from policyspace.study.batches import episodes_with_rewards

        omega = self.world.check_configuration(self.rounds()[number].configuration)
        return episodes_with_rewards(self.world, self._store.data(number), omega)

    def _pairs(self, number: int) -> "Sample | str":
        """The pairs reported in a round, or why it has none to test."""
        from policyspace.study.batches import to_batch
        from policyspace.study.evidence import pairs_of

        return pairs_of(self.world, to_batch(self.world, self._store.data(number)))

    def _trajectories(self, number: int, theta: np.ndarray) -> "Trajectories":
        """What was seen in a round with its states and rewards; where only pairs were reported, episodes of π_θ there."""
        from policyspace.families.jax_backend import jax
        from policyspace.study.batches import to_trajectories
        from policyspace.study.forecast import NUM_SIMULATED

        omega = self.world.check_configuration(self.rounds()[number].configuration)
        seen = to_trajectories(self.world, self._store.data(number), omega)
        key = jax.random.fold_in(jax.random.key(self.settings["seed"]), 1000 + number)
        return self.world.simulate(self.space, theta, omega, key, NUM_SIMULATED) if seen is None else seen

    def _loop(self, status: Status, design: "Design | None" = None) -> "Loop":
        """The loop where it stands, with the data in the file, by the study's own design or another one."""
        from policyspace.study.loop import Loop

        world, space, design = self.world, self.space, design or design_for(self.settings["design"], self.world)
        return Loop(world, space, design, self.settings["initial"], status, self._pairs, self._trajectories)
