"""`policyspace worlds`, `simulate` and `watch`: worlds, simulated logs, and recorded agents."""

import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from policyspace.cli.console import (
    JsonOut,
    check_suffix,
    check_targets,
    deliver,
    new_console,
    running,
    say,
    show_saved,
    show_table,
    waiting,
)
from policyspace.cli.options import Names, Text, given, option, pairs, split
from policyspace.display import TextTable, json_text
from policyspace.errors import InputError, nearest, number_of
from policyspace.runtime import check_seed, known_world

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rich.console import Console

    from policyspace.data.sample import Sample
    from policyspace.environments.gymnasium_world import GymnasiumWorld
    from policyspace.families.base import PolicySpace
    from policyspace.safe_io import JSON
    from policyspace.worlds.agents import Agent
    from policyspace.worlds.base import Key, Trajectories
    from policyspace.worlds.confmdp import ConfMDP


# -- What `--controls` stands for: the features that a simulated agent perceives and controls.


def owned_in_words(space: "PolicySpace", controls: "Iterable[str]") -> str:
    """What an agent controls; some spaces have parts that every agent controls."""
    constant = any(group.assumed for group in space.groups)
    return ", ".join(controls) or ("nothing but the constant" if constant else "nothing")


def controls_of(world: "ConfMDP", given: str, key: Any) -> tuple[str, ...]:
    """The features by name, in the world's order; a random choice of them is drawn from the key."""
    if given == "random":
        chosen = world.random_controls(key)
    elif given in ("all", "none"):
        chosen = frozenset(world.feature_names if given == "all" else ())
    else:
        chosen = frozenset(split([given]))
    for name in sorted(chosen):
        if name not in world.feature_names:
            raise InputError(f"there is no feature '{name}' to control: {nearest(name, world.feature_names)}")
    return tuple(name for name in world.feature_names if name in chosen)


# -- `policyspace worlds`: which worlds there are, what agents perceive there, and what can be configured.

COLUMNS = ("configuration", "low", "high", "default", "what it is")


def worlds(
    name: Annotated[str | None, typer.Argument(help="One world only.", metavar="[WORLD]", show_default=False)] = None,
    json: JsonOut = None,
) -> None:
    """List the worlds that can be simulated: their features, actions, and configurations with bounds and defaults."""
    if name is not None:
        known_world(name)
    from policyspace.worlds import WORLDS, make_world

    check_targets(json=json)
    shown = [make_world(known) for known in ([name] if name else WORLDS)]
    deliver(lambda: json_text({"worlds": [_as_data(world) for world in shown]}), json, lambda: _show(shown))


def _as_data(world: "ConfMDP") -> "dict[str, JSON]":
    """A world as plain data."""
    return {
        "name": world.name,
        "description": _description(world),
        "features": list(world.feature_names),
        "actions": list(world.action_names),
        "action_bounds": None if world.action_bounds is None else list(world.action_bounds),
        "true_controls": sorted(world.true_controls, key=world.feature_names.index),
        "horizon": world.horizon,
        "discount": world.discount,
        "configuration": [
            {
                "name": parameter.name,
                "shape": list(parameter.shape),
                "low": parameter.low,
                "high": parameter.high,
                "default": parameter.default_array().tolist(),
                "description": parameter.description,
            }
            for parameter in world.parameters
        ],
    }


def _description(world: "ConfMDP") -> str:
    return (sys.modules[type(world).__module__].__doc__ or "").splitlines()[0]


def _show(worlds: "Iterable[ConfMDP]") -> None:
    from rich import box

    console = new_console()
    for world in worlds:
        say(console, "")
        say(console, f"{world.name}  T = {world.horizon}, γ = {world.discount}", style="bold")
        say(console, _description(world), style="dim")
        bounds = world.action_bounds
        kind = "discrete" if bounds is None else "continuous in [{:g}, {:g}]".format(*bounds)
        say(console, f"actions   {', '.join(world.action_names)} ({kind})")
        say(console, f"features  {_runs(world.feature_names)}")
        rows = [
            (
                p.name + "".join(f"[{count}]" for count in p.shape),
                f"{p.low:g}",
                f"{p.high:g}",
                f"{default.flat[0]:g}" if (default == default.flat[0]).all() else str(default.tolist()),
                p.description,
            )
            for p, default in ((p, p.default_array()) for p in world.parameters)
        ]
        show_table(console, TextTable(COLUMNS, rows), box=box.SIMPLE)


