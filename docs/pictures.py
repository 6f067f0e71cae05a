"""Makes the pictures of README and docs: `python docs/pictures.py [NAME …]`; all that are made here unless some are named.

Beside them `images/record.json` says by which code and to which bytes each was drawn; a test looks whether that is still so.
"""

import ast
import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import policyspace

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
RECORD = IMAGES / "record.json"


@dataclass(frozen=True)
class Picture:
    """How a picture is made, and the modules that draw it."""

    make: Callable[[Path], None]
    drawn_by: tuple[str, ...] = ("report/figures.py",)


def effects(path: Path) -> None:
    """The driver's effects, as `identify --plot` draws them."""
    from policyspace.report.figures import plot_effects

    plot_effects(policyspace.identify(policyspace.load_demo()), path)


def curves(path: Path) -> None:
    """What the driver does as each feature changes, by the linear policy."""
    from policyspace.report.figures import draw_curves, save

    answer = policyspace.identify(policyspace.load_demo(), policy="boltzmann")
    save(draw_curves(answer), path)


def asked(path: Path) -> None:
    """README's agent, asked."""
    from policyspace.asking.page import plot_effects

    plot_effects(policyspace.ask(lambda seen: int(seen[2] + seen[3] > 0), "CartPole-v1", episodes=5), path)


def by_command(*words: str) -> Callable[[Path], None]:
    """A picture that a command of the pages saves; FILE is where."""

    def make(path: Path) -> None:
        from policyspace.data.examples import trials

        with tempfile.TemporaryDirectory() as folder:
            trials().write_csv(Path(folder) / "policyspace-mice.csv")
            command = [sys.executable, "-m", "policyspace", *(str(path) if w == "FILE" else w for w in words)]
            subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)

    return make


MICE = ("identify", "policyspace-mice.csv", "--actions", "choice", "--features", "contrast,tone")

PICTURES = {
    "effects.svg": Picture(effects),
    "curves.svg": Picture(curves),
    "asked-cartpole.svg": Picture(asked, ("asking/page.py", "report/figures.py")),
    "mice.png": Picture(by_command(*MICE, "--by", "mouse", "--episodes", "session", "--lags", "1", "--plot", "FILE")),
    "subjects.png": Picture(by_command(*MICE, "--subjects", "mouse", "--subject-plot", "FILE")),
}

ELSEWHERE = {
    "asked.svg": "POLICYSPACE_REWRITE_PAGES=1 pytest tests/test_which_observations.py",
    "configured-continuous-gridworld.png": "policyspace configure continuous-gridworld --out run",
    "designs-continuous-gridworld.svg": "python -m benchmarks.designs",
    "designs-gridworld.svg": "python -m benchmarks.designs",
    "designs-minigolf-features.svg": "python -m benchmarks.designs",
    "putters.svg": "python -m benchmarks.recommendations",
}
"""Pictures that take longer, and what makes them."""


def code_digest(modules: tuple[str, ...]) -> str:
    """Of what modules do, whatever their comments and docstrings say."""
    found = hashlib.sha256()
    for module in modules:
        tree = ast.parse((ROOT / "src" / "policyspace" / module).read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            inside = getattr(node, "body", None)
            if isinstance(inside, list):
                words = (ast.Constant,)
                node.body = [one for one in inside if not (isinstance(one, ast.Expr) and isinstance(one.value, words))]  # type: ignore[attr-defined]
        found.update(ast.dump(tree).encode())
    return found.hexdigest()[:16]


def file_digest(path: Path) -> str:
    """Of the bytes of a picture."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def main(names: list[str]) -> None:
    """Make the pictures, and record by what."""
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    for name in names or PICTURES:
        picture = PICTURES[name]
        picture.make(IMAGES / name)
        record[name] = {"code": code_digest(picture.drawn_by), "file": file_digest(IMAGES / name)}
        print(f"{name} {(IMAGES / name).stat().st_size // 1000} kB", flush=True)
        RECORD.write_text(json.dumps(record, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
