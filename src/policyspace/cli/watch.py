"""`policyspace watch`: a trained agent plays, and what it saw and did is written down."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from policyspace.cli.bundled import option
from policyspace.cli.environments import Algorithm
from policyspace.cli.options import Names, Text
from policyspace.cli.running import running, waiting
from policyspace.cli.saving import check_suffix
from policyspace.cli.screen import new_console, say, show_saved
from policyspace.cli.typed_values import split
from policyspace.errors import InputError

if TYPE_CHECKING:
    from policyspace.data.demonstrations import Demonstrations


@dataclass(frozen=True)
class WatchOptions:
    """Who plays, how often and how, and what is written down."""

    agent: Annotated[
        Path,
        typer.Option(
            "--agent",
            help="The agent, as stable-baselines3 saved it. Such a file can run code when it is opened: take only "
            "those that you trust.",
            metavar="MODEL.zip",
        ),
    ]
    algorithm: Algorithm = None
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
    from policyspace.data.readers import SUFFIXES, write
    from policyspace.data.whole_file import check_targets

    check_suffix(said.out, SUFFIXES)
    check_targets([said.out], [said.agent])
    names = split(said.features)
    if said.features is not None and not names:
        raise InputError("--features must name the observations, found nothing: leave it out for observation[0], ….")
    from policyspace.environments.player import agent_from_file
    from policyspace.environments.watching import watch as play

    agent = agent_from_file(said.agent, said.algorithm)
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
    write(data, said.out)
    _show_result(data, said.out)


def _show_result(data: "Demonstrations", out: Path) -> None:
    """What was seen, and what to do with it."""
    console, total = new_console(), int(data.num_episodes or 1)
    say(
        console,
        f"{data.metadata['agent']} played {total} episodes of {data.metadata['environment']}: {data.num_pairs} pairs, "
        f"{data.num_pairs / total:.1f} steps and a return of {data.recorded['reward'].sum() / total:.4g} on average.",
    )
    for caution in data.metadata.get("cautions", ()):
        say(console, f"Warning: {caution}", style="yellow")
    show_saved([out])
    say(console, f"Next: policyspace identify {out}", style="dim")
