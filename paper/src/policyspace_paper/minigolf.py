"""`minigolf-curve` and `minigolf-training`: how golfers learn, and what each putter returns (Figure 2)."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

import numpy as np
import polars as pl

from policyspace.families.base import PolicySpace
from policyspace.families.jax_backend import jax
from policyspace.report.figures import AMBER, BLUE, DASHED, GREY, INK, PURPLE, RED
from policyspace.worlds.agents import learn
from policyspace.worlds.base import Key
from policyspace.worlds.confmdp import rollout
from policyspace.worlds.minigolf import AGENT_A2, Minigolf
from policyspace_paper.estimates import Mean, groups, mean_of, means, paired, tidy
from policyspace_paper.execution import Experiment, M, Procedure, Record, RunSetting, RunSize, S
from policyspace_paper.panels import FEWEST, Claim, ClaimPart, Panel, judged
from policyspace_paper.plots import Plot, draw
from policyspace_paper.printed import LITERAL, procedures, settings_panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# -- How the golfers of the minigolf experiments learn, and what their policies return.

Stage = list[Any]
"""σ_π, steps, episodes a step, Adam's first rate and, unless it is zero, what is left of it at the end."""


class GolfLearning(TypedDict):
    """How golfers learn: from which weights, through which stages, and what else is tried."""

    start: str  # "safe" strokes every ball equally, so softly that none is lost but by chance; "uniform" is the paper's
    stages: Sequence[Stage]
    direct: NotRequired[Stage]  # instead of all stages
    warm: NotRequired[Stage]  # from the agents of neighbouring putters


OURS, PUBLISHED = 0.01, 0.1
"""σ_π: ours, and the root of the Σ = 0.01 that the paper writes."""

# An agent explores widely at first, then ever less. At the first σ_π the return is smooth in θ. Wide exploration leads an
# agent that sees the friction to its best policies, and one that does not past them: THOROUGH therefore learns "direct",
# too, and keeps the better. Returns at ω = 3, 5, 11.5 of the agent with all features, and of the one with x and √x:
#   best known  −0.62 −0.06 −0.37   −3.84 −3.92 −4.26
#   LEARNING    −0.83 −0.08 −0.41   −3.88 −3.95 −4.30
#   BY_STAGES   −0.62 −0.08 −0.43   −3.94 −4.08 −4.38
#   THOROUGH    −0.63 −0.09 −0.48   (at 2, 5, 10:) −3.73 −3.91 −4.23, all before warm starts
THOROUGH: Mapping[float, GolfLearning] = {
    OURS: {
        "start": "safe",
        "stages": [[0.1, 500, 200, 0.02], [0.04, 500, 200, 0.01], [0.01, 1000, 200, 0.003]],
        "direct": [0.01, 1500, 400, 0.002],
        "warm": [0.01, 400, 200, 0.002],
    },
    PUBLISHED: {"start": "safe", "stages": [[0.1, 1000, 200, 0.01]], "warm": [0.1, 400, 200, 0.005]},
}
BY_STAGES: Mapping[float, GolfLearning] = {
    deviation: {"start": how["start"], "stages": how["stages"]} for deviation, how in THOROUGH.items()
}
"""How agents learn that are observed: once, stage by stage."""
_STATED = LITERAL["minigolf"].learning
AS_PUBLISHED: Mapping[float, GolfLearning] = {
    PUBLISHED: {"start": "uniform", "stages": [[PUBLISHED, *_STATED.values()]]},
    OURS: {"start": "uniform", "stages": [[OURS, *(_STATED | {"learning_rate": 0.003}).values()]]},
}
"""The paper's 100 × 100, from U[0, 0.1) weights, at a rate that it does not state and that does not fall.

Its Σ = 0.01 is read as a variance and as a deviation: both readings are guesses. The rates are those whose golfers are best.
"""

WIDEST = 0.6
"""Stages whose strokes would spread the ball's speed by more are left out: there, giving up looks best."""


@lru_cache
def golf(deviation: float) -> tuple[Minigolf, PolicySpace]:
    """One world and one space for each σ_π and process, so that what was compiled for them is used again."""
    world = Minigolf(policy_deviation=deviation)
    return world, world.policy_space()


def deviation_of(learning: GolfLearning) -> float:
    """The σ_π that an agent ends up with."""
    return float(learning["stages"][-1][0])


