"""Clones with and without what the agent does not use: the return that they reach, from few episodes.

python -m benchmarks.clones

Peers are scikit-learn's logistic regression with a ridge chosen by cross-validation, and, where it is installed, BC of the
library imitation with its defaults.

A driver balances the cart-pole by angle and angular velocity. Its log also holds its last action (a copy-cat's favourite)
and eight sensors of noise. Clones of it play the environment that they are for; each log gives one clone of a kind.
"""

from importlib.util import find_spec

import gymnasium
import numpy as np
from sklearn.linear_model import LogisticRegressionCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import policyspace

NAMES = ["position", "velocity", "angle", "angular_velocity", "last_action", *(f"noise_{i}" for i in range(8))]
WAYS = {
    "identified, as held-out episodes say": {},
    "identified, others dropped": {"undecided": "drop"},
    "all features, ridge": {"answer": "all"},
    "all features, no penalty": {"answer": "all", "penalty": 1e-6},
    "the true features, no penalty": {"answer": ["angle", "angular_velocity"], "penalty": 1e-6},
}


class WithLastAction(gymnasium.Wrapper):
    """The cart-pole, which also shows the last action and noise."""

    def __init__(self, seed=0):
        super().__init__(gymnasium.make("CartPole-v1"))
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (len(NAMES),))
        self.rng, self.last = np.random.default_rng(seed), 0

    def seen(self, observation):
        """What is shown."""
        return np.concatenate([observation, [2.0 * self.last - 1], self.rng.normal(size=8)])

    def reset(self, **words):
        """With a last action that nobody took."""
        observation, info = self.env.reset(**words)
        self.last = int(self.rng.integers(2))
        return self.seen(observation), info

    def step(self, action):
        """As it is, and the action is kept."""
        observation, *rest = self.env.step(int(action))
        self.last = int(action)
        return self.seen(observation), *rest


def driver(seed):
    """By chance, more often to the side where the pole falls."""
    rng = np.random.default_rng(seed)
    return lambda seen: int(rng.random() < 1 / (1 + np.exp(-(12 * seen[2] + 4 * seen[3]))))


def cloned(log, words, number):
    """A clone of ours, as something that plays."""
    try:
        made = policyspace.clone(log, compare=False, seed=number, **words)
    except policyspace.InputError:  # nothing is shown to be used: the clone of all features is the choice
        made = policyspace.clone(log, compare=False, seed=number, answer="all")
    made.set_random_seed(number)
    return lambda seen: made.predict(seen)[0]


def by_scikit_learn(log, number):
    """Logistic regression of standardised features, which plays by chance as the driver does."""
    model = make_pipeline(StandardScaler(), LogisticRegressionCV(Cs=10, cv=5, scoring="neg_log_loss", max_iter=2000))
    model.fit(log.features, log.actions)
    rng = np.random.default_rng(number)
    return lambda seen: int(rng.random() < model.predict_proba(seen[None])[0, 1])


def by_imitation(log, number):
    """Behavioural cloning with the library's network and settings."""
    from imitation.algorithms.bc import BC
    from imitation.data.types import Transitions

    env, seen = WithLastAction(number), log.features.astype(np.float32)
    ends = np.append(np.diff(log.episodes) != 0, True)
    rows = Transitions(
        obs=seen, acts=log.actions, infos=np.array([{}] * log.num_rows), next_obs=np.roll(seen, -1, axis=0), dones=ends
    )
    made = BC(
        observation_space=gymnasium.spaces.Box(-np.inf, np.inf, (len(NAMES),), np.float32), action_space=env.action_space,
        rng=np.random.default_rng(number), demonstrations=rows, batch_size=32,
    )  # fmt: skip
    made.train(n_epochs=20, progress_bar=False, log_interval=10**9)
    return lambda seen: int(made.policy.predict(np.asarray(seen, np.float32), deterministic=False)[0])


PEERS = {"scikit-learn, ridge": by_scikit_learn}
if find_spec("imitation") is not None:
    PEERS["imitation, BC"] = by_imitation


def main(num_logs=20, sizes=(40, 160, 320, 640), first=2000):
    """A table of mean lengths of play."""
    names = [*WAYS, *PEERS]
    print(f"{'rows':>6}  " + "  ".join(f"{name:>36}" for name in names) + "   (mean steps ± standard error, of 500)")
    for size in sizes:
        played = {name: [] for name in names}
        for number in range(first, first + num_logs):
            log = policyspace.watch(WithLastAction(number), driver(number), 8, seed=number, features=NAMES)
            within = np.arange(log.num_rows) - np.searchsorted(log.episodes, log.episodes)
            log = log.take(within < size // 8)
            players = {name: cloned(log, words, number) for name, words in WAYS.items()}
            players |= {name: make(log, number) for name, make in PEERS.items()}
            for name, player in players.items():
                play = policyspace.watch(WithLastAction(1000 + number), player, 5)
                played[name].append(play.num_rows / 5)
        cells = [f"{np.mean(v):.0f} ± {np.std(v, ddof=1) / np.sqrt(num_logs):.0f}" for v in played.values()]
        print(f"{size:>6}  " + "  ".join(f"{cell:>36}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
