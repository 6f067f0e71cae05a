"""Clones with and without what the agent does not use: the return that they reach, from few episodes.

python -m benchmarks.clones

A driver balances the cart-pole by angle and angular velocity. Its log also holds its last action (a copy-cat's favourite)
and eight sensors of noise. Clones of it play the environment that they are for; each log gives one clone of a kind.
"""

import gymnasium
import numpy as np

import policyspace

NAMES = ["position", "velocity", "angle", "angular_velocity", "last_action", *(f"noise_{i}" for i in range(8))]
WAYS = {
    "identified, ridge": {},
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


def main(num_logs=20, sizes=(40, 80, 160, 320)):
    """A table of mean lengths of play."""
    print(f"{'rows':>6}  " + "  ".join(f"{name:>30}" for name in WAYS) + "   (mean steps ± standard error, of 500)")
    for size in sizes:
        played = {name: [] for name in WAYS}
        for number in range(num_logs):
            log = policyspace.watch(WithLastAction(number), driver(number), 8, seed=number, features=NAMES)
            within = np.arange(log.num_rows) - np.searchsorted(log.episodes, log.episodes)
            log = log.take(within < size // 8)
            for name, words in WAYS.items():
                try:
                    made = policyspace.clone(log, compare=False, seed=number, **words)
                except policyspace.InputError:  # nothing is shown to be used: the clone of all features is the choice
                    made = policyspace.clone(log, compare=False, seed=number, answer="all")
                made.set_random_seed(number)
                play = policyspace.watch(
                    WithLastAction(1000 + number), lambda seen, made=made: made.predict(seen)[0], 5
                )
                played[name].append(play.num_rows / 5)
        cells = [f"{np.mean(v):.0f} ± {np.std(v, ddof=1) / np.sqrt(num_logs):.0f}" for v in played.values()]
        print(f"{size:>6}  " + "  ".join(f"{cell:>30}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