def learnings(size: RunSize) -> list[tuple[Procedure, GolfLearning, GolfLearning]]:
    """Procedures, and how their agents that are observed learn and those that are measured do, for every σ_π shown."""
    ours = [(BY_STAGES[deviation], THOROUGH[deviation]) for deviation in (OURS, PUBLISHED)]
    published = [(AS_PUBLISHED[deviation],) * 2 for deviation in (PUBLISHED, OURS)]
    quick = {"literal": published[:1], "ours": [(BY_STAGES[OURS], BY_STAGES[OURS])]}
    ways = quick if size.quick else {"literal": published, "ours": ours}
    return [(procedure, *pair) for procedure in procedures(size) for pair in ways[procedure]]


def learned(learning: GolfLearning, controls: Iterable[str], putter_length: float, key: Key) -> np.ndarray:
    """θ [6] of an agent that owns these features and learned with this putter, stage by stage."""
    last = learning["stages"][-1]
    stages = [stage for stage in learning["stages"] if stage[0] * putter_length <= WIDEST or stage is last]
    start = _safe_start(putter_length) if learning["start"] == "safe" else None
    return _stages(stages, tuple(controls), putter_length, key, start)


def best_learned(
    learning: GolfLearning, controls: Iterable[str], putter_length: float, keys: tuple[Key, Key], num_episodes: int
) -> np.ndarray:
    """θ of the better of two learnings: stage by stage and, if there is such a stage, "direct"; `keys` learn and choose."""
    owned, (learning_key, choosing) = tuple(controls), keys
    theta = learned(learning, owned, putter_length, learning_key)
    if "direct" not in learning:
        return theta
    key = jax.random.fold_in(learning_key, len(learning["stages"]))
    other = _stages([learning["direct"]], owned, putter_length, key, _safe_start(putter_length))
    return _better(theta, other, deviation_of(learning), putter_length, choosing, num_episodes)


def _better(
    theta: np.ndarray, other: np.ndarray, deviation: float, putter_length: float, key: Key, num_episodes: int
) -> np.ndarray:
    one, two = (mean_return(deviation, each, putter_length, key, num_episodes) for each in (theta, other))
    return other if two > one else theta


def _safe_start(putter_length: float) -> np.ndarray | None:
    world, space = golf(OURS)
    return world.first_weights(space, {"putter_length": putter_length})


def _stages(
    stages: Sequence[Stage], controls: tuple[str, ...], putter_length: float, key: Key, theta: np.ndarray | None
) -> np.ndarray:
    for number, (deviation, steps, episodes, rate, *left) in enumerate(stages):
        world, space = golf(deviation)
        own = jax.random.fold_in(key, number)
        omega = {"putter_length": putter_length}
        decay = left[0] if left else 0.0
        theta = learn(world, space, controls, omega, own, steps, episodes, rate, theta, decay=decay).theta
    assert theta is not None  # there is a last stage
    return theta


def mean_return(deviation: float, theta: np.ndarray, putter_length: float, key: Key, num_episodes: int) -> float:
    """The mean undiscounted return of a policy with this putter."""
    world, space = golf(deviation)
    seen = rollout(world, space, theta, {"putter_length": np.float64(putter_length)}, key, num_episodes)
    return float(np.mean(np.asarray(seen.returns())))


def best_returns(
    learning: GolfLearning, controls: Iterable[str], putter_lengths: list[float], key: Key, num_episodes: int
) -> list[float]:
    """The return of the best policy found for each putter, in increasing order of length.

    Each policy is learned afresh; then, if the learning has a "warm" stage, neighbours go on from each other, up along the
    putters and down again, from θ·ω/ω′, which hits every ball as fast as before, and the better one is kept. Policies are
    chosen by other episodes than those that measure what was chosen.
    """
    owned, deviation = tuple(sorted(controls)), deviation_of(learning)
    learning_key, choosing, measuring = jax.random.split(key, 3)
    count = len(putter_lengths)
    keys = [jax.random.fold_in(learning_key, i) for i in range(3 * count)]
    thetas = [
        best_learned(learning, owned, omega, (keys[i], choosing), num_episodes)
        for i, omega in enumerate(putter_lengths)
    ]
    if "warm" in learning:
        up, down = [(i - 1, i) for i in range(1, count)], [(i + 1, i) for i in reversed(range(count - 1))]
        for number, (neighbour, i) in enumerate(up + down, start=count):
            omega = putter_lengths[i]
            start = thetas[neighbour] * putter_lengths[neighbour] / omega
            warm = _stages([learning["warm"]], owned, omega, keys[number], start)
            thetas[i] = _better(thetas[i], warm, deviation, omega, choosing, num_episodes)
    return [
        mean_return(deviation, theta, omega, jax.random.fold_in(measuring, i), num_episodes)
        for i, (theta, omega) in enumerate(zip(thetas, putter_lengths, strict=True))
    ]


