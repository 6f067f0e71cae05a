"""How often the random-effects test errs and finds, with 6 to 40 subjects: `python -m benchmarks.subjects --seconds 60`.

Each run simulates subjects who weigh three features: `used` by .25 on average (standard deviation .3 between subjects),
`mixed` by 0 on average (.5), `idle` not at all. Counted are false "used on average" of the last two, found ones of the
first, how often subjects are said to use `idle`, and how often the interval of a subject misses its weight.

Records are kept in `subjects.jsonl`, so that a call adds what is missing until its time is over. `--glmer N` fits `glmer`
with random slopes (R, lme4) to N data sets of the first case.
"""

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy.special import betaincinv

from policyspace import PolicySpec, Sample, likelihood_of
from policyspace.inference import RandomEffects

RECORDS = Path(__file__).with_name("subjects.jsonl")
NAMES = ("used", "mixed", "idle")
AVERAGE, SPREAD = np.array([0.25, 0.0, 0.0]), np.array([0.3, 0.5, 0.0])
SIZES = (6, 10, 20, 40)
LEVEL = 0.05
CASES = (
    "two choices", "three choices", "amounts", "counts", "skewed slopes", "unequal trials", "separation", "habit",
    "autocorrelated noise",
)  # fmt: skip


def simulated(case: str, size: int, seed: int) -> tuple[Sample, np.ndarray]:
    """The rows of some subjects, and their weights [size, 3]."""
    rng = np.random.default_rng([CASES.index(case), size, seed])
    trials = rng.integers(10, 111, size) if case == "unequal trials" else np.full(size, 60)
    owner = np.repeat(np.arange(size), trials)
    n = len(owner)
    persistent = case in ("habit", "autocorrelated noise")
    features = autoregressive(rng, n, 3, 0.9) if persistent else rng.normal(size=(n, 3))
    own = rng.exponential(size=(size, 3)) - 1 if case == "skewed slopes" else rng.normal(size=(size, 3))
    weights = AVERAGE + SPREAD * own
    drive = (features * weights[owner]).sum(axis=1) + 0.5 * rng.normal(size=size)[owner]
    if case == "separation":  # strong biases, so that many subjects hardly ever take one action
        drive += 3.0 * rng.normal(size=size)[owner]
    if case == "autocorrelated noise":
        drive += autoregressive(rng, n, 1, 0.9)[:, 0]
    if case == "amounts":
        actions = drive + rng.normal(size=n)
    elif case == "counts":
        actions = rng.poisson(np.exp(np.clip(0.3 + 0.5 * drive, -5, 4))).astype(float)
        weights = 0.5 * weights
    elif case == "three choices":
        noise = rng.gumbel(size=(n, 3))
        actions = np.array(["a", "b", "c"])[
            np.argmax(np.stack([drive, 0 * drive, -0.5 * drive], axis=1) + noise, axis=1)
        ]
    else:
        uniform = rng.random(n)
        chosen, before = np.zeros(n, dtype=bool), 0.0
        for t in range(n):
            before = 0.0 if t == 0 or owner[t] != owner[t - 1] else (1.0 if chosen[t - 1] else -1.0)
            chosen[t] = uniform[t] < 1 / (1 + np.exp(-drive[t] - (0.8 * before if case == "habit" else 0.0)))
        actions = np.where(chosen, "go", "stay")
    names, columns = NAMES, features
    if case == "habit":  # the last choice is a further feature, as --lags 1 makes it
        earlier = np.r_[0.0, np.where(chosen[:-1], 1.0, -1.0)] * (np.r_[-1, owner[:-1]] == owner)
        names, columns = (*NAMES, "before"), np.column_stack([features, earlier])
    return Sample.from_arrays(columns, actions, names, subjects=owner, counts=case == "counts"), weights


def autoregressive(rng: np.random.Generator, n: int, columns: int, memory: float) -> np.ndarray:
    """Columns of unit variance, each a first-order autoregression."""
    found = rng.normal(size=(n, columns))
    for t in range(1, n):
        found[t] = memory * found[t - 1] + np.sqrt(1 - memory**2) * found[t]
    return found


def one_run(case: str, size: int, seed: int) -> dict[str, object]:
    """What one simulated data set shows."""
    data, weights = simulated(case, size, seed)
    space = PolicySpec(None).bind(data)
    test = RandomEffects(likelihood_of(space, data), data)
    groups = [g for g in space.tested if space.groups[g].name in NAMES]
    p_values = [found.p_value for found in test.test_many([space.support_without(g) for g in groups])]
    record: dict[str, object] = {
        "case": case,
        "size": size,
        "seed": seed,
        "p": p_values,
        "converged": test.fit.converged,
    }
    if seed % 2 == 0:
        effects = test.effects(LEVEL * len(space.tested))  # each bound alone at the level
        record["at_least"] = effects.at_least
        if case not in ("three choices", "autocorrelated noise"):
            sign = 1.0 if case in ("amounts", "counts") or data.action_names[-1] == "stay" else -1.0
            inside = [effects.parameters.index(name) if name in effects.parameters else -1 for name in NAMES]
            if min(inside) >= 0:
                found, margin = np.array(effects.weights)[:, inside], 1.96 * np.array(effects.margins)[:, inside]
                record["missed"] = np.mean(np.abs(sign * found - weights) > margin, axis=0).tolist()
    return record


