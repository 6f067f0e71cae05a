"""`minigolf-curve`: what the best policies of two agents return with each putter length ω (Figure 2, left)."""

from typing import TYPE_CHECKING, Any

import numpy as np

from policyspace.experiments.means import Mean, mean_of, one_axes
from policyspace.experiments.minigolf_learning import (
    AS_PUBLISHED,
    BRIEF,
    OURS,
    PUBLISHED,
    THOROUGH,
    best_returns,
    deviation_of,
)
from policyspace.experiments.panel import Panel, Scale, Verdict
from policyspace.experiments.records import Cell, Record
from policyspace.policies.jax_setup import jax
from policyspace.worlds.minigolf import AGENT_A2, Minigolf

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Minigolf: the best putter for each agent"
RUNS = 10  # independent optimisations of a whole curve; the paper says 100 runs, and not of what
AUTHORS_HOURS = 9.3  # 30 learnings × 10 runs × 112 s

LENGTHS = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.5, 13.0, 15.0]
FEW_LENGTHS = [1.0, 2.0, 3.0, 5.0, 11.5, 15.0]
AGENTS = {"A1": frozenset(Minigolf.feature_names), "A2": AGENT_A2}
PAPER = {"A1": 5.0, "A2": 11.5}
"""The best putter lengths that the paper states."""

REFERENCE = {
    "A1": {2.0: -1.91, 3.0: -0.62, 5.0: -0.06, 7.0: -0.13, 9.0: -0.23, 11.5: -0.37, 15.0: -0.59},
    "A2": {2.0: -3.84, 3.0: -3.84, 5.0: -3.92, 7.0: -4.00, 9.0: -4.13, 11.5: -4.26, 15.0: -4.47},
}
"""Returns at σ_π = 0.01 that an independent optimisation of the same dynamics reached, on 20 000 episodes."""

EQUAL = 0.1
"""Strokes: putters whose returns differ by less are as good as each other."""

NAMES = {"A1": "A₁, sees distance and friction", "A2": "A₂, sees distance alone"}
COLOURS = {"A1": "#2f80c2", "A2": "#c0392b"}


def cells(scale: Scale) -> list[Cell]:
    """One whole curve a cell: an agent, a σ_π and a seed."""
    if scale.as_published:
        ways = [AS_PUBLISHED]
    elif scale.quick:
        ways = [BRIEF[OURS]]
    else:
        ways = [THOROUGH[OURS], THOROUGH[PUBLISHED]]
    return [
        Cell(
            "minigolf-curve",
            {
                "agent": agent,
                "learning": learning,
                "putter_lengths": FEW_LENGTHS if scale.quick else LENGTHS,
                "num_episodes": 4000 if scale.quick else 20_000,
                "seed": seed,
            },
        )
        for learning in ways
        for seed in range(scale.num_runs(RUNS, 2))
        for agent in AGENTS
    ]


def run(setting: dict[str, Any]) -> dict[str, Any]:
    """The undiscounted return of the best policy found with each putter."""
    returns = best_returns(
        setting["learning"], AGENTS[setting["agent"]], setting["putter_lengths"], jax.random.key(setting["seed"]),
        setting["num_episodes"],
    )  # fmt: skip
    return {"returns": returns}


def analyse(records: list[Record]) -> list[Panel]:
    """One panel for each σ_π and way of learning that has records of both agents."""
    groups: dict[tuple[float, str], list[Record]] = {}
    for record in records:
        learning = record.setting["learning"]
        groups.setdefault((deviation_of(learning), learning["start"]), []).append(record)
    return [_panel(*way, own) for way, own in sorted(groups.items()) if _agents_of(own) == set(AGENTS)]


def _agents_of(records: list[Record]) -> set[str]:
    return {record.setting["agent"] for record in records}


def curves(records: list[Record]) -> dict[str, tuple[list[float], np.ndarray]]:
    """For each agent the putter lengths [p] and the returns [runs, p]."""
    found = {}
    for agent in AGENTS:
        own = [r for r in records if r.setting["agent"] == agent]
        found[agent] = own[0].setting["putter_lengths"], np.array([r.result["returns"] for r in own])
    return found


def shortfall(lengths: list[float], returns: np.ndarray, length: float) -> Mean:
    """How much less than at the best putter an agent returns at another, curve by curve.

    The best is the luckiest of many, too: its interval holds for all comparisons with one putter at once (Bonferroni).
    """
    best = int(np.argmax(returns.mean(axis=0)))
    return mean_of(list(returns[:, best] - returns[:, lengths.index(length)]), 1 - 0.05 / (len(lengths) - 1))