# -- What the best policies of two agents return with each putter, and agents that have not finished learning.

LENGTHS = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.5, 13.0, 15.0]
FEW_LENGTHS = [1.0, 2.0, 3.0, 5.0, 11.5, 15.0]
AGENTS = {"A1": frozenset(Minigolf.feature_names), "A2": AGENT_A2}
RUNS = {"literal": LITERAL["minigolf"].runs.value, "ours": 10}  # independent optimisations of a whole curve

TRAINING_RUNS = 10
STEPS = (100, 300, 1000, 3000, 10_000)
"""The paper states 100; agents go on learning beyond 3000."""
TRAINING_LENGTHS = (2.0, 3.0, 4.0, 5.0, 6.5, 8.0, 10.0, 11.5, 13.0, 15.0)
TRAINING_FEW_LENGTHS = (3.0, 5.0, 11.5)
NUM_EPISODES, RATE = 100, 0.001
"""Of a step of learning: the paper's number, and a rate that its authors' code uses and the paper does not state."""
MEASURED = 10_000
"""Episodes that tell what a policy returns."""


class CurveSetting(RunSetting, total=False):
    """A whole curve over putters: an agent that learned so, or by steps of G(PO)MDP of so many episodes at one rate."""

    agent: str
    putter_lengths: list[float]
    learning: GolfLearning
    num_steps: int
    learning_rate: float


class CurveResult(TypedDict):
    """The undiscounted return of the policy found with each putter."""

    returns: list[float]


CurveRecord = Record[CurveSetting, CurveResult]


def settings(size: RunSize) -> Iterable[CurveSetting]:
    """One whole curve a cell: an agent, a σ_π and a seed."""
    for procedure, _, learning in learnings(size):
        for seed in range(size.num_runs(RUNS[procedure], 2)):
            for agent in AGENTS:
                yield {
                    "procedure": procedure,
                    "agent": agent,
                    "learning": learning,
                    "putter_lengths": FEW_LENGTHS if size.quick else LENGTHS,
                    "num_episodes": 4000 if size.quick else 20_000,
                    "seed": seed,
                }


def run(setting: CurveSetting) -> CurveResult:
    """The best policies found."""
    owned, key = AGENTS[setting["agent"]], jax.random.key(setting["seed"])
    return {
        "returns": best_returns(setting["learning"], owned, setting["putter_lengths"], key, setting["num_episodes"])
    }


def training_settings(size: RunSize) -> Iterable[CurveSetting]:
    """One agent, number of steps and seed a cell."""
    for steps in STEPS[:2] if size.quick else STEPS:
        for agent in AGENTS:
            for seed in range(size.num_runs(TRAINING_RUNS, 2)):
                yield {
                    "agent": agent,
                    "num_steps": steps,
                    "putter_lengths": list(TRAINING_FEW_LENGTHS if size.quick else TRAINING_LENGTHS),
                    "num_episodes": NUM_EPISODES,
                    "learning_rate": RATE,
                    "seed": seed,
                }


def run_training(setting: CurveSetting) -> CurveResult:
    """Policies after so many steps of G(PO)MDP, from U[0, 0.1), at one rate throughout."""
    world, space = golf(OURS)
    learning, measuring = jax.random.split(jax.random.key(setting["seed"]))
    returns = []
    for number, length in enumerate(setting["putter_lengths"]):
        agent = learn(
            world, space, AGENTS[setting["agent"]], {"putter_length": length}, jax.random.fold_in(learning, number),
            setting["num_steps"], setting["num_episodes"], setting["learning_rate"], decay=1.0,
        )  # fmt: skip
        returns.append(mean_return(OURS, agent.theta, length, jax.random.fold_in(measuring, number), MEASURED))
    return {"returns": returns}


# -- Curves of the minigolf → where each agent's best putter lies, and whether that is where the paper says.

PAPER = {"A1": 5.0, "A2": 11.5}
"""The best putter lengths that the paper states."""

