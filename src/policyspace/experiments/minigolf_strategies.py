"""`minigolf-strategies`: what an agent blind to the friction returns with a putter chosen for it (Figure 2, right)."""

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from policyspace.experiments.means import INK, Mean, mean_of, one_axes
from policyspace.experiments.minigolf_learning import (
    AS_PUBLISHED,
    BRIEF,
    OURS,
    PUBLISHED,
    THOROUGH,
    best_learned,
    best_returns,
    deviation_of,
    golf,
    learned,
    mean_return,
)
from policyspace.experiments.panel import Panel, Scale, Verdict
from policyspace.experiments.records import Cell, Record
from policyspace.identification import simplified
from policyspace.policies.jax_setup import jax
from policyspace.worlds.confmdp import Key, rollout
from policyspace.worlds.minigolf import AGENT_A2, Minigolf

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Minigolf: choosing the putter by what was identified"
RUNS = 100
AUTHORS_HOURS = 15.6  # five learnings a run (one to watch, one for each strategy) × 100 runs × 112 s

LENGTHS = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 9.0, 11.5, 15.0]
FEW_LENGTHS = [1.5, 2.0, 3.0, 5.0, 11.5]
STRATEGIES = {
    "uniform": "(i) at random",
    "full": "(ii) best for A₁, that sees all",
    "identified": "(iii) best for what was identified",
    "oracle": "(iv) best for A₂, by an oracle",
}
COLOURS = {"uniform": "#9aa5b1", "full": "#c0392b", "identified": "#0b6e4f", "oracle": "#2f80c2"}

NOTABLE = 0.05
"""The part of the oracle's return below which a difference is none to speak of."""


def cells(scale: Scale) -> list[Cell]:
    """One agent a cell: A₂ with a seed and a σ_π."""
    if scale.as_published:
        ways = [(AS_PUBLISHED, AS_PUBLISHED)]
    elif scale.quick:
        ways = [(BRIEF[OURS], BRIEF[OURS])]
    else:
        ways = [(BRIEF[deviation], THOROUGH[deviation]) for deviation in (OURS, PUBLISHED)]
    return [
        Cell(
            "minigolf-strategies",
            {
                "observed_learning": observed,
                "learning": learning,
                "putter_lengths": FEW_LENGTHS if scale.quick else LENGTHS,
                "curve_seed": 1_000_000,
                "curve_episodes": 4000 if scale.quick else 20_000,
                "num_observed": 100,
                "significance": 0.01,
                "correction": "bonferroni" if scale.as_published else "holm",
                "num_episodes": 4000 if scale.quick else 10_000,
                "seed": seed,
            },
        )
        for observed, learning in ways
        for seed in range(scale.num_runs(RUNS, 4))
    ]


def run(setting: dict[str, Any]) -> dict[str, Any]:
    """A₂ is watched with a putter drawn uniformly, each strategy chooses one, and A₂ learns with that anew."""
    start, watching, acting, anew, measuring = jax.random.split(jax.random.key(setting["seed"]), 5)
    learning = setting["learning"]
    world, space = golf(deviation_of(learning))
    drawn = float(world.random_configuration(start)["putter_length"])
    theta = learned(setting["observed_learning"], AGENT_A2, drawn, watching)
    seen = rollout(world, space, theta, {"putter_length": drawn}, acting, setting["num_observed"])
    pairs = seen.pairs(world.feature_names, world.action_names)
    selected = set(simplified(space, pairs, setting["significance"], setting["correction"]).core) & set(
        world.feature_names
    )

    chosen = {
        "uniform": drawn,
        "full": _best_length(setting, Minigolf.feature_names),
        "identified": _best_length(setting, selected),
        "oracle": _best_length(setting, AGENT_A2),
    }
    # The same putter is the same learning: strategies that agree are compared without noise between them.
    returns = {length: _learned_return(setting, length, anew, measuring) for length in set(chosen.values())}
    return {
        "selected": sorted(selected),
        "putter_lengths": chosen,
        "returns": {strategy: returns[length] for strategy, length in chosen.items()},
    }


def _learned_return(setting: dict[str, Any], length: float, anew: Key, measuring: Key) -> float:
    """What A₂ returns when it has learned with a putter."""
    learning, num_episodes = setting["learning"], setting["num_episodes"]
    choosing, measuring = jax.random.split(measuring)
    theta = best_learned(learning, AGENT_A2, length, (anew, choosing), num_episodes)
    return mean_return(deviation_of(learning), theta, length, measuring, num_episodes)


def _best_length(setting: dict[str, Any], controls: Any) -> float:
    """The putter whose best policy inside a space returns most: a function of the space and the setting alone."""
    names = ("learning", "putter_lengths", "curve_seed", "curve_episodes")
    return _best_of(json.dumps({name: setting[name] for name in names}), tuple(sorted(controls)))


@lru_cache
def _best_of(setting: str, controls: tuple[str, ...]) -> float:
    how = json.loads(setting)
    lengths = how["putter_lengths"]
    key = jax.random.key(how["curve_seed"])
    returns = best_returns(how["learning"], controls, lengths, key, how["curve_episodes"])
    return float(lengths[int(np.argmax(returns))])


