"""Log-likelihoods and likelihood ratios by biogeme and xlogit, written to peers.json beside this script.

pip install biogeme==3.3.2 xlogit==0.2.7, then python make_peers.py; the models are those of make_numbers.R.
"""

import json
import os
import tempfile
from pathlib import Path

import biogeme.biogeme
import numpy as np
import pandas
import xlogit
from biogeme.database import Database
from biogeme.expressions import Beta, Numeric, Variable
from biogeme.models import loglogit

HERE = Path(__file__).resolve().parent


def shared(name, modes):
    """One coefficient: the columns that it is multiplied by, by alternative."""
    return {name: {mode: f"{name}_{mode}" for mode in modes}}


def own(name, column, modes):
    """One coefficient an alternative, of the same column."""
    return {f"{name}[{mode}]": {mode: column} for mode in modes}


def travel(available):
    """Groups of coefficients and one row a traveller, with the rule of make_numbers.R for what is not available."""
    long = pandas.read_csv(HERE / "travel_mode.csv")
    long["chosen"] = long["choice"] == "yes"
    gone = ((long["mode"] == "car") & (long["income"] < 20)) | ((long["mode"] == "air") & (long["travel"] > 120))
    long["available"] = (long["chosen"] | ~(gone & available)).astype(int)
    modes, attributes = ("air", "bus", "car", "train"), ("wait", "vcost", "travel", "gcost")
    wide = long.pivot(index="individual", columns="mode", values=[*attributes, "available"])
    wide.columns = [f"{name}_{mode}" for name, mode in wide.columns]
    first = long.groupby("individual").first()
    wide["income"], wide["choice"] = first["income"], long[long["chosen"]].set_index("individual")["mode"]
    groups = {name: shared(name, modes) for name in attributes} | {"income": own("income", "income", modes[:-1])}
    return modes, groups, wide.reset_index(drop=True)


def swissmetro(*names):
    """The same of Swissmetro, one row a choice; the car has no headway."""
    modes, wide = ("car", "metro", "train"), pandas.read_csv(HERE / "swissmetro.csv.gz")
    groups = {name: shared(name, modes[1:] if name == "headway" else modes) for name in names}
    return modes, groups, wide


MODELS = {
    "travel": lambda: travel(False),
    "travel available": lambda: travel(True),
    "swissmetro": lambda: swissmetro("minutes", "francs"),
    "swissmetro headway": lambda: swissmetro("minutes", "francs", "headway"),
}


def by_biogeme(modes, coefficients, wide):
    """The largest log-likelihood."""
    table = wide.assign(one=1.0, chosen=wide["choice"].map({mode: j for j, mode in enumerate(modes)}))
    table = table.drop(columns=["choice"]).select_dtypes("number").astype(float)
    numbers = {name: Beta(name, 0, None, None, 0) for name in coefficients}
    utilities = {
        j: sum((numbers[c] * Variable(by[mode]) for c, by in coefficients.items() if mode in by), Numeric(0))
        for j, mode in enumerate(modes)
    }
    there = {j: Variable(f"available_{mode}") for j, mode in enumerate(modes)}
    likelihood = loglogit(utilities, there, Variable("chosen"))
    model = biogeme.biogeme.BIOGEME(
        Database("choices", table), likelihood, tolerance=1e-6, generate_html=False, generate_yaml=False,
        save_iterations=False, calculating_second_derivatives="analytical",
    )  # fmt: skip
    model.model_name = "choices"
    return model.estimate().final_log_likelihood


def by_xlogit(modes, coefficients, wide):
    """The largest log-likelihood."""
    n, table = len(wide), wide.assign(one=1.0)
    columns = [
        np.column_stack([table[by[mode]] if mode in by else np.zeros(n) for mode in modes]).ravel()
        for by in coefficients.values()
    ]
    there = np.column_stack([table[f"available_{mode}"] for mode in modes]).ravel()
    chosen = np.column_stack([table["choice"] == mode for mode in modes]).ravel()
    scale = np.array([np.abs(column).max() for column in columns])
    model = xlogit.MultinomialLogit()
    model.fit(
        np.column_stack(columns) / scale, chosen * 1.0, list(coefficients), np.tile(modes, n),
        np.repeat(np.arange(n), len(modes)), avail=there, verbose=0, tol_opts={"ftol": 1e-15, "gtol": 1e-9}, maxiter=5000,
    )  # fmt: skip
    return model.loglikelihood


def numbers(fit, model):
    """The log-likelihood, and twice what is lost of it without each group."""
    modes, groups, wide = model
    constants = own("intercept", "one", modes[:-1])

    def best(names):
        return float(fit(modes, constants | {c: by for name in names for c, by in groups[name].items()}, wide))

    full = best(groups)
    ratios = {name: 2 * (full - best([other for other in groups if other != name])) for name in groups}
    return {"log_likelihood": full} | ratios


def main():
    """All models by both."""
    peers = {"biogeme": by_biogeme, "xlogit": by_xlogit}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # biogeme writes its settings where it runs
        found = {peer: {name: numbers(fit, model()) for name, model in MODELS.items()} for peer, fit in peers.items()}
    (HERE / "peers.json").write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