REFERENCE = {
    "A1": {2.0: -1.91, 3.0: -0.62, 5.0: -0.06, 7.0: -0.13, 9.0: -0.23, 11.5: -0.37, 15.0: -0.59},
    "A2": {2.0: -3.84, 3.0: -3.84, 5.0: -3.92, 7.0: -4.00, 9.0: -4.13, 11.5: -4.26, 15.0: -4.47},
}
"""Returns at σ_π = 0.01 that an independent optimisation of the same dynamics reached, on 20 000 episodes."""

EQUAL = 0.1
"""Strokes: putters whose returns differ by less are as good as each other."""

SUBSCRIPTS = {"A1": "A₁", "A2": "A₂"}
NAMES = {"A1": "A₁, sees distance and friction", "A2": "A₂, sees distance alone"}
COLOURS = {"A1": BLUE, "A2": RED}
CLAIM = Claim(
    "For agent A₁, which sees distance and friction, the optimal putter length is ω* = 5, while for agent A₂, "
    "which sees the distance alone, it is ω* = 11.5: the best configuration depends on the policy space.",
    "On the same curves, by intervals that hold for all putters at once. An optimum is where the paper says if it is the "
    f"best of the putters tried, or if the best surely returns less than {EQUAL:g} more; it is not if the best surely "
    "returns more. The best putter depends on the space if A₂, for whom it is to be chosen, surely loses by the one that is "
    f"best for A₁; it does not if A₂ surely loses less than {EQUAL:g}. At least {FEWEST} curves of each agent.",
)


def analyse(records: list[CurveRecord]) -> list[Panel]:
    """One panel for each σ_π that has records of both agents."""
    found = by_deviation(records)
    made = [_panel(deviation, own) for deviation, own in found if {r.setting["agent"] for r in own} == set(AGENTS)]
    return made + settings_panels("minigolf-curve", "minigolf", records, ())


def by_deviation(records: list[Record[S, M]]) -> list[tuple[float, list[Record[S, M]]]]:
    """Records of one procedure by σ_π."""
    found: dict[float, list[Record[S, M]]] = {}
    for record in records:
        found.setdefault(deviation_of(record.setting["learning"]), []).append(record)
    return sorted(found.items())


def curves(records: list[CurveRecord]) -> pl.DataFrame:
    """A row an agent, number of steps if they are counted, run and putter length."""

    def rows(record: CurveRecord) -> Iterable[dict[str, object]]:
        setting = record.setting
        common = {"agent": setting["agent"], "num_steps": setting.get("num_steps"), "seed": setting["seed"]}
        for length, value in zip(setting["putter_lengths"], record.result["returns"], strict=True):
            yield common | {"length": length, "return": value}

    return tidy(records, rows).sort("agent", maintain_order=True)


def best_putter(own: pl.DataFrame) -> float:
    """The length with which the curves of one agent return most on average."""
    found = means(own, "return", "length")
    return max(found, key=lambda length: found[length].value)


def shortfall(own: pl.DataFrame, length: float) -> Mean:
    """How much less than at the best putter an agent returns at another, curve by curve.

    The best is the luckiest of many, too: its interval holds for all comparisons with one putter at once (Bonferroni).
    """
    lost = paired(own, "return", "length", best_putter(own), length)["difference"].to_list()
    return mean_of(lost, 1 - 0.05 / (own["length"].n_unique() - 1))


def judge(found: pl.DataFrame) -> list[ClaimPart]:
    """The optimum of each agent, by simultaneous intervals of the differences from its best putter; that they differ."""
    own, parts = groups(found, "agent"), []
    best = {agent: best_putter(curve) for agent, curve in own.items()}
    for agent, curve in own.items():
        loss, same = shortfall(curve, PAPER[agent]), best[agent] == PAPER[agent]
        more = "" if same else f", {loss.words} more than at {PAPER[agent]:g}"
        words = (
            f"{SUBSCRIPTS[agent]}, whose optimum is said to be {PAPER[agent]:g}, is best at {best[agent]:g} with "
            f"{means(curve, 'return', 'length')[best[agent]].words}{more}"
        )
        parts.append(ClaimPart(words, judged(same or loss.high < EQUAL, loss.low > 0)))
    lost, other = shortfall(own["A2"], best["A1"]), shortfall(own["A1"], best["A2"])
    apart = best["A1"] != best["A2"]
    words = f"With A₁'s best putter A₂ loses {lost.words} (A₁ with A₂'s {other.words}, which is not judged)"
    return [*parts, ClaimPart(words, judged(apart and lost.low > 0, not apart or lost.high < EQUAL))]