def judge(found: dict[str, tuple[list[float], np.ndarray]]) -> tuple[Verdict, str]:
    """The paper's ω* of each agent, by the simultaneous 95 % intervals of the differences from the best putter.

    It holds if it is the best, or if the best surely returns no more than 0.1 above it; it does not if the best surely
    returns more; else these runs cannot tell.
    """
    said, held = [], []
    for agent, (lengths, returns) in found.items():
        best = int(np.argmax(returns.mean(axis=0)))
        loss = shortfall(lengths, returns, PAPER[agent])
        own = lengths[best] == PAPER[agent]
        status = "holds" if own or loss.high < EQUAL else "does not hold" if loss.low > 0 else "cannot be told"
        held.append(status)
        more = "" if own else f", {loss.words} more than at {PAPER[agent]:g}"
        said.append(
            f"{_subscript(agent)}'s optimum at {PAPER[agent]:g} {status}: best at {lengths[best]:g} with "
            f"{mean_of(list(returns[:, best])).words}{more}."
        )
    agreed: dict[str, Verdict] = {"holds": "holds", "does not hold": "does not hold"}
    verdict = agreed.get(held[0], "holds partly") if len(set(held)) == 1 else "holds partly"
    return verdict, " ".join(said)


def _subscript(agent: str) -> str:
    return {"A1": "A₁", "A2": "A₂"}[agent]


def _panel(deviation: float, start: str, records: list[Record]) -> Panel:
    found = curves(records)
    verdict, why = judge(found)
    learning = records[0].setting["learning"]
    warm = "the best of fresh starts and of warm ones from both neighbours along ω"
    how = (
        warm
        if "warm" in learning
        else "100 steps of 100 episodes, as published"
        if start == "uniform"
        else "one brief learning a putter"
    )
    lengths = found["A1"][0]
    means = {agent: [mean_of(list(column)) for column in returns.T] for agent, (_, returns) in found.items()}
    reference = REFERENCE if deviation == OURS else {}
    return Panel(
        name=f"minigolf-curve-{'as-published' if start == 'uniform' else f'{deviation:g}'}",
        title=f"Return of the best policy with each putter, σ_π = {deviation:g}",
        claim="The best putter depends on the policy space: its length is 5 for A₁, which sees the friction, 11.5 for A₂.",
        verdict=verdict,
        why=f"{why} Each curve is one optimisation ({how}); {found['A1'][1].shape[0]} for each agent.",
        figure=draw(found, reference, f"Minigolf, σ_π = {deviation:g}: return against putter length"),
        columns=(
            "putter length ω",
            *(f"{_subscript(agent)} (95 %)" for agent in AGENTS),
            "reference A₁",
            "reference A₂",
        ),
        rows=[
            (
                f"{length:g}",
                *(means[agent][i].words for agent in AGENTS),
                *(_known(reference.get(agent, {}).get(length)) for agent in AGENTS),
            )
            for i, length in enumerate(lengths)
        ],
        numbers={
            "policy_deviation": deviation,
            "putter_lengths": lengths,
            **{agent: [mean.numbers for mean in means[agent]] for agent in AGENTS},
            "best": {agent: own[int(np.argmax(returns.mean(axis=0)))] for agent, (own, returns) in found.items()},
        },
    )


def _known(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}".replace("-", "−")


def draw(
    found: dict[str, tuple[list[float], np.ndarray]], reference: dict[str, dict[float, float]], title: str
) -> "Figure":
    """Mean curves with their 95 % bands, every single curve faint behind; the best putter and the paper's are marked."""
    figure, axes = one_axes(title)
    floor = min(-5.0, 1.08 * min(float(returns.mean(axis=0)[1:].min()) for _, returns in found.values()))
    for agent, (lengths, returns) in found.items():
        colour, means = COLOURS[agent], [mean_of(list(column)) for column in returns.T]
        average = np.array([mean.value for mean in means])
        margin = np.array([mean.margin or 0.0 for mean in means])
        axes.plot(lengths, returns.T, color=colour, alpha=0.2, linewidth=0.7)
        axes.fill_between(lengths, average - margin, average + margin, color=colour, alpha=0.15, linewidth=0)
        axes.plot(lengths, average, color=colour, linewidth=2)
        best = int(np.argmax(average))
        axes.plot(lengths[best], average[best], "o", color=colour, markersize=8, zorder=4)
        axes.annotate(
            f"best at {lengths[best]:g}", (lengths[best], average[best]), xytext=(5, 9), textcoords="offset points",
            ha="left", color=colour, fontsize=9,
        )  # fmt: skip
        said = float(np.interp(PAPER[agent], lengths, average))
        axes.plot(PAPER[agent], said, "D", markerfacecolor="white", color=colour, markersize=7, zorder=3)
        if agent in reference:
            axes.plot(*zip(*reference[agent].items(), strict=True), "x", color=colour, markersize=6, zorder=5)
        # Above and to the right of one line, below and to the left of the other: clear of both, flat or falling.
        above = agent == "A1"
        axes.annotate(
            NAMES[agent], (7.5, float(np.interp(7.5, lengths, average))), xytext=(6, 12) if above else (-6, -24),
            textcoords="offset points", ha="left" if above else "right", color=colour, fontsize=9.5, fontweight="bold",
        )  # fmt: skip
    axes.set_ylim(floor, 0.8)
    axes.set_xlim(1, 15)
    axes.set_xticks([1, 3, 5, 7, 9, 11, 13, 15])
    crosses = "; crosses: an independent optimisation" if reference else ""
    axes.set_xlabel(f"putter length ω (diamonds: the optimum that the paper states{crosses})", fontsize=9)
    axes.set_ylabel("mean undiscounted return", fontsize=9)
    return figure
