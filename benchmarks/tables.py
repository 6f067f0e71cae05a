"""How many effects of the textbook are found in classic tables: `python -m benchmarks.tables FOLDER`.

The folder holds tables as CSV and `r.json`, by table: the action `y`, the features `x`, and R's p-values `p` of
likelihood-ratio tests. A textbook effect is a feature whose p by Holm is at most .05. Each table is read as it is sorted,
and as one whose rows have no order; counted are effects found under a guarantee, and features beyond the textbook.
"""

import argparse
import json
import time
from pathlib import Path

import polars

import policyspace
from policyspace.errors import InputError
from policyspace.inference import holm

LEVEL = 0.05
WAYS: dict[str, dict[str, bool]] = {"as shipped": {}, "exchangeable": {"exchangeable": True}}


def textbook(p_values: dict[str, float]) -> set[str]:
    """The features that regression finds, by Holm."""
    adjusted = holm(polars.Series(list(p_values.values())).to_numpy())
    return {name for name, p in zip(p_values, adjusted, strict=True) if p <= LEVEL}


def main() -> None:
    """Print a line a table, and the sums."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    sums = {way: [0, 0] for way in WAYS}
    effects = 0
    print("| table | rows | effects | way | test | guarantee | found | beyond | CPU s |\n|---|" + "---|" * 8)
    for name, known in json.loads((folder / "r.json").read_text()).items():
        frame = polars.read_csv(folder / f"{name}.csv", infer_schema_length=None)
        if known["kind"] == "lm":
            frame = frame.with_columns(polars.col(known["y"]).cast(float))
        wanted = textbook(known["p"])
        effects += len(wanted)
        for way, words in WAYS.items():
            start = time.process_time()
            try:
                answer = policyspace.identify(frame, known["y"], features=known["x"], **words)
            except InputError as error:
                print(f"| {name} | {known['n']} | {len(wanted)} | {way} | refused: {error} |")
                continue
            used = set(answer.selected)
            found = [len(used & wanted), len(used - wanted)]
            if answer.guarantee is not None:
                sums[way] = [one + other for one, other in zip(sums[way], found, strict=True)]
            told = "yes" if answer.guarantee is not None else "no"
            cells = [name, known["n"], len(wanted), way, answer.test.name, told, *found]
            print("| " + " | ".join(map(str, cells)) + f" | {time.process_time() - start:.1f} |", flush=True)
    for way, (found, beyond) in sums.items():
        print(
            f"{way}: {found} of {effects} textbook effects found under a guarantee, {beyond} features beyond the textbook"
        )


if __name__ == "__main__":
    main()
