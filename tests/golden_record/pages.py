"""Problems of what people read: pages, pictures, what commands print, and answers as text.

Words may be changed on purpose. So that this can be told from content that is lost, what is counted and the numbers in the
words are recorded beside a digest of them.
"""

import gzip
import hashlib
import re
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import policyspace

from . import data_sets as data
from .command_line import said
from .environments import BOUNDS, Driver, lane
from .reproducing import panels
from .simulating import told_by

RECORDS = Path(__file__).parent / "miniature.sqlite.gz"
"""The records of all experiments in miniature, from which their pages are made without running them again."""

NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
REFERENCE = re.compile(r' (?:id|clip-path|clipPath|xlink:href|href|aria-labelledby)="[^"]*"|url\(#[^)]*\)')


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def without_version(text: str) -> str:
    """Versions of the package and of its source, moments and folders of this run say nothing of an answer."""
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\+00:00)?( UTC)?", "MOMENT", text)
    text = re.sub(r"(/[\w.+-]+)+/(?=[\w-]+\.sqlite)", "FOLDER/", text)
    return re.sub(rf"\d+\.\d+\.\d+\+[0-9a-f]{{8}}|{re.escape(policyspace.__version__)}", "VERSION", text)


class Page(HTMLParser):
    """The words of a page, its headings, and how many of everything it has; pictures are looked at apart."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.headings: list[str] = []
        self.tags: Counter[str] = Counter()
        self._inside: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags[tag] += "svg" not in self._inside
        if tag not in ("meta", "link", "br", "img", "hr", "input", "col", "wbr"):
            self._inside.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.tags[tag] += "svg" not in self._inside

    def handle_endtag(self, tag: str) -> None:
        while self._inside and self._inside.pop() != tag:
            pass

    def handle_data(self, text: str) -> None:
        if not text.strip() or {"style", "script", "svg"} & {*self._inside}:
            return
        self.words.append(text.strip())
        if self._inside and self._inside[-1] in ("h1", "h2"):
            self.headings.append(text.strip())


def page(path: Path) -> dict[str, Any]:
    text = without_version(path.read_text(encoding="utf-8"))
    read = Page(text)
    words = "\n".join(read.words)
    return {
        "headings": read.headings,
        "tags": {tag: read.tags[tag] for tag in ("table", "tr", "td", "th", "section", "details", "svg", "a")},
        "numbers": [len(NUMBER.findall(words)), digest(" ".join(NUMBER.findall(words)))],
        "words": [len(words.split()), digest(words)],
        "pictures": [picture(svg) for svg in re.findall(r"<svg.*?</svg>", text, re.DOTALL)],
    }


def picture(svg: str) -> list[Any]:
    """How many lines, labels and marks, and a digest of them in any order, for what overlaps may be drawn in any."""
    tags = Counter(re.findall(r"<(path|use|text|image|g)\b", svg))
    body = svg[svg.find("</metadata>") + 1 :]
    lines = [NUMBER.sub(lambda n: f"{float(n[0]):.1f}", line) for line in REFERENCE.sub("", body).splitlines()]
    return [tags["path"], tags["use"], tags["text"], tags["image"], digest("\n".join(sorted(lines)))]


# -- answers as pages, pictures and text ---------------------------------------------------------------------------------

PEOPLE = {"subjects": "who", "features": data.NAMES}
ANSWERS: dict[str, Any] = {
    "likelihood ratio": lambda: policyspace.identify(data.rows_alone(True), "action", test="wilks"),
    "amounts": lambda: policyspace.identify(data.frame(False), "action", episodes="run", test="wilks"),
    "lean": lambda: policyspace.identify(data.one_long_log(False), "action"),
    "subjects": lambda: policyspace.identify(data.of_people(True), "action", **PEOPLE, test="robust"),
    "no promise": lambda: policyspace.identify(data.one_long_log(True), "action", test="wilks"),
    "supports": lambda: policyspace.identify(data.frame(True), "action", rule="combinatorial", test="wilks"),
    "parameters": lambda: policyspace.identify(data.rows_alone(True), "action", groups="parameter", test="wilks"),
    "separated": lambda: policyspace.identify(*data.separated()),
    "lagged actions": lambda: policyspace.identify(data.in_episodes(True), "action", episodes="run", lags=1),
    "choices": lambda: policyspace.identify(
        data.trips(), "mode", policy=policyspace.ChoiceLinear(attributes={"cost": "cost_*"}), test="wilks"
    ),
    "plan": lambda: policyspace.plan(*data.boltzmann(actions=3)),
}


def reported(name: str, folder: Path) -> dict[str, Any]:
    """An answer as a page, as text, for LaTeX and for notebooks."""
    answer = ANSWERS[name]()
    answer.report(folder / "page.html")
    texts = {"text": str(answer), "LaTeX": answer.to_latex("A caption."), "HTML": answer._repr_html_()}
    found = {kind: [len(text.splitlines()), digest(without_version(text))] for kind, text in texts.items()}
    return {"page": page(folder / "page.html"), "sentence": answer.sentence, **found}


def drawn(arguments: tuple[str, ...], folder: Path) -> dict[str, Any]:
    """The picture that a command saves."""
    data.of_people(True).write_csv(folder / "log.csv")
    code, words = said(*arguments, folder=folder)
    assert code == 0, words
    return {"picture": picture((folder / "picture.svg").read_text(encoding="utf-8"))}


def of_study(world: str, folder: Path) -> dict[str, Any]:
    """The page of a study after two rounds, and its pictures."""
    common: dict[str, Any] = {"max_rounds": 1, "episodes": 12, "seed": 5, "design": "uniform"}
    if world == "lane":
        made = policyspace.Study.create(folder / "study.sqlite", env=lane, parameters=BOUNDS, **common)
        agent = Driver()
        while made.play(agent) is not None:
            pass
    else:
        made, tell = policyspace.Study.create(folder / "study.sqlite", world, **common), told_by(world)
        for number in range(2):
            request = made.ask()
            assert request is not None
            made.tell(tell(number, request.configuration))
    made.report(folder / "page.html")
    status = ("study", "status", "study.sqlite", "--plot", "evidence.svg")
    if world != "lane":
        status = (*status, "--rounds", "rounds.svg")
    code, words = said(*status, folder=folder)
    assert code == 0, words
    pictures = {file.stem: picture(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.svg"))}
    return {"page": page(folder / "page.html"), "pictures": pictures, "said": lines(words)}


def of_experiment(name: str, folder: Path) -> dict[str, Any]:
    """The numbers, the verdicts and the page of an experiment of the paper, from records of its miniature."""
    made = folder / "results"
    made.mkdir()
    with gzip.open(RECORDS) as packed, (made / "records.sqlite").open("wb") as records:
        shutil.copyfileobj(packed, records)
    before = count(made / "records.sqlite")
    code, words = said("reproduce", name, "--quick", "--jobs", 1, folder=folder)
    assert code == 0, words
    files = sorted(path.relative_to(made).as_posix() for path in made.rglob("*.svg"))
    again = count(made / "records.sqlite") - before
    return {"run again": again, **panels(name, made), "page": page(made / "index.html"), "files": files}


def count(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("SELECT count(*) FROM records").fetchone()[0])


# -- what commands print -------------------------------------------------------------------------------------------------


def lines(words: str) -> list[str]:
    """What was said, line by line; how wide a table is drawn says nothing."""
    kept = [re.sub(r"[─━═\s]+", " ", line).strip() for line in without_version(words).splitlines()]
    return [line for line in kept if line]


def printed(commands: tuple[str, ...], folder: Path) -> list[list[Any]]:
    """The exit code and the words of commands that are run one after the other beside some files."""
    data.rows_alone(True, 200).write_csv(folder / "labels.csv")
    data.frame(False).write_csv(folder / "amounts.csv")
    data.of_people(True, 6, 50).write_csv(folder / "people.csv")
    data.trips().write_csv(folder / "trips.csv")
    data.long_trips().write_parquet(folder / "long.parquet")
    policyspace.write(told_by("minigolf")(0, {}), folder / "golf.csv")
    found = []
    for command in commands:
        code, words = said(*command.split(), folder=folder)
        found.append([code, *lines(words)])
    return found


WIDE = "trips.csv --action mode --attributes cost=cost_*,time=time_* --available av_* --features income"
COMMANDS: dict[str, tuple[str, ...]] = {
    "identify labels": ("identify labels.csv --action action",),
    "identify amounts": ("identify amounts.csv --action action --episode run --weight count --test wilks",),
    "identify, lean": ("identify labels.csv --action action --test lean --seed 3",),
    "identify, combinatorial": ("identify labels.csv --action action --test wilks --rule combinatorial",),
    "identify, coefficients": ("identify labels.csv --action action --coefficients wald",),
    "identify, profile": ("identify amounts.csv --action action --coefficients profile --test wilks",),
    "identify by person": ("identify people.csv --action action --by who --features near,far,left",),
    "identify subjects": ("identify people.csv --action action --subjects who --features near,far,left --test robust",),
    "follow": ("identify amounts.csv --action action --episode run --follow",),
    "follow labels": ("identify labels.csv --action action --follow --budget 6 --labels go,stay",),
    "choices, wide": (f"identify {WIDE} --test wilks",),
    "choices, long": ("identify long.parquet --choice-id trip --chosen chosen --alternative which --attributes cost,time",),
    "formula": ("identify amounts.csv --formula action~near*far+weather --test wilks",),
    "mistakes": (
        "identify labels.csv --action acton",
        "identify missing.csv --action action",
        "identify labels.csv --action action --test wilk",
        "identify labels.csv --action action --nonsense",
        "identify labels.csv --action action --significance 2",
        "identify labels.csv --action action --features near,fa",
        "simulate gridwrld",
        "reproduce gridwrld",
        "study status labels.csv",
    ),
    "plan": ("plan labels.csv --action action --power 0.8", "plan amounts.csv --action action --effect 0.3"),
    "theory": ("theory amounts.csv --action action --features near,far --covariance 1",),
    "worlds": ("worlds", "worlds minigolf --json -"),
    "simulate": (
        "simulate gridworld --controls row_0,goal_row_2 --learning-steps 5 --episodes 10 --seed 4 --out made.csv",
        "identify made.csv --test wilks",
    ),
    "configure": (
        "configure minigolf --controls x --learning-steps 5 --episodes 8 --max-rounds 1 --design uniform --out run --seed 3",
    ),
    "study": (
        "study create s.sqlite --world minigolf --design uniform --max-rounds 1 --episodes 12 --seed 2",
        "study plan --world minigolf --budget 40",
        "study ask s.sqlite --out next.toml",
        "study tell s.sqlite golf.csv --configuration next.toml",
        "study tell s.sqlite golf.csv --configuration next.toml",
        "study status s.sqlite",
        "study ask s.sqlite --json -",
    ),
    "demo": ("demo",),
}  # fmt: skip

EXPERIMENTS = (
    "gridworld", "gridworld-weights", "gridworld-rule-1", "continuous-gridworld", "minigolf-strategies", "minigolf-curve",
    "minigolf-features", "minigolf-training", "car", "imitation", "agents", "surrogate", "calibration", "theory",
)  # fmt: skip

PROBLEMS: dict[str, Any] = {f"answer, {name}": partial(reported, name) for name in ANSWERS}
PROBLEMS |= {
    f"picture, {name}": partial(drawn, (command, "log.csv", "--action", "action", *more, "picture.svg"))
    for name, (command, *more) in {
        "evidence": ("identify", "--features", "near,far,left", "--plot"),
        "calibration": ("identify", "--features", "near,far,left", "--test", "wilks", "--calibration"),
        "subjects": ("identify", "--features", "near,far,left", "--by", "sex", "--plot"),
        "power": ("plan", "--features", "near", "--plot"),
    }.items()
}
PROBLEMS |= {f"study, {name}": partial(of_study, name) for name in ("lane", "minigolf", "gridworld")}
EXPERIMENT_PROBLEMS: dict[str, Any] = {name: partial(of_experiment, name) for name in EXPERIMENTS}
COMMAND_PROBLEMS: dict[str, Any] = {name: partial(printed, commands) for name, commands in COMMANDS.items()}