def _runs(names: "Iterable[str]") -> str:
    """Names that only count up, shortened: `row_0 … row_3`."""
    runs: list[list[str]] = []
    for name in names:
        stem = re.sub(r"(_\d+)+$", "", name)
        if runs and name != stem and re.sub(r"(_\d+)+$", "", runs[-1][0]) == stem:
            runs[-1].append(name)
        else:
            runs.append([name])
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]} … {run[-1]}" for run in runs)


# -- What `configure` and `study` share about Gymnasium environments: the options that name one, and who acts in it.

Env = Annotated[
    Text,
    typer.Option("--env", help="A Gymnasium id, or your function that makes one.", metavar="ENV_ID|module:function"),
]

TRUST = "Let the file of the agent run code when it is loaded; most need none."

Algorithm = Annotated[
    Text,
    typer.Option(
        "--algorithm",
        help="Of an agent that stable-baselines3 saved; by default seen in the file.",
        metavar="PPO|A2C|DQN|SAC|TD3|DDPG",
    ),
]


@dataclass(frozen=True)
class EnvironmentOptions:
    """An environment, what can be set in it, and how."""

    env: Env = None
    parameter: Names = option(None, "What can be set in the environment, between bounds.", "NAME=LOW:HIGH[:DEFAULT]")
    by: Names = option(None, "How a parameter reaches it, if not as found out.", "NAME=keyword|attribute|options|make")
    names: Names = option(None, "Of the numbers of an observation.", "NAME,…")

    def world(self) -> "GymnasiumWorld | None":
        """The environment that is meant, if one is."""
        if self.env is None:
            for said in given(self):
                raise InputError(f"{said} belongs to an environment, found none: name it with --env.")
            return None
        from policyspace.environments.gymnasium_world import GymnasiumWorld

        settable = pairs("--parameter", "is written NAME=…", self.parameter)
        parameters = {name: _bounds(name, text) for name, text in settable.items()}
        ways = pairs("--by", "is written NAME=…", self.by)
        return GymnasiumWorld.of(self.env, parameters, split(self.names) or None, ways)


@dataclass(frozen=True)
class ActorOptions:
    """Who acts in an environment."""

    agent: Text = option(
        None,
        "Acts in --env: a model of stable-baselines3, or your function of an observation.",
        "MODEL.zip|module:function",
    )
    algorithm: Algorithm = None
    trust: bool = option(False, TRUST)
    learn: Text = option(None, "Trains an agent in --env in every round: your learn(env).", "module:function")

    def actors(self) -> tuple[Any, Any]:
        """The arguments of `GymnasiumWorld.observe`."""
        from policyspace.environments.checks import imported
        from policyspace.environments.saved_agents import agent_from_file

        own = self.agent is not None and ":" in self.agent
        if self.algorithm is not None and (own or self.agent is None):
            raise InputError("--algorithm is of a model in a file, found none: name it with --agent, or leave it out.")
        if self.trust and (own or self.agent is None):
            raise InputError("--trust is of a model in a file, found none: name it with --agent, or leave it out.")
        agent: Any = None
        if self.agent is not None:
            more = (self.algorithm, self.trust)
            agent = imported(self.agent, "the agent") if own else agent_from_file(self.agent, *more)
        return agent, None if self.learn is None else imported(self.learn, "what learns")


def _bounds(name: str, text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(":")]
    except ValueError as error:
        raise InputError(f"--parameter {name} needs bounds LOW:HIGH, found '{text}': write gravity=5:15.") from error