def _panel(deviation: float, records: list[CurveRecord]) -> Panel:
    found, learning = curves(records), records[0].setting["learning"]
    num_curves = sum(r.setting["agent"] == "A1" for r in records)
    if "warm" in learning:
        how = "the best of fresh starts and of warm ones from both neighbours along ω"
    elif learning["start"] == "uniform":
        how = "100 steps of 100 episodes, as published"
    else:
        how = "one brief learning a putter"
    returns = {agent: means(own, "return", "length") for agent, own in groups(found, "agent").items()}
    reference = REFERENCE if deviation == OURS else {"A1": {}, "A2": {}}
    agents = [SUBSCRIPTS[agent] for agent in AGENTS]

    def row(length: float) -> tuple[str, ...]:
        known = (reference[agent].get(length) for agent in AGENTS)
        words = ("" if value is None else f"{value:.2f}".replace("-", "−") for value in known)
        return f"{length:g}", *(returns[agent][length].words for agent in AGENTS), *words

    return Panel(
        f"minigolf-curve-{deviation:g}",
        f"Return of the best policy with each putter, σ = {deviation:g}",
        CLAIM,
        f"Each curve is one optimisation ({how}); {num_curves} for each agent.",
        draw_curves(found, reference, f"Minigolf, σ = {deviation:g}: return against putter length"),
        ("putter length ω", *(f"{agent} (95 %)" for agent in agents), *(f"reference {a}" for a in agents)),
        [row(length) for length in returns["A1"]],
        {
            "policy_deviation": deviation,
            "putter_lengths": list(returns["A1"]),
            **{agent: [mean.numbers for mean in returns[agent].values()] for agent in AGENTS},
            "best": {agent: best_putter(own) for agent, own in groups(found, "agent").items()},
        },
        judge(found),
        num_curves,
    )


def draw_curves(found: pl.DataFrame, reference: Mapping[str, Mapping[float, float]], title: str) -> "Figure":
    """Mean curves with their 95 % bands; the best putter of an agent, named above the upper and below the lower curve."""
    shown = means(found, "return", "agent", "length")

    def marked(axes: "Axes") -> None:
        for agent, own in groups(found, "agent").items():
            curve = {length: mean.value for (other, length), mean in shown.items() if other == agent}
            colour, best, paper = COLOURS[agent], best_putter(own), PAPER[agent]
            axes.plot(best, curve[best], "o", color=colour, markersize=8, zorder=4)
            axes.annotate(f"best at {best:g}", (best, curve[best]), xytext=(5, 9) if agent == "A1" else (-2, -26),
                          textcoords="offset points", ha="left", color=colour, fontsize=9)  # fmt: skip
            stated = float(np.interp(paper, list(curve), list(curve.values())))
            axes.plot(
                paper, stated, "D", markerfacecolor="none", markeredgewidth=1.6, color=colour, markersize=13, zorder=3
            )
            if reference[agent]:
                axes.plot(*zip(*reference[agent].items(), strict=True), "x", color=colour, markersize=6, zorder=5)
        lowest = [
            mean.low if np.isfinite(mean.low) else mean.value for (_, length), mean in shown.items() if length > 1
        ]
        axes.set(xlim=(0.7, 15.3), ylim=(min(-5.0, 1.04 * min(lowest)), 0.8), xticks=[1, 3, 5, 7, 9, 11, 13, 15])

    crosses = "; crosses: an independent optimisation" if reference["A1"] else ""
    return draw(
        title, [Plot(shown, kind="bands", more=marked)], COLOURS, NAMES, height=4.2, xscale="linear",
        xlabel=f"putter length ω (diamonds: the optimum that the paper states{crosses})",
        ylabel="mean undiscounted return",
    )  # fmt: skip


# -- Curves of golfers that learned for ever more steps → how the best putter moves, and why the paper's is at 11.5.


