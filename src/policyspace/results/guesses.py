"""The literal procedure with one of its guesses changed → whether what it finds hangs on the guess."""

import polars as pl

from policyspace.experiments.records import Record
from policyspace.report.estimates import Mean
from policyspace.results.error_rates import MISSED, WRONG, units_of
from policyspace.results.frames import difference, groups, shares, tidy
from policyspace.results.panel import Panel

AS_GUESSED = "as everywhere else"


def guesses_panels(name: str, title: str, records: list[Record]) -> list[Panel]:
    """One panel, if there are records of other guesses: α̂ and β̂ of the same agents by each."""
    other = [r for r in records if r.setting["part"] == "guesses"]
    if not other:
        return []
    n, seeds = other[0].setting["num_episodes"], {r.setting["seed"] for r in other}
    same = [
        r for r in records
        if r.setting["part"] == "episodes" and r.setting["num_episodes"] == n and r.setting["seed"] in seeds
    ]  # fmt: skip
    found = groups(outcomes(same + other), "guess")
    gains = {guess: difference(own, MISSED, "way", "none", "configured") for guess, own in found.items()}
    told = "; ".join(f"{guess}, {gain.rounded(2)}" for guess, gain in gains.items() if gain is not None)
    return [
        Panel(
            f"{name}-guesses",
            f"{title}: other guesses where the paper is silent",
            "Do the literal results hang on settings that the paper does not state?",
            "our own",
            f"At n = {n}, on {len(seeds)} agents, configuring lowers β̂ by: {told}.",
            None,
            (
                "guess", "agents", "β̂ without configuration", "β̂ configured", "α̂ without configuration",
                "α̂ configured", "gain in β̂",
            ),
            [(guess, str(len(seeds)), *_row(found[guess]), _words(gains[guess])) for guess in found],
            {guess: None if gain is None else gain.numbers for guess, gain in gains.items()},
        )
    ]  # fmt: skip


def outcomes(records: list[Record]) -> pl.DataFrame:
    """A row an agent, guess and way."""
    return tidy(
        records,
        lambda r: [
            {
                "guess": r.setting.get("guess", AS_GUESSED),
                "way": "none" if r.setting["design"] == "none" else "configured",
                "seed": r.setting["seed"],
                MISSED: r.result[MISSED],
                WRONG: r.result[WRONG],
            }
            | units_of(r)
        ],
    )


def _row(own: pl.DataFrame) -> list[str]:
    """β̂, then α̂, each without configuration and with it."""
    found = {rate: shares(own, rate, "way") for rate in (MISSED, WRONG)}
    return [_words(found[rate].get(way)) for rate in (MISSED, WRONG) for way in ("none", "configured")]


def _words(mean: Mean | None) -> str:
    return "—" if mean is None else mean.rounded(3)
