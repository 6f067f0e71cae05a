"""How often asking by pairs errs, and what it finds: `python -m benchmarks.asking_pairs` writes the table in docs/asking.md.

Simulated agents of which only actions come out, by chances of their own. Of each it is known which inputs it reads, and the
total variation between the distributions of its actions when an input is redrawn. "False" is an input that it never reads
and that was found at any look. Finished runs are kept, and not run again.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from scipy.stats import binomtest

import policyspace
from policyspace.asking import AskedAgent, Asker, Counted, Inputs, Law, PairBets, States
from policyspace.display import TextTable

ROWS, DELTA, QUESTIONS = 1000, 0.05, 600
WITH_EFFECTS = 30
"""Runs of each kind in which effects are measured, too."""
RECORDS = Path("results/asking_pairs.jsonl")
PAGE = Path(__file__).parent.parent / "docs" / "asking.md"
BEGIN, END = "<!-- python -m benchmarks.asking_pairs -->\n", "<!-- end of the table -->"
NAMES = ("a", "b", "c", "d", "e", "f")


def observed(seed: int) -> np.ndarray:
    """Rows of a log: c is a near copy of a, d says on which side of a curve a and b are, and f drifts slowly."""
    rng = np.random.default_rng([seed, 1])
    rows = rng.normal(size=(ROWS, len(NAMES)))
    rows[:, 2] = rows[:, 0] + 0.05 * rows[:, 2]
    rows[:, 3] = np.sign(rows[:, 0] * rows[:, 1] - 0.2) + 0.1 * rows[:, 3]
    for t in range(1, ROWS):
        rows[t, 5] = 0.99 * rows[t - 1, 5] + (1 - 0.99**2) ** 0.5 * rows[t, 5]
    return rows


def logistic(score: np.ndarray) -> np.ndarray:
    """Of a choice between two."""
    p = 1 / (1 + np.exp(-score))
    return np.stack([1 - p, p], axis=1)


def softmax(scores: np.ndarray) -> np.ndarray:
    """Of several choices [n, k]."""
    grown = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(grown / grown.sum(axis=1, keepdims=True))


def greedy(scores: np.ndarray, noise: float) -> np.ndarray:
    """The best choice, and with some chance any."""
    k = scores.shape[1]
    return np.asarray(noise / k + (1 - noise) * np.eye(k)[scores.argmax(axis=1)])


def columns(x: np.ndarray, *weights: Sequence[float]) -> np.ndarray:
    """Linear scores, one for each row of weights of the first inputs."""
    return np.stack([x[:, : len(w)] @ np.array(w) for w in weights], axis=1)


@dataclass(frozen=True)
class Kind:
    """A kind of agent: the distribution of its action in each state [n, inputs], and the inputs that it reads."""

    law: Callable[[np.ndarray], Law]
    reads: str
    action_space: Any
    trouble: str = ""
    """How it is not the same at every question: "drifts", "moods" or "remembers"."""


def choice(*tables: np.ndarray) -> Law:
    return Law("categorical", tables)


def numbers(mean: np.ndarray, sd: np.ndarray) -> Law:
    ends = np.full(mean.shape[1], 3.0)
    return Law("normal", mean=mean, sd=np.broadcast_to(sd, mean.shape), low=-ends, high=ends)


TWO, THREE = spaces.Discrete(2), spaces.Discrete(3)

KINDS = {
    "logistic": Kind(lambda x: choice(logistic(columns(x, [1.5, 0.4])[:, 0])), "ab", TWO),
    "curved border, greedy with noise": Kind(
        lambda x: choice(greedy(np.stack([x[:, 0] * x[:, 1] - 0.2, np.zeros(len(x))], 1), 0.2)), "ab", TWO
    ),
    "three choices, greedy with noise": Kind(
        lambda x: choice(greedy(columns(x, [1, 0, 0, 0, 0.3], [0, 1], [-1, -0.5]), 0.3)), "abe", THREE
    ),
    "a near copy is read": Kind(lambda x: choice(logistic(3 * np.tanh(2 * x[:, 2]))), "c", TWO),
    "several choices": Kind(
        lambda x: choice(
            logistic(2 * x[:, 0]), softmax(columns(x, [0, 1.5], [0, 0], [0, -1.5])), logistic(0.5 * x[:, 4])
        ),
        "abe",
        spaces.MultiDiscrete([2, 3, 2]),
    ),
    "numbers": Kind(
        lambda x: numbers(np.stack([x[:, 0] * x[:, 1], 0.3 * x[:, 4]], 1), np.array([0.5, 1.0])), "abe",
        spaces.Box(-3, 3, (2,), np.float64),
    ),
    "only the spread of a number": Kind(
        lambda x: numbers(np.zeros((len(x), 1)), 0.6 * np.exp(0.6 * x[:, [1]])), "b", spaces.Box(-3, 3, (1,), np.float64)
    ),
    "with a memory": Kind(lambda x: choice(logistic(2 * x[:, 0])), "a", TWO, "remembers"),
    "drifts while it is asked": Kind(lambda x: choice(logistic(columns(x, [1.5, 0.4])[:, 0])), "ab", TWO, "drifts"),
    "noise that lasts": Kind(lambda x: choice(logistic(columns(x, [1.5, 0.4])[:, 0])), "ab", TWO, "moods"),
    "reads nothing": Kind(lambda x: choice(np.full((len(x), 3), 1 / 3)), "", THREE),
}  # fmt: skip


class BlackBox(AskedAgent):
    """Shows its actions alone. Its memory holds a number of the last observation, which moves the next action."""

    has_law = False

    def __init__(self, name: str, kind: Kind, seed: int) -> None:
        super().__init__(name, spaces.Box(-np.inf, np.inf, (len(NAMES),), np.float64), kind.action_space)
        self.kind, self.own, self.asked, self.mood = kind, np.random.default_rng([seed, 2]), 0, 0.0
        self.has_memory = kind.trouble == "remembers"

    def start(self, n: int) -> Any:
        """Nothing seen."""
        return np.zeros(n) if self.has_memory else None

    def act(self, observations: Any, rng: np.random.Generator, memory: Any = None) -> tuple[np.ndarray, Any]:
        """By its own chances, which follow its trouble from question to question."""
        x, n = np.asarray(observations, dtype=float), len(observations)
        law = self.kind.law(x)
        if self.kind.trouble in ("drifts", "moods"):
            shift = np.empty(n)
            for i in range(n):
                self.mood = 0.995 * self.mood + 0.1 * self.own.standard_normal()
                shift[i] = self.mood
            if self.kind.trouble == "drifts":
                shift = (self.asked + np.arange(n)) / 1500 - 1
            score = np.log(law.probabilities[0][:, 1] / law.probabilities[0][:, 0])
            law = choice(logistic(score + 2 * shift))
        if memory is not None:
            law = choice(logistic(x[:, 0] - 1.5 * memory))
        self.asked += n
        return self.as_actions(law.sample(self.own)), None if memory is None else x[:, 1]


@dataclass(frozen=True)
class Run:
    """What one run found, and at what cost."""

    kind: str
    seed: int
    found: tuple[str, ...]
    truth: dict[str, float]
    effects: dict[str, tuple[float, float, float]]
    questions: dict[str, int]
    seconds: float


def truth_of(kind: Kind, rows: np.ndarray, seed: int) -> dict[str, float]:
    """The mean total variation when an input has any other reading of the log."""
    rng, found = np.random.default_rng([seed, 3]), {}
    for j, name in enumerate(NAMES):
        if name not in kind.reads or kind.trouble:
            continue
        many = np.tile(rows, (20, 1))
        other = many.copy()
        other[:, j] = rows[rng.integers(len(rows), size=len(many)), j]
        found[name] = float(kind.law(many).total_variation(kind.law(other)).mean())
    return found


def run(name: str, seed: int) -> Run:
    """One log, one agent, one answer; of all but the first seeds the bets alone, which are those of the answer."""
    kind, rows = KINDS[name], observed(seed)
    agent, memory = BlackBox(name, kind, seed), 2 if kind.trouble == "remembers" else 0
    episodes = np.arange(ROWS) // 50
    begun = time.process_time()
    if seed >= WITH_EFFECTS:
        inputs = Inputs.of(agent.observation_space, features=NAMES, observations=rows)
        asker = Asker(Counted(agent), States(rows, episodes), inputs, memory, np.random.default_rng(seed))
        bets = PairBets(asker, NAMES, DELTA)
        bets.begin(QUESTIONS)
        bets.run(QUESTIONS)
        return Run(name, seed, tuple(sorted(bets.found)), {}, {}, bets.questions, time.process_time() - begun)
    log = policyspace.Sample(rows, rows[:, :1], names=NAMES, episodes=episodes)
    answer = policyspace.ask(agent, log=log, features=NAMES, redraw=("any",), memory=2, significance=DELTA, seed=seed)
    return Run(
        name,
        seed,
        tuple(sorted((*answer.selected, *answer.barely))),
        truth_of(kind, rows, seed),
        {one.group: (one.effect_any.estimate, one.effect_any.low, one.effect_any.high) for one in answer.groups},
        {one.group: one.questions for one in answer.groups},
        time.process_time() - begun,
    )


def reads(kind: Kind) -> str:
    """The inputs that an agent reads; one with a memory also reads b, a step later."""
    return kind.reads + ("b" if kind.trouble == "remembers" else "")


# -- The table.

COLUMNS = (
    "agent", "runs", "inputs read, and their total variation", "found", "questions, median", "false at any look",
    "effect less its total variation", "95 % intervals that hold it", "CPU s a run",
)  # fmt: skip


def row(name: str, runs: Sequence[Run]) -> tuple[str, ...]:
    """Some runs of one kind."""
    inputs = reads(KINDS[name])
    false = sum(bool(set(one.found) - set(inputs)) for one in runs)
    whole = [one for one in runs if one.effects]
    truth = {group: float(np.mean([one.truth[group] for one in whole])) for group in whole[0].truth}
    error = {group: float(np.mean([one.effects[group][0] - one.truth[group] for one in whole])) for group in truth}
    held = [one.effects[group][1] <= one.truth[group] <= one.effects[group][2] for one in whole for group in truth]
    return (
        name,
        str(len(runs)),
        ", ".join(f"{group} {100 * truth[group]:.0f} %" if group in truth else group for group in inputs) or "–",
        ", ".join(f"{group} {np.mean([group in one.found for one in runs]):.2f}" for group in inputs) or "–",
        ", ".join(f"{group} {np.median([one.questions[group] for one in runs]):.0f}" for group in inputs) or "–",
        f"{false}",
        ", ".join(f"{group} {100 * error[group]:+.1f} %" for group in truth) or "–",
        f"{100 * np.mean(held):.0f} %" if held else "–",
        f"{np.mean([one.seconds for one in whole]):.2f}",
    )


def main() -> None:
    """Run what is missing, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200, help="logs of each kind of agent")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS), help="which")
    parser.add_argument(
        "--records", type=Path, default=RECORDS, help="finished runs: delete it after changing the bets"
    )
    arguments = parser.parse_args()
    arguments.records.parent.mkdir(parents=True, exist_ok=True)
    lines = arguments.records.read_text().splitlines() if arguments.records.exists() else []
    done = {(one["kind"], one["seed"]): Run(**one) for one in map(json.loads, lines)}
    with arguments.records.open("a") as file:
        for seed in range(arguments.runs):
            for name in arguments.kinds:
                if (name, seed) not in done:
                    done[name, seed] = run(name, seed)
                    print(json.dumps(asdict(done[name, seed])), file=file, flush=True)
    some = {name: [done[name, seed] for seed in range(arguments.runs)] for name in arguments.kinds}
    every = [one for runs in some.values() for one in runs]
    false = sum(bool(set(one.found) - set(reads(KINDS[one.kind]))) for one in every)
    low, high = binomtest(false, len(every)).proportion_ci()
    words = (
        f"\nδ = {100 * DELTA:g} %: {false} of {len(every)} runs have a false finding, {100 * false / len(every):.1f} % "
        f"({100 * low:.1f} to {100 * high:.1f} %)."
    )
    table = TextTable(COLUMNS, [row(*one) for one in some.items()]).markdown()
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{table}\n{words}\n\n{END}{rest.split(END)[1]}", encoding="utf-8")
    print(f"Saved {PAGE}")


if __name__ == "__main__":
    main()
