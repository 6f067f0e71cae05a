"""The example data sets that the package contains."""

from dataclasses import replace
from importlib.resources import as_file, files
from typing import TYPE_CHECKING

import numpy as np

from policyspace.data.files import read
from policyspace.data.origin import Origin
from policyspace.data.sample import Sample

if TYPE_CHECKING:
    import polars


# -- The embedded data set: a simulated driver, made here, with the truth written beside it.

SEED = 2026
STORY = (
    "A simulated driver chooses to brake, coast or accelerate. Its log holds four sensors, the radio's volume and the "
    "weather.\nWhich of them does it use?"
)
TRUTH = ("speed", "front_sensor", "left_sensor")
ACTIONS = ("brake", "coast", "accelerate")


def make() -> Sample:
    """The log from its seed: 30 episodes of 20 steps of an agent that sees speed, front_sensor and left_sensor only."""
    rng = np.random.default_rng(SEED)
    n = 600
    speed = np.clip(rng.gamma(8.0, 3.0, n), 0, 60)
    front, left = rng.beta(2, 1.5, n), rng.beta(2, 2, n)
    right = np.clip(1.0 - left + rng.normal(0, 0.25, n), 0, 1)  # the two sides of a road go together
    radio = rng.integers(0, 11, n).astype(float)
    weather = rng.choice(["fog", "rain", "sun"], n, p=[0.2, 0.3, 0.5])
    # Against coasting: brake when fast or near, accelerate when slow and free; the left side counts less.
    brake = 0.09 * (speed - 24) - 3.0 * (front - 0.55) - 1.5 * (left - 0.5)
    accelerate = -0.06 * (speed - 24) + 2.5 * (front - 0.55) + 2.5 * (left - 0.5)
    logits = np.stack([brake, np.zeros(n), accelerate], axis=1)
    action = np.argmax(logits + rng.gumbel(size=logits.shape), axis=1)
    import polars

    frame = polars.DataFrame(
        {
            "speed": speed.round(2),
            "front_sensor": front.round(3),
            "left_sensor": left.round(3),
            "right_sensor": right.round(3),
            "radio_volume": radio,
            "weather": weather,
            "action": np.array(ACTIONS)[action],
            "episode": np.arange(n) // 20,
        }
    )
    data = Sample.from_frame(frame, "action", episodes="episode", reference="coast")
    return replace(data, origin=Origin(ground_truth=TRUTH, other={"seed": SEED, "story": STORY}))


def load_demo() -> Sample:
    """The log of a simulated driver, with what it really uses written beside it.

    Returns
    -------
    Sample
        600 rows in 30 episodes: four sensors, the radio's volume and the weather; the actions brake, coast and accelerate.

    Examples
    --------
    >>> import policyspace
    >>> log = policyspace.load_demo()
    >>> log.num_rows, log.origin.ground_truth
    (600, ('speed', 'front_sensor', 'left_sensor'))
    """
    with as_file(files("policyspace").joinpath("data/driver.csv")) as path:
        return read(path)


# -- Simulated trials of mice that turn a wheel to the side of a grating: a file as laboratories keep it.

MICE_SEED = 7
NUM_MICE, SESSIONS, TRIALS = 12, 4, 60
IDLE = ("m04", "m11")
"""Mice that never look at the grating."""


def trials() -> "polars.DataFrame":
    """One row a trial; every mouse has a bias, a habit and (but two) a use for the contrast; nobody minds the tone."""
    import polars

    rng = np.random.default_rng(MICE_SEED)
    rows = []
    for number in range(1, NUM_MICE + 1):
        mouse = f"m{number:02d}"
        look = 0.0 if mouse in IDLE else rng.uniform(1.2, 2.4)
        bias, habit = rng.normal(0, 0.3), rng.uniform(0.3, 1.0)
        for session in range(1, SESSIONS + 1):
            last = 0.0
            for trial in range(1, TRIALS + 1):
                contrast, tone = rng.choice([-1.0, -0.5, -0.25, 0.25, 0.5, 1.0]), rng.choice(["high", "low"])
                right = rng.random() < 1 / (1 + np.exp(-(look * contrast + bias + habit * last)))
                last = 1.0 if right else -1.0
                side = "right" if right else "left"
                rows.append((mouse, f"{mouse}-{session}", trial, contrast, tone, side, int(last * contrast > 0)))
    names = ["mouse", "session", "trial", "contrast", "tone", "choice", "reward"]
    return polars.DataFrame(rows, schema=names, orient="row")