# -- `policyspace simulate`: an agent learns in a world, or comes from a file, and its behaviour is written down.

PICTURES = (".gif", ".png")
BARS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class AgentOptions:
    """Who acts, where and for how long."""

    controls: Text = option(
        None,
        "What the agent perceives and controls: feature names, 'random', 'all' or 'none'. By default what the paper's "
        "agent owns.",
        "NAME,…|random|all|none",
    )
    configuration: Text = option(
        None,
        "The world's ω: name=value,… or a TOML file; what is not named has its default. 'random' draws one.",
        "FILE.toml|NAME=VALUE,…|random",
    )
    episodes: int = option(100, "How many episodes to write.", "N", min=1)
    seed: int = option(0, "Same seed, same file.", "S", min=0)
    learning_steps: int | None = option(
        None, "Learning steps; by default what the world needs, and none for an agent from a file.", "N", min=0
    )
    agent: Path | None = option(None, "An agent saved before, instead of a new one.", "FILE")


@dataclass(frozen=True)
class SavedOptions:
    """What is made beside the episodes, and where all is saved."""

    save_agent: Path | None = option(None, "Save the agent (JSON).", "FILE")
    compare: bool = option(
        True,
        "Say how far the agent is from the best policy known: two more agents learn for it.",
        None,
        "--compare/--no-compare",
    )
    out: Path | None = option(
        None,
        "Where to write the demonstrations: Parquet, CSV, Arrow or NPZ by the name; by default WORLD.parquet.",
        "FILE.parquet",
        show_default=False,
    )
    render: Path | None = option(None, "Draw the first episode: a film (GIF) or a strip (PNG).", "FILE.gif|png")


@running
def simulate(
    world: Annotated[str, typer.Argument(help="The world: see `policyspace worlds`.", metavar="WORLD")],
    acting: AgentOptions,
    saved: SavedOptions,
) -> None:
    """Write demonstrations of an agent that learned in a world, with the ground truth in the file.

    `policyspace identify FILE` then needs no options, and says which of its verdicts are right.
    """
    known_world(world)
    from policyspace.data.files import SUFFIXES
    from policyspace.safe_io import check_targets
    from policyspace.worlds import make_world
    from policyspace.worlds.confmdp import check_simulated

    place, seed = make_world(world), acting.seed
    check_seed(seed)
    check_simulated(place, acting.episodes)
    target = Path(f"{world}.parquet") if saved.out is None else saved.out
    # Say before the work that its results could not be saved.
    check_suffix(target, SUFFIXES)
    if saved.render is not None:
        check_suffix(saved.render, PICTURES)
    check_targets([target, saved.save_agent, saved.render], [acting.agent, acting.configuration])
    from policyspace.families.jax_backend import jax

    names = ("controls", "configuration", "learning", "acting", "comparing")
    chances = [*jax.random.split(jax.random.key(seed), 4), jax.random.fold_in(jax.random.key(seed), 4)]
    keys = dict(zip(names, chances, strict=True))
    console = new_console()
    actor = _agent(place, acting, keys, console, saved.compare)
    if saved.compare:
        actor = replace(actor, returns=_compared(place, actor, keys["comparing"], console))
    if saved.save_agent is not None:
        from policyspace.worlds.agents import save_agent

        save_agent(actor, saved.save_agent)
    omega = place.check_configuration(actor.configuration)
    with waiting("acting"):
        seen = actor.act(place, omega, keys["acting"], acting.episodes)
    data = _demonstrations(place, actor, seen, seed)
    from policyspace.data.files import write

    write(data, target)
    if saved.render is not None:
        from policyspace.worlds.gymnasium_env import draw_episode

        with waiting("drawing"):
            draw_episode(place, seen, saved.render)
    _show_result(console, place, actor, seen, data, [target, saved.save_agent, saved.render])