def analyse_training(records: list[CurveRecord]) -> list[Panel]:
    """ω* against the steps of learning, and the curves that it is the top of."""
    found = curves(records).sort("agent", "num_steps", "seed", "length")
    best, whole = best_putters(found), groups(found, "agent", "num_steps")
    last = found["num_steps"].to_numpy().max()
    told = "; ".join(
        f"{SUBSCRIPTS[agent]} "
        + ", ".join(f"{mean.words} after {n}" for (other, n), mean in best.items() if other == agent)
        for agent in AGENTS
    )

    def top(own: pl.DataFrame) -> tuple[str, str]:
        """The best putter of the mean curve, and what it returns."""
        length = best_putter(own)
        return f"{length:g}", means(own, "return", "length")[length].words

    return [
        Panel(
            "minigolf-training",
            "The best putter against the steps of learning",
            Claim(
                "The paper's best putter for A₂ is 11.5; that of fully learned agents is much shorter. Does the number of "
                "steps that the agents learned explain it?"
            ),
            f"Best putter, as a mean over runs: {told} steps. Before an agent doses its strokes well a long putter costs it "
            f"least; what {last} steps leave is still not the end. {_together(best)} Learning is G(PO)MDP with "
            f"{NUM_EPISODES} episodes a step at the rate {RATE:g}, from weights in [0, 0.1), σ = {OURS:g}; "
            "rate and start are guesses.",
            draw_training(found, best),
            (
                "agent",
                "steps",
                "best putter, of each run (95 %)",
                "best putter, of the mean curve",
                "its return (95 %)",
            ),
            [(NAMES[agent], str(n), mean.words, *top(whole[agent, n])) for (agent, n), mean in best.items()],
            {f"{agent}, {n}": mean.numbers for (agent, n), mean in best.items()},
        )
    ]


def _together(best: dict[tuple[str, int], Mean]) -> str:
    """After how many steps both of the paper's lengths lie in the intervals."""
    inside = {key: mean.low <= PAPER[key[0]] <= mean.high for key, mean in best.items()}
    steps = sorted({n for _, n in best})
    agree = [str(n) for n in steps if all(inside[agent, n] for agent in PAPER)]
    where = f"after {', '.join(agree)} steps" if agree else "after none of these numbers of steps"
    alone = [str(n) for n in steps if inside["A2", n]]
    first = f"after {', '.join(alone)} steps" if alone else "nowhere"
    return f"The paper's 11.5 for A₂ lies in the interval {first}; that and its 5 for A₁ together do {where}."


def best_putters(found: pl.DataFrame) -> dict[tuple[str, int], Mean]:
    """The putter with which a run returns most, as a mean over runs."""
    tops = [
        {"agent": agent, "steps": steps, "best": best_putter(own)}
        for (agent, steps, _), own in groups(found, "agent", "num_steps", "seed").items()
    ]
    return means(pl.DataFrame(tops), "best", "agent", "steps")


def draw_training(found: pl.DataFrame, best: dict[tuple[str, int], Mean]) -> "Figure":
    """ω* against the steps on the left; on the right, what A₂ returns with each putter after each number of steps."""
    shades = dict(zip(map(str, found["num_steps"].unique().sort()), (GREY, AMBER, RED, PURPLE, INK), strict=False))
    own = found.filter(pl.col("agent") == "A2")
    lost = own.with_columns(pl.col("num_steps").cast(pl.String), lost=-pl.col("return"))

    def putters(axes: "Axes") -> None:
        for agent, length in PAPER.items():
            axes.axhline(length, color=COLOURS[agent], linewidth=1, linestyle=DASHED)
        axes.set(
            ylim=(0, 15.5), xlabel="steps of learning (dashed: what the paper states)", ylabel="best putter length"
        )

    def returns(axes: "Axes") -> None:
        axes.set_xscale("linear")
        axes.set_yscale("log")
        ticks = [tick for tick in (1, 2, 3, 4, 6, 10, 20, 40) if axes.get_ylim()[0] <= tick <= axes.get_ylim()[1]]
        axes.set_yticks(ticks, [f"−{tick}" for tick in ticks])
        axes.minorticks_off()
        axes.invert_yaxis()  # up is better
        axes.set(xlabel="putter length", ylabel="mean undiscounted return")

    plots = [
        Plot(best, "the best putter moves as agents learn", more=putters),
        Plot(means(lost, "lost", "num_steps", "length"), "return of A₂, after so many steps", "bands", more=returns),
    ]
    labels = NAMES | {name: f"{name} steps" for name in shades}
    return draw(
        "Minigolf: agents that have not finished learning", plots, COLOURS | shades, labels, height=4.0, width=9.6,
        sharey=False, columns=4,
    )  # fmt: skip


CURVE = Experiment("minigolf-curve", "Minigolf: the best putter for each agent", settings, run, analyse)
TRAINING = Experiment(
    "minigolf-training", "Minigolf: the best putter of agents that have not finished learning", training_settings,
    run_training, analyse_training,
)  # fmt: skip
