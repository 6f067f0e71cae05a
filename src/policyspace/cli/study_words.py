"""What a study asks for, and where it stands, in words."""

from typing import TYPE_CHECKING

from policyspace.cli.rounds import level_in_words, show_round
from policyspace.cli.screen import new_console, say
from policyspace.printable import number_of

if TYPE_CHECKING:
    from policyspace.configuration.request import Request
    from policyspace.configuration.schedule import Schedule
    from policyspace.configuration.status import Status


def nothing_left(status: "Status") -> str:
    """Why the study is at its end."""
    return f"Nothing is left to ask: {status.finished}."


def show_request(world: str, schedule: "Schedule", request: "Request") -> None:
    """Where to observe the agent next, why, and what that would settle."""
    from policyspace.report.configuration_words import configuration_in_words

    console = new_console()
    say(
        console,
        f"Round {request.number + 1} of at most {schedule.num_rounds}: {number_of(request.num_episodes, 'episode')} "
        f"({level_in_words(schedule, request.number)})",
        style="bold",
    )
    say(console, f"Configuration: {configuration_in_words(world, request.configuration)}.")
    for name, value in request.configuration.items():
        say(console, f"  {name} = {value}", style="dim")
    say(console, f"Why: {request.why}")
    say(console, f"What it would settle: {_settles(request)}")
    for warning in request.warnings:
        say(console, f"Warning: {warning}", style="yellow")


def _settles(request: "Request") -> str:
    """What the forecasts say, most promising first."""
    if not request.forecasts:
        known = "nothing is known yet" if request.design is None else "nothing can be forecast of networks and e-values"
        count = len(request.asked_for)
        return f"{known}; {number_of(count, 'unit')} {'is' if count == 1 else 'are'} tested."
    shown = sorted((f for f in request.forecasts if f.power >= 0.05), key=lambda f: -f.power)
    said = ", ".join(f"{f.unit} ({_share(f.power)}; 80% from {f.episodes:.0f} episodes)" for f in shown[:8])
    more = f" and {len(shown) - 8} more" if len(shown) > 8 else ""
    rest = len(request.forecasts) - len(shown)
    sizes = [f.detectable_effect for f in request.forecasts if f not in shown and f.detectable_effect < 10]
    known = f"if the agent keeps its weights, the chance to show {said}{more}" if shown else ""
    some = "" if len(sizes) == rest else f" for {len(sizes)} of them"
    reach = f", but{some} weights of size {max(sizes):.2g} would show" if sizes else ""
    unknown = f"of {number_of(rest, 'unit')} nothing has been seen so far{reach}" if rest else ""
    return "; ".join(part for part in (known, unknown) if part) + "."


def _share(power: float) -> str:
    return "> 99%" if power > 0.99 else f"{power:.0%}"


def show_status(status: "Status") -> None:
    """What is decided, round by round, and what is open."""
    console, settings = new_console(), status.settings
    say(console, status.sentence, style="bold")
    for result, moment in zip(status.rounds, status.reported_at, strict=True):
        show_round(console, settings["world_name"], status.schedule, result, status.truth, settings["initial"])
        say(console, f"  reported {moment}", style="dim")
    say(console, status.schedule.promise(settings["design"]), style="dim")
    if status.finished is not None:
        say(console, nothing_left(status))
    elif status.request is not None:
        say(console, f"Asked and not yet reported: round {status.request.number + 1}.")