def _agent(
    world: "ConfMDP", acting: AgentOptions, keys: "Mapping[str, Key]", console: "Console", compared: bool
) -> "Agent":
    """The agent that acts, in the configuration where it acts: loaded, learned, or loaded and learned further."""
    from policyspace.worlds.agents import PHASES, learn, load_agent
    from policyspace.worlds.base import parse_configuration

    given, steps = None, acting.learning_steps
    if acting.configuration == "random":
        given = world.random_configuration(keys["configuration"])
    elif acting.configuration is not None:
        given = world.check_configuration(parse_configuration(acting.configuration))
    if acting.agent is None:
        owned = None if acting.controls is None else controls_of(world, acting.controls, keys["controls"])
        space, start, omega = None, None, given
    else:
        if acting.controls is not None:
            raise InputError("--controls and --agent exclude each other: the agent in the file has its controls.")
        loaded = load_agent(acting.agent, world)
        space, start, owned = loaded.space, loaded.theta, loaded.controls
        omega = loaded.configuration if given is None else given
        if not steps:
            return replace(loaded, configuration=omega, returns=None)
    with waiting("learning"):
        learned = learn(world, space, owned, omega, keys["learning"], num_steps=steps, start=start)
    by_phases = world.name in PHASES and steps is None and start is None
    _show_learning(console, learned.learning_curve, by_phases, compared)
    return replace(learned, seed=acting.seed)


def _compared(world: "ConfMDP", agent: "Agent", key: Any, console: "Console") -> dict[str, float]:
    """The agent's return beside the best known one, said and handed on."""
    from policyspace.worlds.agents import NUM_EPISODES, returns_of

    found = returns_of(agent, world, key)
    say(
        console,
        f"Mean discounted return of {NUM_EPISODES} episodes {found.agent:.4g} (standard error {found.standard_error:.1g}); "
        f"best known for what it controls {found.best_known:.4g}, {found.distance:.2g} better.",
    )
    if found.far:
        say(
            console,
            f"Warning: the agent has learned {found.learned:.0%} of what can be learned here: what it controls may not show "
            "in what it does.",
            style="yellow",
        )
    return found.to_dict()


