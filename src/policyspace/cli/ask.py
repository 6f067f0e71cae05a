"""`policyspace ask`: a trained agent is asked which of its inputs it reacts to."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from policyspace.cli.console import (
    JsonOut,
    Report,
    check_suffix,
    check_targets,
    deliver,
    running,
    show,
    waiting,
    write_report,
)
from policyspace.cli.options import Names, given, option, pairs, split
from policyspace.cli.worlds import TRUST, Algorithm
from policyspace.errors import InputError
from policyspace.runtime import check_seed

if TYPE_CHECKING:
    from policyspace.asking import AskedAnswer


@dataclass(frozen=True)
class AskedOptions:
    """Who is asked, and where it plays."""

    agent: Annotated[
        str,
        typer.Option(
            "--agent",
            help="The agent: a file of stable-baselines3, torch, ONNX or scikit-learn, a folder of RLlib, or your function "
            "of an observation.",
            metavar="MODEL|module:function",
        ),
    ]
    algorithm: Algorithm = None
    trust: bool = option(False, TRUST)
    greedy: bool = option(False, "Ask for the most probable action, instead of the agent's own chances.")
    vecnormalize: Path | None = option(None, "Statistics by which observations were normalised.", "FILE.pkl")
    frame_stack: int | None = option(None, "How many frames an observation holds.", "N", min=2)
    features: Names = option(None, "Names for the observations, in their order.", "NAME[,NAME…]")
    groups: Names = option(
        None,
        "Inputs that are read together; of an image the kind of its groups, or so many regions.",
        "NAME=INPUT|INPUT[,…]|channels|frames|symbols|ROWSxCOLUMNS",
    )


@dataclass(frozen=True)
class QuestionOptions:
    """How it is asked."""

    way: str = option(
        "auto", "How it is asked; by default the first way that the agent allows.", "auto|inside|paired|played"
    )
    log: Path | None = option(None, "Ask in the states of this log, instead of those of its own play.", "FILE")
    episodes: int | None = option(None, "How many episodes it plays.", "N", min=1)
    likely: bool = option(True, "Ask about likely readings too.", None, "--likely/--no-likely")
    memory: int | None = option(None, "How many steps later an agent with a memory may react.", "N", min=0)
    audit: bool = option(False, "Set what `identify` says from the log of its play beside what it says itself.")
    returns: int = option(0, "Find the return that each input is worth, in so many pairs of episodes.", "PAIRS", min=0)
    significance: float = option(
        0.05, "Of all bounds on inputs that it never reacted to, or of any false 'reacts'.", "δ"
    )
    correction: str = option(
        "closed", "By pairs and in play: δ is the chance of any false 'reacts', or their expected share.", "closed|bh"
    )
    forecast: bool = option(False, "Say only what asking will cost, and what it can find.")
    budget: int | None = option(
        None, "Most questions about each input and kind of reading; of an agent that plays most steps.", "N", min=1
    )
    seed: int = option(0, "Same seed, same answer.", "S", min=0)


@dataclass(frozen=True)
class AnswerOptions:
    """Where the answer is saved."""

    json: JsonOut = None
    plot: Path | None = option(None, "Save a picture of the effects (PNG, SVG or PDF).", "FILE")
    report: Report = None
    out: Path | None = option(None, "Save what it saw and did: a log for `policyspace identify`.", "FILE.parquet")


@running
def ask(
    env: Annotated[
        str,
        typer.Argument(help="A Gymnasium id, such as CartPole-v1, or your function that makes one.", metavar="ENV"),
    ],
    who: AskedOptions,
    how: QuestionOptions,
    wanted: AnswerOptions,
) -> None:
    """Ask a trained agent which of its inputs it reacts to, by changing them.

    Its verdicts rest on what was asked, not on assumptions about the agent; `policyspace identify` is for logs alone.
    """
    from policyspace.data.files import SUFFIXES, write

    check_seed(how.seed)
    if wanted.out is not None:
        check_suffix(wanted.out, SUFFIXES)
    inputs = [who.agent if ":" not in who.agent else None, who.vecnormalize, how.log]
    check_targets([wanted.plot], wanted.json, inputs, wanted.out, wanted.report)
    if who.features is not None and not split(who.features):
        raise InputError("--features must name the observations, found nothing: leave it out.")
    if how.forecast:
        for other in given(wanted, "json"):
            raise InputError(f"--forecast asks nothing, found {other}: leave one out.")
    from policyspace.asking import ask as answer_of
    from policyspace.asking.agents import agent_at
    from policyspace.asking.states import as_trained
    from policyspace.asking.ways import forecast
    from policyspace.environments.setters import environment

    with waiting("asking"):
        agent = agent_at(who.agent, who.algorithm, who.trust)
        make = environment(env)[1]

        def place() -> Any:
            return as_trained(make(), agent, who.vecnormalize, who.frame_stack, who.trust)

        wrapped = who.vecnormalize is not None or who.frame_stack is not None
        where = place if wrapped else env
        said = {
            "way": how.way,
            "features": split(who.features) or None,
            "groups": groups_of(who.groups),
            "episodes": how.episodes,
            "redraw": ("any", "likely") if how.likely else ("any",),
            "memory": how.memory,
            "significance": how.significance,
            "correction": how.correction,
            "budget": how.budget,
            "deterministic": who.greedy,
            "seed": how.seed,
        }
        if how.forecast:
            before = forecast(agent, where, how.log, **said)
        else:
            found = answer_of(agent, where, how.log, returns=how.returns, **said)
    if how.forecast:
        deliver(before.to_json, wanted.json, lambda: show(before, ()))
        return
    if wanted.out is not None:
        write(found.log, wanted.out)
    if wanted.plot is not None:
        from policyspace.asking.page import plot_effects

        plot_effects(found, wanted.plot)
    if how.audit:
        from policyspace.asking.comparison import audit

        with waiting("watching"):
            both = audit(found)
        write_report(both, wanted.report)
        styles = ["red" if group.agreement == "false" else "" for group in both.groups]
        deliver(both.to_json, wanted.json, lambda: show(both, (), styles), wanted.plot, wanted.report, wanted.out)
        return
    write_report(found, wanted.report)
    deliver(found.to_json, wanted.json, lambda: show_answer(found), wanted.plot, wanted.report, wanted.out)


def show_answer(found: "AskedAnswer") -> None:
    """The answer on the screen: a sentence, the table, what must be read with it."""
    colours = {"reacts": "green", "barely": "yellow"}
    show(found, ("any, %", "likely, %", "return lost"), [colours.get(group.verdict, "dim") for group in found.groups])


def groups_of(given: list[str] | None) -> Any:
    """Inputs by the name of their group from NAME=INPUT|INPUT, or what an image is divided into."""
    names = split(given)
    if not names:
        return None
    if len(names) == 1 and "=" not in names[0]:
        rows, cross, columns = names[0].partition("x")
        if cross and rows.isdigit() and columns.isdigit():
            return int(rows), int(columns)
        if names[0] in ("channels", "frames", "symbols"):
            return names[0]
        raise InputError(
            f"--groups must be such as 'pose=x|y', or of an image channels, frames, symbols or 4x4, found '{names[0]}'."
        )
    found = pairs("--groups", "must be such as 'pose=x|y|angle'", names)
    return {name: [part.strip() for part in inputs.split("|")] for name, inputs in found.items()}
