"""Other libraries on the same trained agents, judged by the same truth: `python -m benchmarks.asking_peers`.

Each gets 1 000 states of the agent's own play and the agent's own function (probabilities, a mean, or actions), and says
which inputs move it, by the rule that its documentation gives or, where it gives none, by attributions that are not zero.
Finished runs are kept beside the agents. Needs scikit-learn, shap, hidimstat and captum (`make .venv-peers/.installed`).
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator

import policyspace
from benchmarks.asking_agents import PAGE, named_groups, truth_of, write_table
from benchmarks.trained_agents import AGENTS, FOLDER, MATERIAL, Actor, actor, parameters, play
from policyspace.display import TextTable

ROWS = 1000
NOTHING = 1e-5
"""An attribution that is smaller, as a share of the largest, is none: networks compute in single precision."""

PLAIN = tuple(name for name, one in AGENTS.items() if not one.picture and one.algorithm != "RecurrentPPO")
"""Agents that see numbers and remember nothing: what all of these libraries take."""


@dataclass(frozen=True)
class Run:
    """What one method says of one agent."""

    agent: str
    method: str
    seed: int
    found: tuple[str, ...]
    seconds: float
    """Of the processor, without the agent's play."""


class Policy(BaseEstimator):
    """The agent as an estimator: what its network says of observations."""

    def __init__(self, actor: Any = None) -> None:
        self.actor = actor

    def fit(self, *_: Any) -> "Policy":
        """Trained already."""
        return self

    @property
    def n_features_in_(self) -> int:
        """As estimators say it."""
        return len(self.actor.trained.sensors)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, rows: Any) -> np.ndarray:
        """Probabilities, means or actions [n, k]."""
        return parameters(self.actor, np.asarray(rows, dtype=np.float32))[0][0]


def by_group(one: Actor, found: Sequence[bool]) -> tuple[str, ...]:
    """The inputs of which some number was found."""
    return tuple(group for group, places in one.trained.groups.items() if any(found[j] for j in places))


def shown(sizes: np.ndarray) -> np.ndarray:
    """Which attributions are not zero."""
    return sizes > NOTHING * max(float(sizes.max()), 1e-30)


def asked(one: Actor, rows: np.ndarray, episodes: np.ndarray, seed: int) -> tuple[str, ...]:
    """`policyspace.ask` in the same states."""
    env = one.env()
    log = policyspace.Sample(rows, rows[:, :1], names=one.trained.sensors, episodes=episodes)
    answer = policyspace.ask(
        one.model, env, log=log, features=one.trained.sensors, groups=named_groups(one.trained), seed=seed
    )
    return (*answer.selected, *answer.barely)


def permuted(one: Actor, rows: np.ndarray, episodes: np.ndarray, seed: int) -> tuple[str, ...]:
    """scikit-learn: the mean loss of agreement with itself is more than two of its standard deviations."""
    from sklearn.inspection import permutation_importance

    own = Policy(one).predict(rows)
    greedy = own.argmax(axis=1) if one.trained.algorithm not in ("SAC", "TD3") and own.shape[1] > 1 else None

    def score(policy: Policy, seen: np.ndarray, _: Any) -> float:
        said = policy.predict(seen)
        if greedy is None:
            return -float(np.mean((said - own) ** 2))
        return float(np.mean(said.argmax(axis=1) == greedy))

    found = permutation_importance(Policy(one), rows, own[:, 0], scoring=score, n_repeats=10, random_state=seed)
    return by_group(one, found.importances_mean - 2 * found.importances_std > 0)


def shapley(one: Actor, rows: np.ndarray, episodes: np.ndarray, seed: int) -> tuple[str, ...]:
    """shap: the mean absolute Shapley value in 50 states is not zero."""
    import shap

    explain = shap.PermutationExplainer(Policy(one).predict, shap.maskers.Independent(rows, 20), seed=seed)
    values = explain(rows[np.random.default_rng(seed).choice(len(rows), 50, replace=False)], silent=True).values
    return by_group(one, shown(np.abs(values).reshape(len(values), rows.shape[1], -1).mean(axis=(0, 2))))