def _show_learning(console: "Console", curve: Any, by_phases: bool, compared: bool) -> None:
    """The curve as a line of bars, and its two ends in numbers; that it did not rise, unless it is compared with others."""
    if len(curve) == 0:
        return
    few = min(10, max(1, len(curve) // 5))
    first, last = float(curve[:few].mean()), float(curve[-few:].mean())
    count = number_of(len(curve) - 1, "phase") if by_phases else number_of(len(curve), "step")
    say(console, f"Learned in {count}: mean discounted return {first:.4g} → {last:.4g}")
    say(console, sparkline(curve), style="cyan")
    if last <= first and not compared:
        say(console, "Warning: the agent did not learn: what it controls may not show in what it does.", style="yellow")


def sparkline(curve: Any, width: int = 40) -> str:
    """A curve in one line of text: the mean of each of `width` parts, as bars from its lowest to its highest."""
    import numpy as np

    means = np.array([part.mean() for part in np.array_split(np.asarray(curve), min(width, len(curve)))])
    span = float(np.ptp(means)) or 1.0
    return "".join(BARS[int(level)] for level in np.round((means - means.min()) / span * (len(BARS) - 1)))


def _demonstrations(world: "ConfMDP", agent: "Agent", seen: "Trajectories", seed: int) -> "Sample":
    """What was seen as demonstrations, with everything that made them."""
    import numpy as np

    from policyspace.data.origin import Origin

    origin = Origin(
        policy=agent.space.describe(),
        ground_truth=tuple(agent.controls),
        world=world.name,
        configuration={name: np.asarray(value).tolist() for name, value in agent.configuration.items()},
        other={"seed": seed, **({} if agent.returns is None else {"returns": agent.returns})},
    )
    names = tuple(world.action_names)
    if world.action_bounds is None:
        # An action that was never chosen has no finite parameters: it is left out, as if it did not exist.
        chosen, codes = np.unique(np.asarray(seen.actions)[np.asarray(seen.mask)], return_inverse=True)
        actions = np.zeros(np.asarray(seen.mask).shape, dtype=np.int64)
        actions[np.asarray(seen.mask)] = codes
        names, seen = tuple(names[int(code)] for code in chosen), replace(seen, actions=actions)
    return seen.pairs(world.feature_names, names, origin)


def _show_result(
    console: "Console",
    world: "ConfMDP",
    agent: "Agent",
    seen: "Trajectories",
    data: "Sample",
    paths: list[Path | None],
) -> None:
    """What was made, and what to do with it."""
    import numpy as np

    say(console, f"The agent controls {owned_in_words(agent.space, agent.controls)}.")
    mean = float(np.mean(seen.returns()))
    say(
        console,
        f"{data.num_episodes} episodes, {data.num_rows} rows, {np.mean(seen.lengths):.1f} steps and a return of "
        f"{mean:.4g} on average.",
    )
    if len(data.action_names) < len(world.action_names):
        left_out = ", ".join(name for name in world.action_names if name not in data.action_names)
        say(console, f"Never chosen, and so not in the file: {left_out}.")
    show_saved(paths)
    say(console, f"Next: policyspace identify {paths[0]}", style="dim")


# -- `policyspace watch`: a trained agent plays, and what it saw and did is written down.


@dataclass(frozen=True)
class WatchOptions:
    """Who plays, how often and how, and what is written down."""

    agent: Annotated[
        Path,
        typer.Option(
            "--agent",
            help="The agent, as stable-baselines3 saved it.",
            metavar="MODEL.zip",
        ),
    ]
    algorithm: Algorithm = None
    trust: bool = option(False, TRUST)
    episodes: int = option(100, "How many episodes to play.", "N", min=1)
    seed: int = option(0, "Same seed, same file.", "S", min=0)
    greedy: bool = option(False, "Play the best action always, instead of by the agent's own chances.")
    features: Names = option(None, "Names for the observations, in their order.", "NAME[,NAME…]")
    actions: Text = option(None, "Which one, where a step has several choices: action[0], ….", "NAME")
    out: Path = option(Path("log.parquet"), "Where to write: Parquet, CSV, Arrow or NPZ by the name.", "FILE.parquet")


@running
def watch(
    env: Annotated[
        str, typer.Argument(help="The id of a Gymnasium environment, such as CartPole-v1.", metavar="ENV_ID")
    ],
    said: WatchOptions,
) -> None:
    """Play a trained agent in a Gymnasium environment, and write down what it saw and did.

    `policyspace identify FILE` then says which observations it uses.
    """
    from policyspace.data.files import SUFFIXES, write
    from policyspace.safe_io import check_targets

    check_suffix(said.out, SUFFIXES)
    check_targets([said.out], [said.agent])
    names = split(said.features)
    if said.features is not None and not names:
        raise InputError("--features must name the observations, found nothing: leave it out for observation[0], ….")
    from policyspace.environments.saved_agents import agent_from_file
    from policyspace.environments.watching import watch as play

    agent = agent_from_file(said.agent, said.algorithm, said.trust)
    with waiting("playing"):
        data = play(
            env,
            agent,
            said.episodes,
            seed=said.seed,
            features=names or None,
            actions=said.actions,
            deterministic=said.greedy,
        )
    data = replace(data, origin=replace(data.origin, agent_file=str(said.agent)))
    write(data, said.out)
    _show_watched(data, said.out)


def _show_watched(data: "Sample", out: Path) -> None:
    """What was seen, and what to do with it."""
    console, total = new_console(), int(data.num_episodes or 1)
    say(
        console,
        f"{data.origin.agent} played {total} episodes of {data.origin.environment}: {data.num_rows} rows, "
        f"{data.num_rows / total:.1f} steps and a return of {data.recorded['reward'].sum() / total:.4g} on average.",
    )
    for caution in data.origin.cautions:
        say(console, f"Warning: {caution}", style="yellow")
    show_saved([out])
    say(console, f"Next: policyspace identify {out}", style="dim")
