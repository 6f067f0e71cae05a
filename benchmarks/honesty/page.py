"""The table of all runs as a page in Markdown."""

from collections.abc import Sequence

import numpy as np
from policyspace_paper.estimates import Rate

from benchmarks.honesty import SCENARIOS
from benchmarks.honesty.runs import SIGNIFICANCE, Run

HEAD = (
    "| agent | test | runs | false among guaranteed (95 %) | any false | used inputs found | guaranteed "
    "| no answer | CPU s a run |"
)
LISTED = 3  # powers are listed one by one up to so many used inputs


def page(runs: Sequence[Run], command: str) -> str:
    """What the agents are, and one row an agent and test; error rates surely above the nominal level are bold."""
    cells = [cell for cell in SCENARIOS if any(run.cell == cell for run in runs)]
    seeds = [run.seed for run in runs]
    versions = {run.version for run in runs}
    by = f"the code {', '.join(sorted(versions))}" if all(versions) else "earlier code, whose version was not kept"
    lines = [
        "# How often each test is wrong, on agents that break its assumptions",
        "",
        "`false among guaranteed`: of the answers that came with a guarantee, the share in which an input was said to "
        f"be used that the agent does not use; nominal {SIGNIFICANCE:g}, Holm over inputs. Bold: surely more often than "
        "that (the exact 95 % interval lies above it). `any false`: of all logs, with a guarantee or without. "
        "`guaranteed`: the share of logs whose answer came with a guarantee; statsmodels states its p-values "
        "whenever it has any. `no answer` counts as nothing found. "
        "`statsmodels`: OLS or MNLogit, Wald tests clustered by subject or episode where there are any.",
        "",
        f"Seeds {min(seeds)} to {max(seeds)}. Counted by {by}. Remade by `{command}`.",
        "",
        *(f"- **{cell}**: {SCENARIOS[cell](0).words}" for cell in cells),
        "",
        HEAD,
        "|---" * (HEAD.count("|") - 1) + "|",
    ]
    for cell in cells:
        own = [run for run in runs if run.cell == cell]
        for column in dict.fromkeys(run.column for run in own):
            lines.append(_row(cell, column, [run for run in own if run.column == column]))
    return "\n".join(lines) + "\n"


def _row(cell: str, column: str, runs: list[Run]) -> str:
    n = len(runs)
    guaranteed = [run for run in runs if run.promised]
    error = "–"
    if guaranteed:
        rate = Rate(sum(run.any_false for run in guaranteed), len(guaranteed), column, SIGNIFICANCE)
        error = f"**{rate.words}**" if rate.verdict == "too often" else rate.words
    false, promised, refused = (sum(kind) / n for kind in zip(*map(_counts, runs), strict=True))
    seconds = sum(run.seconds for run in runs) / n
    found = f"{error} | {false:.3f} | {_power(runs)}"
    return f"| {cell} | {column} | {n} | {found} | {promised:.2f} | {refused:.2f} | {seconds:.3f} |"


def _counts(run: Run) -> tuple[bool, bool, bool]:
    """Whether anything was false, promised, refused."""
    return run.any_false, run.promised, bool(run.refused)


def _power(runs: list[Run]) -> str:
    """How often each used input was found; for many inputs their mean and the least of them."""
    used = sorted(runs[0].used, key=lambda name: (len(name), name))
    power = {name: sum(name in run.found for run in runs) / len(runs) for name in used}
    if len(used) <= LISTED:
        return ", ".join(f"{name} {share:.2f}" for name, share in power.items())
    least = min(power, key=lambda name: power[name])
    return f"mean {np.mean(list(power.values())):.2f}, least {least} {power[least]:.2f}"
