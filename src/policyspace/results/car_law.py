"""Records of the car → the law of λ of sensors that are not owned, by each way of fitting a network."""

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from policyspace.experiments.records import Record
from policyspace.fits.law import ChiSquare
from policyspace.report.estimates import Rate
from policyspace.report.plots import legend_below, spaced_ticks
from policyspace.report.style import AMBER, BLUE, DASHED, GREEN, INK, PURPLE, RED, WIDTH, bare, new_figure
from policyspace.results.frames import groups, tidy
from policyspace.results.panel import Panel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TESTS = {
    "adam-best-0.01": ("χ², Adam's best point from U(±0.01)", BLUE),
    "adam-last-0.01": ("χ², Adam's last point from U(±0.01)", GREEN),
    "adam-best-1": ("χ², Adam's best point from U(±1)", AMBER),
    "adam-last-1": ("χ², Adam's last point from U(±1)", PURPLE),
    "wilks": ("χ², full maximisation", RED),
    "universal": ("universal inference", GREEN),
    "lean": ("lean test", BLUE),
}
"""How sensors are tested: by the paper's own fits, by the highest peak that is found, and by tests that need no χ²."""
DEGREES = 8
"""Weights that leave one sensor."""


def not_owned(records: list[Record]) -> pl.DataFrame:
    """A row a driver that learned, number of episodes, χ² test and sensor that is not owned: its λ, all others in."""

    def rows(record: Record) -> list[dict[str, Any]]:
        tests = [name for name in TESTS if name in record.result and TESTS[name][0].startswith("χ²")]
        return [
            {"num_episodes": record.setting["num_episodes"], "test": test, "statistic": float(value)}
            for test in tests
            for sensor, value in record.result[test]["statistics"].items()
            if sensor not in record.result["owned"]
        ]

    return tidy([r for r in records if not r.result["failed"]], rows)


def law_panels(records: list[Record], level: float) -> list[Panel]:
    """λ of sensors that are not owned against χ²_8, which Wilks' theorem promises where a policy is identifiable."""
    statistics = not_owned(records)
    return [] if statistics.is_empty() else [_law_panel(statistics, level)]


def _law_panel(statistics: pl.DataFrame, level: float) -> Panel:
    critical = ChiSquare().critical(level / 5, DEGREES)
    rows = []
    for (n, test), own in groups(statistics.sort("num_episodes", maintain_order=True), "num_episodes", "test").items():
        values = own["statistic"].to_numpy()
        above_it, negative = Rate(int((values > critical).sum()), len(values)), int((values < 0).sum())
        rows.append((n, test, float(np.median(values)), above_it, negative))
    most = max(n for n, *_ in rows)
    said = "; ".join(
        f"{TESTS[test][0]}: {share.words} above it, median {_shown(median)}, {negative} of {share.num_runs} negative"
        for n, test, median, share, negative in rows
        if n == most
    )
    return Panel(
        "car-law",
        "Car: the law of λ of sensors that are not owned",
        f"Does λ follow χ² with {DEGREES} degrees of freedom where a sensor is not owned, so that it is above "
        f"{critical:.1f} for a share δ/5 = {level / 5:g} of them?",
        "our own",
        f"At {most} episodes, {said}; the median of χ² is 7.3. {_when({test for _, test, *_ in rows})}",
        _draw(statistics, critical),
        ("test", "episodes", "sensors", "median of λ", f"above {critical:.1f}", "negative"),
        [
            (TESTS[test][0], str(n), str(share.num_runs), _shown(median), share.words, str(negative))
            for n, test, median, share, negative in rows
        ],
        {
            "critical": critical,
            "laws": [
                {"test": test, "num_episodes": n, "median": median, "above": share.value, "negative": negative}
                for n, test, median, share, negative in rows
            ],
        },
    )


def _shown(number: float) -> str:
    return f"{number:.1f}".replace("-", "−")


def _when(tests: set[str]) -> str:
    """When χ² works on a network, and when not."""
    if "wilks" in tests:
        return (
            "A network is not identifiable: full maximisation goes on to peaks that explain noise, and λ is then no longer "
            "to be compared with χ²."
        )
    return (
        "So few steps of Adam end before the weights of such a sensor have explained the noise, and λ stays small, or is "
        "negative where the larger set ended lower: on a network χ² works by early stopping, as far as it does; where it "
        "does not, the panel above says."
    )


def _draw(statistics: pl.DataFrame, critical: float) -> "Figure":
    """A plot a test and number of episodes: quantiles of λ against those of χ²; on the diagonal they have the same law."""
    sizes, tests = statistics["num_episodes"].unique().sort().to_list(), statistics["test"].unique(maintain_order=True)
    title = "Car: λ of sensors that are not owned, against its law"
    figure = new_figure(1.3 + 1.9 * len(tests), title, width=max(WIDTH, 2.6 * len(sizes) + 1))
    grid = figure.subplots(len(tests), len(sizes), sharex=True, sharey=True, squeeze=False)
    line, found = np.linspace(0, 26, 50), groups(statistics, "test", "num_episodes")
    for axes, (test, n) in zip(grid.flat, product(tests, sizes), strict=True):
        bare(axes)
        axes.plot(line, line, color=INK, linewidth=1, label=f"χ² with {DEGREES} degrees of freedom")
        axes.axhline(critical, color=INK, linewidth=1, linestyle=DASHED, label=f"critical value, {critical:.1f}")
        values = np.sort(found[test, n]["statistic"].to_numpy())
        shares = 1 - (np.arange(len(values)) + 0.5) / len(values)
        quantiles = [ChiSquare().critical(share, DEGREES) for share in shares]
        words, colour = TESTS[test]
        axes.plot(quantiles, values, ".-", color=colour, markersize=4, linewidth=1.2)
        axes.set_title(f"{words.removeprefix('χ², ')}, {n} episodes".replace(" from", "\nfrom"), fontsize=9, loc="left")
    grid[0, 0].set_yscale("symlog", linthresh=30, linscale=3)  # of all, which share it
    spaced_ticks(grid[0, 0], (0, 10, 20, 100, 1000, 10000, -100, -10000, 30, -20, -1000))
    for axes in grid[-1]:
        axes.set_xlabel("quantile of χ²")
    for axes in grid[:, 0]:
        axes.set_ylabel("quantile of λ")
    legend_below(grid[0, 0])
    return figure