def conditional(one: Actor, rows: np.ndarray, episodes: np.ndarray, seed: int) -> tuple[str, ...]:
    """hidimstat: conditional feature importance, family-wise error 5 %."""
    from hidimstat import CFI

    own = Policy(one).predict(rows)
    places = {group: list(inside) for group, inside in one.trained.groups.items()}
    test = CFI(Policy(one), features_groups=places, feature_types="continuous", n_permutations=20, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of zero spread, where nothing was lost
        test.fit(rows, own)
        test.importance(rows, own)
        chosen = np.asarray(test.fwer_selection(0.05), dtype=float) > 0
    return tuple(group for group, yes in zip(places, chosen, strict=True) if yes)


def integrated(one: Actor, rows: np.ndarray, episodes: np.ndarray, seed: int) -> tuple[str, ...]:
    """captum: the mean absolute integrated gradient of what the network says is not zero."""
    from captum.attr import IntegratedGradients

    policy, algorithm = one.model.policy, one.trained.algorithm

    def said(seen: torch.Tensor) -> torch.Tensor:
        if algorithm == "DQN":
            return one.model.q_net(seen)
        if algorithm == "TD3":
            return policy.actor(seen)
        if algorithm == "SAC":
            return policy.actor.get_action_dist_params(seen)[0]
        found = policy.get_distribution(seen).distribution
        return found.probs if hasattr(found, "probs") else found.mean

    seen, base = torch.as_tensor(rows), torch.as_tensor(rows.mean(axis=0, keepdims=True))
    total = np.zeros(rows.shape[1])
    for k in range(said(seen[:1]).shape[1]):
        total += np.abs(IntegratedGradients(said).attribute(seen, base, target=k).detach().numpy()).mean(axis=0)
    return by_group(one, shown(total))


METHODS: dict[str, Callable[..., tuple[str, ...]]] = {
    "policyspace.ask": asked,
    "permutation importance (scikit-learn)": permuted,
    "Shapley values (shap)": shapley,
    "conditional importance (hidimstat)": conditional,
    "integrated gradients (captum)": integrated,
}


def run(name: str, method: str, seed: int, folder: Path) -> Run:
    """One method on one agent; kept beside the agent."""
    path = folder / f"{name}.{list(METHODS).index(method)}.peer{seed}.json"
    if not path.exists():
        one = actor(name, folder)
        played = play(one, ROWS, seed=1000 + seed)
        rows = played.observations.astype(np.float32)
        begun = time.process_time()
        found = METHODS[method](one, rows, played.episodes, seed)
        path.write_text(json.dumps(asdict(Run(name, method, seed, found, time.process_time() - begun))))
    return Run(**json.loads(path.read_text()))


def table(runs: Sequence[Run], folder: Path) -> str:
    """Of each method what it found of what matters, what it named that the network never gets, and CPU time."""
    rows = []
    for method in METHODS:
        some = [one for one in runs if one.method == method]
        counts = {"right": 0, "material": 0, "slight": 0, "moving": 0, "false": 0, "unseen": 0}
        for one in some:
            unseen = AGENTS[one.agent].unseen
            for group, effect in truth_of(one.agent, folder).items():
                kind = ("false", "unseen") if group in unseen else (
                    ("right", "material") if effect >= MATERIAL else ("slight", "moving")
                )  # fmt: skip
                counts[kind[1]] += 1
                counts[kind[0]] += group in one.found
        each = np.median([one.seconds for one in some])
        rows.append(
            (
                method,
                f"{counts['right']} of {counts['material']}",
                f"{counts['slight']} of {counts['moving']}",
                f"{counts['false']} of {counts['unseen']}",
                f"{each:.2f}",
            )
        )
    return TextTable(("method", "material found", "slight found", "false", "CPU s an agent"), rows).markdown()


def main() -> None:
    """Run what is missing, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where agents and runs are kept")
    parser.add_argument("--agents", nargs="*", default=list(PLAIN), choices=PLAIN, help="which")
    parser.add_argument("--runs", type=int, default=1, help="plays of each agent")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    runs = []
    for name in arguments.agents:
        for seed in range(arguments.runs):
            for method in METHODS:
                runs.append(run(name, method, seed, arguments.folder))
                print(f"{name}: {method}: {runs[-1].seconds:.2f} s, {', '.join(runs[-1].found)}", flush=True)
    write_table(PAGE, "benchmarks.asking_peers", table(runs, arguments.folder))
    print(f"Saved {PAGE}")


if __name__ == "__main__":
    main()
