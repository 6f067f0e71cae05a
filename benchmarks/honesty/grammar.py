"""Agents drawn at random: a kind is one word from each column of a grammar, and a log is one agent of that kind.

form × noise × dependence × memory × related sensors × labels or numbers × size. `kinds(draw)` draws kinds that nobody has
looked at: tests are tuned on one draw and judged on another.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.honesty.scenario import Array, Scenario, drifting, equal_episodes, inputs, network, smooth

Score = Callable[[Array], Array]
"""What the used inputs [n, u] ask for, [n], of any scale."""

UNLOGGED = ("hidden cause",)
"""Memories of the grammar whose causes no log holds: dependence on the related sensors is real there."""


@dataclass(frozen=True)
class Kind:
    """One word of each column of the grammar."""

    form: str
    noise: str
    rows: str
    memory: str
    sensors: str
    actions: str
    size: int

    @property
    def name(self) -> str:
        """All words; the number of a kind in its draw is no part of it."""
        return ", ".join([self.form, self.noise, self.rows, self.memory, self.sensors, self.actions, str(self.size)])

    @property
    def logged(self) -> bool:
        """Does the log hold every cause of the action, now or in the last four rows?"""
        return self.memory not in UNLOGGED


# -- Forms: random functions of the used inputs.


def _linear(rng: np.random.Generator, u: int) -> Score:
    w = rng.normal(size=u) + np.sign(rng.normal(size=u)) * 0.5
    return lambda x: x @ w


def _tree(rng: np.random.Generator, u: int) -> Score:
    """A tree of depth three, each input split at least once where there are few."""
    order = np.concatenate([rng.permutation(u), rng.integers(0, u, 7)])[:7]
    cuts, leaves = rng.normal(0, 0.7, 7), rng.normal(size=8)

    def value(x: Array) -> Array:
        node = np.zeros(len(x), dtype=int)
        for _ in range(3):
            node = 2 * node + 1 + (x[np.arange(len(x)), order[node]] > cuts[node])
        return leaves[node - 7]

    return value


def _form(name: str, rng: np.random.Generator, u: int) -> Score:
    """A random function of this form."""
    linear, other = _linear(rng, u), _linear(rng, u)
    centre = rng.normal(0, 0.7, u)
    forms: dict[str, Callable[[], Score]] = {
        "linear": lambda: linear,
        "quadratic": lambda: lambda x: linear(x) + 0.5 * (linear(x) ** 2 - other(x) ** 2) / u,
        "products": lambda: lambda x: linear(x) * other(x),
        "steps": lambda: lambda x: np.sign(linear(x) - 0.3) + np.sign(other(x) + 0.3),
        "tree": lambda: _tree(rng, u),
        "network": lambda: (lambda net: lambda x: net(x)[:, 0])(network(rng, (u, 12, 1), gain=2.0)),
        "distance": lambda: lambda x: np.sqrt(((x - centre) ** 2).sum(axis=1)),
        "minimum": lambda: lambda x: np.min(x * np.abs(centre + 1) + centre, axis=1),
        "angle": lambda: lambda x: np.arctan2(linear(x), other(x) + 0.5),
        "saturating": lambda: lambda x: np.tanh(3 * linear(x)),
        "wave": lambda: lambda x: np.sin(1.5 * linear(x)),
        "dead zone": lambda: lambda x: np.sign(linear(x)) * np.maximum(np.abs(linear(x)) - 0.8, 0),
    }
    return forms[name]()


FORMS = ("linear", "quadratic", "products", "steps", "tree", "network", "distance", "minimum", "angle", "saturating", "wave",
         "dead zone")  # fmt: skip
NOISES = ("even", "even", "growing with the state", "heavy tails", "small", "now and then anything")
ROWS = ("independent", "drifting", "drifting", "smooth", "some constant in an episode")
MEMORIES = ("none", "none", "none", "none", "delay", "mean of four", "habit", "learning", "hidden cause")
SENSORS = ("independent", "noisy copy", "echo of the output", "square", "lagged copy", "changing gain")
ACTIONS = ("numbers", "numbers", "two labels", "four labels")
SIZES = (500, 1000, 2000, 4000)


def kinds(draw: int, count: int = 48) -> tuple[Kind, ...]:
    """As many kinds as are asked for, each form as often as the others, all different."""
    rng, found = np.random.default_rng([0x6B696E64, draw]), dict[str, Kind]()
    while len(found) < count:
        form = FORMS[len(found) % len(FORMS)]
        words = [str(rng.choice(column)) for column in (NOISES, ROWS, MEMORIES, SENSORS, ACTIONS)]
        kind = Kind(form, *words, int(rng.choice(SIZES)))
        found.setdefault(kind.name, kind)
    return tuple(found.values())


# -- One log of a kind.


def log_of(kind: Kind, seed: int) -> Scenario:
    """An agent of this kind, its inputs and what it did."""
    rng = np.random.default_rng([0x6C6F67, seed])
    u, spare = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    if kind.form in ("products", "distance", "minimum", "angle"):
        u = max(u, 2)
    length = int(rng.choice([25, 50, 100]))
    m = kind.size // length
    n = m * length
    x = _states(kind.rows, rng, m, length, u + spare)
    score = _form(kind.form, rng, u)
    scale = 1 / max(float(np.std(score(x[:, :u]))), 1e-6)
    gains = 1 + np.linspace(0, 1.5, m).repeat(length) if kind.memory == "learning" else np.ones(n)
    hidden = drifting(rng, m, length, 1)[:, 0] if kind.memory == "hidden cause" else np.zeros(n)
    wanted = gains * scale * score(x[:, :u])
    sensor = _sensor(kind.sensors, rng, x, wanted, m, length, hidden)
    noise, anything, uniform = rng.standard_t(3, n) / np.sqrt(3), rng.random(n) < 0.1, rng.normal(size=n)
    even, gumbel = rng.normal(size=n), rng.gumbel(size=(n, 4))
    offsets = rng.normal(size=4)

    def means(features: Array) -> Array:
        now = gains * scale * score(features[:, :u])
        if kind.memory == "delay":
            now = _back(now, 2, length)
        elif kind.memory == "mean of four":
            now = np.mean([_back(now, lag, length) for lag in range(4)], axis=0)
        return now + hidden

    def spread(features: Array) -> Array:
        size = {"small": 0.2, "growing with the state": 0.4}.get(kind.noise, 1.0)
        more = 0.6 * np.abs(features[:, 0]) if kind.noise == "growing with the state" else 0.0
        return np.asarray(size + more * np.ones(n))

    def numbers(features: Array) -> Array:
        drawn = noise if kind.noise == "heavy tails" else even
        acted = means(features) + spread(features) * drawn
        acted = np.where(anything & (kind.noise == "now and then anything"), 2 * uniform, acted)
        return _habit(acted, length) if kind.memory == "habit" else acted

    def labels(features: Array) -> Array:
        k = 2 if kind.actions == "two labels" else 4
        levels = np.linspace(-1.2, 1.2, k)
        utility = -((means(features)[:, None] - levels) ** 2) * 2 / spread(features)[:, None] + 0.2 * offsets[:k]
        chosen = np.argmax(utility + gumbel[:, :k], axis=1)
        chosen = np.where(anything & (kind.noise == "now and then anything"), np.argmax(gumbel[:, :k], axis=1), chosen)
        if kind.memory == "habit":
            repeats = (np.arange(n) % length > 0) & (uniform > 0.6)
            for t in np.flatnonzero(repeats):
                chosen[t] = chosen[t - 1]
        return chosen

    features, agent = np.column_stack([x, sensor]), numbers if kind.actions == "numbers" else labels
    names, acted = inputs(features.shape[1]), agent(features)

    def moves(j: int) -> bool:
        """Does any action change when this input is permuted? A random tree, say, may have no use for one."""
        other = features.copy()
        other[:, j] = rng.permutation(other[:, j])
        return not np.array_equal(agent(other), acted)

    used = frozenset(name for j, name in enumerate(names) if moves(j))
    return Scenario(features, names, agent, used, kind.name, equal_episodes(m, length))


def _states(rows: str, rng: np.random.Generator, m: int, length: int, q: int) -> Array:
    """Inputs [m·length, q]."""
    if rows == "independent":
        return rng.normal(size=(m * length, q))
    if rows == "smooth":
        return smooth(rng, m, length, q)
    x = drifting(rng, m, length, q)
    if rows == "some constant in an episode":
        x[:, q - 1] = rng.normal(size=m).repeat(length)
    return x


def _sensor(name: str, rng: np.random.Generator, x: Array, wanted: Array, m: int, length: int, hidden: Array) -> Array:
    """A sensor that the agent does not use, but which is related to what it uses."""
    n = len(x)
    noise = rng.normal(size=n)
    gain = (1 + 0.5 * drifting(rng, m, length, 1)[:, 0]) if name == "changing gain" else 1.0
    signal = {
        "independent": 0 * noise,
        "noisy copy": 3 * x[:, 0],
        "echo of the output": 2 * wanted,
        "square": x[:, 0] ** 2,
        "lagged copy": 3 * _back(x[:, 0], 1, length),
        "changing gain": 3 * x[:, 0],
    }[name]
    return np.asarray(gain * signal + hidden + noise)


def _back(values: Array, lag: int, length: int) -> Array:
    """The value so many rows earlier; at the start of an episode its first one."""
    position = np.arange(len(values)) % length
    return values[np.arange(len(values)) - np.minimum(position, lag)]


def _habit(values: Array, length: int) -> Array:
    """Each action leans on the one before."""
    found = values.copy()
    for t in range(len(found)):
        if t % length:
            found[t] = values[t] + 0.5 * found[t - 1]
    return found