GLMER = """
suppressMessages(library(lme4))
model <- go ~ used + mixed + idle + (1 + used + mixed + idle || subject)
quick <- glmerControl(optimizer = "bobyqa", calc.derivs = FALSE)
for (file in commandArgs(TRUE)) {
  d <- read.csv(file)
  f <- suppressMessages(suppressWarnings(try(glmer(model, d, family = binomial, control = quick), silent = TRUE)))
  p <- if (inherits(f, "try-error")) rep(NA, 3) else summary(f)$coefficients[-1, 4]
  cat(basename(file), p, "\\n")
}
"""


def glmer_runs(seeds: range, sizes: tuple[int, ...]) -> list[dict[str, object]]:
    """p-values of `glmer` with uncorrelated random slopes, on the data of the case of two choices."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "glmer.R"
        script.write_text(GLMER)
        files = []
        for size in sizes:
            for seed in seeds:
                data, _ = simulated("two choices", size, seed)
                path = Path(folder) / f"{size}_{seed}.csv"
                go = (data.actions == data.action_names.index("go")).astype(int)
                table = np.column_stack([data.features, go, data.subjects])
                np.savetxt(path, table, delimiter=",", header="used,mixed,idle,go,subject", comments="", fmt="%.10g")
                files.append(str(path))
        done = subprocess.run(["Rscript", str(script), *files], capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        name, *values = line.split()
        size, seed = map(int, name.removesuffix(".csv").split("_"))
        p_values = [float("nan") if value == "NA" else float(value) for value in values]
        found.append({"case": "glmer", "size": size, "seed": seed, "p": p_values})
    return found


def records() -> list[dict[str, object]]:
    """All runs so far."""
    return [json.loads(line) for line in RECORDS.read_text().splitlines()] if RECORDS.exists() else []


def interval(hits: int, runs: int) -> str:
    """A share with its 95 % interval (Clopper and Pearson)."""
    low = betaincinv(hits, runs - hits + 1, 0.025) if hits else 0.0
    high = betaincinv(hits + 1, runs - hits, 0.975) if hits < runs else 1.0
    return f"{hits / runs:.3f} [{low:.3f}, {high:.3f}]"


def page(done: list[dict[str, object]]) -> str:
    """A line a cell."""
    lines = [
        "| case | subjects | runs | false: mixed | false: idle | found: used | too many users | misses |",
        "|---|" + "---|" * 7,
    ]
    for case in (*CASES, "glmer"):
        for size in SIZES:
            mine = [one for one in done if one["case"] == case and one["size"] == size]
            if not mine:
                continue
            p = np.array([one["p"] for one in mine], dtype=float)
            hits = (p <= LEVEL).sum(axis=0)
            counted = [one["at_least"] for one in mine if "at_least" in one]
            told = [one["idle"] for one in counted if "idle" in one]
            bounds = interval(sum(k > 0 for k in told), len(told)) if told else "–"
            missed = [one["missed"] for one in mine if "missed" in one]
            misses = f"{np.mean(missed):.3f}" if missed else "–"
            cells = [interval(int(hits[j]), len(mine)) for j in (1, 2)] + [f"{hits[0] / len(mine):.2f}", bounds, misses]
            lines.append(f"| {case} | {size} | {len(mine)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="of processor time, after which no run is begun")
    parser.add_argument("--runs", type=int, default=100, help="a cell")
    parser.add_argument(
        "--glmer", type=int, default=0, metavar="N", help="so many runs of R's glmer a number of subjects"
    )
    words = parser.parse_args()
    done = records()
    known = {(one["case"], one["size"], one["seed"]) for one in done}
    if words.glmer:
        seeds = range(words.glmer)
        new = [one for one in glmer_runs(seeds, SIZES[1:]) if ("glmer", one["size"], one["seed"]) not in known]
        with RECORDS.open("a") as out:
            out.writelines(json.dumps(one) + "\n" for one in new)
    start = time.process_time()
    for seed in range(words.runs):
        for case in CASES:
            for size in SIZES:
                if (case, size, seed) in known or time.process_time() - start > words.seconds:
                    continue
                with RECORDS.open("a") as out:
                    out.write(json.dumps(one_run(case, size, seed)) + "\n")
    print(page(records()))


if __name__ == "__main__":
    main()
