"""What `configure` and `study` share about Gymnasium environments: the options that name one, and who acts in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from policyspace.cli import options
from policyspace.errors import InputError

if TYPE_CHECKING:
    from policyspace.worlds.gymnasium_world import GymnasiumWorld

Env = Annotated[
    str | None,
    typer.Option("--env", help="A Gymnasium id, or your function that makes one.", metavar="ENV_ID|module:function"),
]


@dataclass(frozen=True)
class EnvironmentOptions:
    """An environment, what can be set in it, and how."""

    env: Env = None
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            "--parameter", help="What can be set in the environment, between bounds.", metavar="NAME=LOW:HIGH[:DEFAULT]"
        ),
    ] = None
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by",
            help="How a parameter reaches it, if not as found out.",
            metavar="NAME=keyword|attribute|options|make",
        ),
    ] = None
    names: Annotated[
        list[str] | None, typer.Option("--names", help="Of the numbers of an observation.", metavar="NAME,…")
    ] = None

    def world(self) -> "GymnasiumWorld | None":
        """The environment that is meant, if one is."""
        if self.env is None:
            said = [f"--{word}" for word in ("parameter", "by", "names") if getattr(self, word)]
            if said:
                raise InputError(f"{said[0]} belongs to an environment, found none: name it with --env.")
            return None
        from policyspace.worlds.gymnasium_world import GymnasiumWorld

        parameters = {name: _bounds(name, text) for name, text in _pairs("--parameter", self.parameter)}
        ways = dict(_pairs("--by", self.by))
        return GymnasiumWorld.of(self.env, parameters, options.split(self.names) or None, ways)


@dataclass(frozen=True)
class ActorOptions:
    """Who acts in an environment."""

    agent: Annotated[
        str | None,
        typer.Option(
            "--agent",
            help="Acts in --env: a model of stable-baselines3, or your function of an observation.",
            metavar="MODEL.zip|module:function",
        ),
    ] = None
    learn: Annotated[
        str | None,
        typer.Option(
            "--learn", help="Trains an agent in --env in every round: your learn(env).", metavar="module:function"
        ),
    ] = None

    def actors(self) -> dict[str, Any]:
        """The arguments of `GymnasiumWorld.observe`."""
        from policyspace.worlds.own_code import imported
        from policyspace.worlds.player import agent_from_file

        agent = self.agent
        if agent is not None:
            agent = imported(agent, "the agent") if ":" in agent else agent_from_file(agent)
        return {
            "agent": agent,
            "learn": None if self.learn is None else imported(self.learn, "what learns"),
        }


def _pairs(option: str, given: Sequence[str] | None) -> list[tuple[str, str]]:
    pairs = [text.partition("=") for text in given or ()]
    for name, equals, value in pairs:
        if not name or not equals or not value:
            raise InputError(f"{option} is written NAME=…, found '{name}{equals}{value}': correct it.")
    names = [name for name, _, _ in pairs]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InputError(f"{option} names '{twice[0]}' twice: give it once.")
    return [(name, value) for name, _, value in pairs]


def _bounds(name: str, text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(":")]
    except ValueError as error:
        raise InputError(f"--parameter {name} needs bounds LOW:HIGH, found '{text}': write gravity=5:15.") from error