def analyse(records: list[Record]) -> list[Panel]:
    """One panel for each σ_π and way of learning."""
    groups: dict[tuple[float, str], list[Record]] = {}
    for record in records:
        learning = record.setting["learning"]
        groups.setdefault((deviation_of(learning), learning["start"]), []).append(record)
    return [_panel(*way, own) for way, own in sorted(groups.items())]


def returns_of(records: list[Record]) -> dict[str, np.ndarray]:
    """The returns [runs] by each strategy, runs in the same order."""
    return {name: np.array([r.result["returns"][name] for r in records]) for name in STRATEGIES}


def judge(returns: dict[str, np.ndarray]) -> tuple[Verdict, str]:
    """Both halves of the claim, by 95 % intervals of differences on the same agents.

    (iii) is comparable with (iv) unless it is significantly lower, by a twentieth of the oracle's return or more; it is
    notably higher than (ii) if it is significantly higher, by as much or more.
    """
    notable = NOTABLE * abs(float(returns["oracle"].mean()))
    to_oracle = mean_of(list(returns["identified"] - returns["oracle"]))
    to_full = mean_of(list(returns["identified"] - returns["full"]))
    comparable = to_oracle.high >= 0 or to_oracle.value > -notable
    higher = to_full.low > 0 and to_full.value >= notable
    verdict: Verdict = "holds" if comparable and higher else "holds partly" if comparable or higher else "does not hold"
    return verdict, (
        f"The identified space differs from the oracle by {to_oracle.words}, which is "
        f"{'' if comparable else 'not '}comparable, and from the wrong space by {to_full.words}, which is "
        f"{'' if higher else 'not '}notably higher (notable: significant and at least {NOTABLE:.0%} of the oracle's return)."
    )


def _panel(deviation: float, start: str, records: list[Record]) -> Panel:
    returns = returns_of(records)
    verdict, why = judge(returns)
    means = {name: mean_of(list(values)) for name, values in returns.items()}
    lengths = {name: [r.result["putter_lengths"][name] for r in records] for name in STRATEGIES}
    exact = sum(set(r.result["selected"]) == AGENT_A2 for r in records)
    published = start == "uniform"
    return Panel(
        name=f"minigolf-strategies-{'as-published' if published else f'{deviation:g}'}",
        title=f"A₂'s return with a putter chosen in four ways, σ_π = {deviation:g}",
        claim="Choosing the putter for the identified space does as well as an oracle that knows the space, and notably "
        "better than choosing it for a space that the agent does not have.",
        verdict=verdict,
        why=f"{why} From {records[0].setting['num_observed']} episodes, A₂'s features were identified exactly in {exact} of "
        f"{len(records)} runs.",
        figure=draw(returns, means, f"Minigolf, σ_π = {deviation:g}: A₂'s return by choice of putter"),
        columns=("strategy", "runs", "mean return (95 %)", "putter lengths"),
        rows=[
            (label, str(len(records)), means[name].words, _range(lengths[name])) for name, label in STRATEGIES.items()
        ],
        numbers={
            "policy_deviation": deviation,
            "identified_exactly": exact,
            **{name: {**means[name].numbers, "putter_length": float(np.mean(lengths[name]))} for name in STRATEGIES},
        },
    )


def _range(lengths: list[float]) -> str:
    """One length, or the median and the range of several."""
    low, middle, high = np.min(lengths), np.median(lengths), np.max(lengths)
    return f"{middle:.3g}" if low == high else f"{middle:.3g} ({low:.3g}–{high:.3g})"


def draw(returns: dict[str, np.ndarray], means: dict[str, Mean], title: str) -> "Figure":
    """Every run a faint dot, the mean with its 95 % interval on top, its number on the right."""
    figure, axes = one_axes(title, (7.2, 3.0))
    shown = np.concatenate(list(returns.values()))
    left = float(np.quantile(shown, 0.02))
    for y, name in enumerate(STRATEGIES):
        colour, mean, values = COLOURS[name], means[name], returns[name]
        # Runs spread out evenly by rank, so that the picture is the same every time.
        height = y + 0.25 * np.sin(2.4 * np.arange(len(values)))
        axes.scatter(np.maximum(values, left), height, s=9, color=colour, alpha=0.3, linewidths=0)
        margin = mean.margin or 0.0
        axes.plot([mean.value - margin, mean.value + margin], [y, y], color=colour, linewidth=3, solid_capstyle="round")
        axes.plot(mean.value, y, "o", color=colour, markeredgecolor="white", markersize=9, zorder=4)
        axes.annotate(
            mean.words, (1, y), xycoords=("axes fraction", "data"), xytext=(8, 0), textcoords="offset points",
            va="center", fontsize=9.5, color=INK, annotation_clip=False,
        )  # fmt: skip
    axes.set_yticks(range(len(STRATEGIES)), list(STRATEGIES.values()))
    axes.set_ylim(len(STRATEGIES) - 0.5, -0.5)
    axes.set_xlabel(
        "mean undiscounted return, one dot a run (the worst fiftieth of the runs stand at the left edge)", fontsize=9
    )
    return figure
