"""What commands share: the options that say what a file holds, and how they become data and a policy space."""

import csv
import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from policyspace.cli.running import typed
from policyspace.errors import InputError

if TYPE_CHECKING:
    from policyspace.data.demonstrations import Demonstrations
    from policyspace.policies.choice_linear import ChoiceLinear
    from policyspace.policies.spec import PolicySpec
    from policyspace.shown import Shown

File = Annotated[
    Path,
    typer.Argument(
        help="Logged states and actions: a CSV, Parquet, Arrow/Feather or NPZ file, a folder of such files or a pattern in "
        "quotes ('logs/*.parquet'), D4RL's HDF5, a folder of LeRobot, the folder or id of a Minari dataset.",
        metavar="SOURCE",
    ),
]
Actions = Annotated[
    list[str] | None,
    typer.Option("--actions", "--action", help="Action column, or columns separated by commas.", metavar="COL[,COL…]"),
]
Features = Annotated[
    list[str] | None,
    typer.Option(
        "--features",
        help="Feature columns, or patterns such as 'obs_*'; by default all that play no other role and look like no "
        "bookkeeping (reward, done, step, …).",
        metavar="COL[,COL…]",
    ),
]
EpisodeColumn = Annotated[
    str | None,
    typer.Option("--episodes", "--episode", help="Column that says which episode a row is from.", metavar="COL"),
]
Weights = Annotated[
    str | None, typer.Option("--weights", "--weight", help="Column of row weights (counts).", metavar="COL")
]
Subjects = Annotated[
    str | None,
    typer.Option(
        "--subjects", "--subject", help="Column that says which person or animal a row is from.", metavar="COL"
    ),
]
Categorical = Annotated[
    list[str] | None,
    typer.Option("--categorical", help="Columns whose numbers are categories, not amounts.", metavar="COL[,COL…]"),
]
MissingValues = Annotated[
    str, typer.Option("--missing", help="What missing values are: an error, or rows to drop.", metavar="error|drop")
]
FormulaText = Annotated[
    str | None,
    typer.Option(
        "--formula",
        help="Actions and features in one, with interactions and powers; needs the extra 'formula'.",
        metavar="'choice ~ cost + time*income'",
    ),
]
Lags = Annotated[
    int | None,
    typer.Option("--lags", help="Add the agent's own last N actions of an episode as features.", metavar="N"),
]
WeightsAre = Annotated[
    str | None,
    typer.Option(
        "--weights-are",
        help="What weights are: counts of equal pairs (default), or how much of a population a row stands for.",
        metavar="counts|sampling",
    ),
]
OffsetColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--offset",
        help="A known part, added to the mean or to the log-odds with weight 1: a column, one for each action, or with "
        "--attributes or --choice-id an attribute.",
        metavar="COL|ACTION=COL[,…]",
    ),
]
PolicyName = Annotated[
    str | None,
    typer.Option(
        "--policy",
        help="By default inferred from the type of the action; 'any' is no model at all.",
        metavar="gaussian|boltzmann|network|choice|any",
    ),
]
Hidden = Annotated[
    str | None,
    typer.Option(
        "--hidden",
        help="Widths of a network's hidden layers, with commas. By default what the file records, else 8.",
        metavar="N[,N…]",
    ),
]
Covariance = Annotated[
    str | None,
    typer.Option(
        "--covariance",
        help="Of a Gaussian policy: a variance, variances with commas, a file with a matrix, or 'estimate' (default).",
        metavar="VALUE|FILE|estimate",
    ),
]
GroupsOption = Annotated[
    str,
    typer.Option("--groups", help="What is tested as one unit.", metavar="feature|parameter|hidden|output|FILE.toml"),
]
Always = Annotated[
    list[str] | None,
    typer.Option("--always", help="Groups known to be used or controlled: not tested.", metavar="COL[,COL…]"),
]
NoIntercept = Annotated[bool, typer.Option("--no-intercept", help="Do not add a constant feature.")]
Reference = Annotated[
    str | None, typer.Option("--reference", help="The action that the others are compared with.", metavar="LABEL")
]
Attributes = Annotated[
    list[str] | None,
    typer.Option(
        "--attributes",
        help="Attributes of alternatives: 'cost=cost_*', where * is the alternative, or 'cost=c1|c2' in the order of the "
        "alternatives; with --choice-id, columns.",
        metavar="NAME=COLS[,…]|COL[,…]",
    ),
]
Available = Annotated[
    str | None,
    typer.Option(
        "--available", help="Columns that say whether an alternative can be chosen, such as 'av_*'.", metavar="COLS|COL"
    ),
]
Specific = Annotated[
    list[str] | None,
    typer.Option("--specific", help="Attributes with a coefficient for every alternative.", metavar="NAME[,NAME…]"),
]
ChoiceId = Annotated[
    str | None,
    typer.Option(
        "--choice-id", help="Of a file with one row an alternative: which choice it belongs to.", metavar="COL"
    ),
]
Chosen = Annotated[
    str | None, typer.Option("--chosen", help="With --choice-id: whether the alternative was chosen.", metavar="COL")
]
Alternative = Annotated[
    str | None, typer.Option("--alternative", help="With --choice-id: the name of the alternative.", metavar="COL")
]
Significance = Annotated[
    float, typer.Option("--significance", help="δ: the chance of any false 'used' or 'controlled'.", metavar="δ")
]
JsonOut = Annotated[
    str | None,
    typer.Option("--json", help="Write the answer as JSON to a file, or to the screen ('-').", metavar="FILE|-"),
]
Report = Annotated[
    Path | None,
    typer.Option(
        "--report", help="Save a page that holds all of it, for any browser: one file, no network.", metavar="FILE.html"
    ),
]


@dataclass(frozen=True)
class Source:
    """The options that say what a file holds and what the policy is, as they were typed."""

    file: File
    actions: Actions = None
    features: Features = None
    episodes: EpisodeColumn = None
    weights: Weights = None
    subjects: Subjects = None
    categorical: Categorical = None
    missing: MissingValues = "error"
    formula: FormulaText = None
    lags: Lags = None
    weights_are: WeightsAre = None
    offset: OffsetColumns = None
    policy: PolicyName = None
    hidden: Hidden = None
    covariance: Covariance = None
    groups: GroupsOption = "feature"
    always: Always = None
    no_intercept: NoIntercept = False
    reference: Reference = None
    attributes: Attributes = None
    available: Available = None
    specific: Specific = None
    choice_id: ChoiceId = None
    chosen: Chosen = None
    alternative: Alternative = None

    @cached_property
    def spec(self) -> "PolicySpec":
        """What the options say about the policy."""
        from policyspace.policies.spec import POLICIES, PolicySpec

        if self.policy is not None and self.policy not in POLICIES:
            raise InputError(f"--policy must be one of {', '.join(POLICIES)}, found '{self.policy}': choose one.")
        groups, always, fixed = read_groups(self.groups)
        choice = self._choice(None if groups == "feature" else groups, (*split(self.always), *always), fixed)
        if choice is not None:
            return PolicySpec(choice)
        return PolicySpec(
            self.policy,  # type: ignore[arg-type]  # any text, which is checked there
            hidden=None if self.hidden is None else widths(self.hidden),
            covariance=_covariance(self.covariance),
            groups=None if groups == "feature" else groups,
            always=(*split(self.always), *always),
            fixed=fixed or None,
            intercept=False if self.no_intercept else None,
        )

    def _choice(self, groups: Any, always: tuple[str, ...], fixed: Any) -> "ChoiceLinear | None":
        """The policy of alternatives with attributes, where the options speak of any."""
        said = {"--available": self.available, "--specific": self.specific, "--chosen": self.chosen}
        said |= {"--alternative": self.alternative}
        if self.attributes is None and self.choice_id is None:
            for option, value in said.items():
                if value is not None:
                    raise InputError(
                        f"{option} is about alternatives with attributes, found it alone: add --attributes."
                    )
            return None
        others = {"--hidden": self.hidden, "--covariance": self.covariance}
        if self.policy is not None and self.policy != "choice":
            others[f"--policy {self.policy}"] = self.policy
        for option, value in others.items():
            if value is not None:
                raise InputError(
                    f"alternatives with attributes have the policy 'choice', found {option}: leave it out."
                )
        from policyspace.data.alternatives import LongTable
        from policyspace.policies.choice_linear import ChoiceLinear

        if self.choice_id is not None and self.chosen is None:
            raise InputError("--choice-id needs --chosen, the column that says which alternative was chosen: add it.")
        if self.choice_id is None and (self.chosen or self.alternative):
            raise InputError(
                "--chosen and --alternative need --choice-id, the column that numbers the choices: add it."
            )
        long = None if self.choice_id is None else LongTable(self.choice_id, self.chosen or "", self.alternative)
        return ChoiceLinear(
            attributes=_attributes(split(self.attributes), long is not None),
            available=None if self.available is None else _columns(self.available, long is not None),
            specific=split(self.specific) or None,
            groups=groups,
            always=always,
            fixed=fixed or 0.0,
            intercept=False if self.no_intercept else None,
            long=long,
            offset=split(self.offset) or None,
        )

    @property
    def inputs(self) -> tuple[Path | str | None, ...]:
        """What is read, as far as it is files."""
        return self.file, self.groups, self.covariance

    @property
    def words(self) -> dict[str, Any]:
        """What the options say about the columns, in the words of `identify`."""
        from policyspace.data.offsets import with_offset_columns

        if self.features is not None and not split(self.features):
            raise InputError("--features must name at least one column, found none: leave it out to take all columns.")
        return {
            "actions": _one_or_many(split(self.actions)),
            "features": with_offset_columns(split(self.features) or None, self.known),
            "episodes": self.episodes,
            "weights": self.weights,
            "reference": self.reference,
            "subjects": self.subjects,
            "categorical": split(self.categorical) or None,
            "missing": self.missing,
            "formula": self.formula,
        }

    def read(self, backend: Any = None) -> "Demonstrations":
        """What the file holds now; of files that are too large for memory, a sample that knows the rest."""
        from policyspace.data.sources import logged, told

        kind = {"discrete": self.spec.discrete, "choices": self.spec.choices}
        return told(logged(self.file, **self.words, **kind, backend=backend), self.lags, self.weights_are, self.known)

    @property
    def known(self) -> Any:
        """The offset in the words of `identify`; that of alternatives is said by their policy."""
        return None if self.spec.choices is not None else _offset(split(self.offset))


def with_source(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose first argument is a `Source`, with the options of one in its place."""
    _, *own = inspect.signature(command).parameters.values()
    shared = inspect.signature(Source).parameters

    @functools.wraps(command)
    def run(**options: Any) -> None:
        command(Source(**{name: options.pop(name) for name in shared}), **options)

    ordered = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in (*shared.values(), *own)]
    run.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in ordered}
    return run


def split(given: list[str] | None) -> list[str]:
    """Names from options that may be repeated; a name that holds a comma stands in double quotes."""
    try:
        fields = [name.strip() for row in csv.reader(given or [], skipinitialspace=True) for name in row]
    except csv.Error as error:
        raise InputError(f"names of columns must be separated by commas, found otherwise ({error}).") from error
    return [name for name in fields if name]


def _attributes(given: list[str], long: bool) -> Any:
    """Columns by attribute from NAME=COLUMNS, or of a file with one row an alternative the names of columns."""
    named = [text.partition("=") for text in given]
    if long:
        for name, sign, _ in named:
            if sign:
                raise InputError(f"with --choice-id attributes are columns, found '{name}=…': name the columns alone.")
        return given or None
    for name, sign, columns in named:
        if not (name.strip() and sign and columns.strip()):
            raise InputError(f"--attributes must be such as 'cost=cost_*,time=time_*', found '{name}{sign}{columns}'.")
    return {name.strip(): _columns(columns, long) for name, _, columns in named}


def _offset(given: list[str]) -> Any:
    """One column, or columns by action from ACTION=COL."""
    if len(given) == 1 and "=" not in given[0]:
        return given[0]
    named = [text.rpartition("=") for text in given]
    for action, sign, column in named:
        if not (action.strip() and sign and column.strip()):
            raise InputError(
                f"--offset must be one column, or such as 'left=col1,right=col2', found '{action}{sign}{column}'."
            )
    return {action.strip(): column.strip() for action, _, column in named} or None


def _columns(text: str, long: bool) -> Any:
    """A pattern, or columns separated by bars; of a file with one row an alternative one column."""
    return text.strip() if long or "|" not in text else [part.strip() for part in text.split("|")]


def widths(text: str) -> tuple[int, ...]:
    """The hidden layers of a network: whole numbers with commas, or nothing for none."""
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise InputError(f"--hidden must be whole numbers with commas, such as 8 or 16,8, found '{text}'.") from error


def _one_or_many(names: list[str]) -> str | list[str] | None:
    return None if not names else names[0] if len(names) == 1 else names


def read_groups(text: str) -> tuple[Any, tuple[str, ...], Any]:
    """(groups, always, fixed) from a word or from a TOML file with a table [groups], a list always, a table [fixed]."""
    if text in ("feature", "parameter", "input", "hidden", "output"):
        return text, (), None
    if not text.lower().endswith(".toml"):
        raise InputError(
            f"--groups must be 'feature', 'parameter', for a network 'hidden' or 'output', or a TOML file, found '{text}'."
        )
    from policyspace.data.input_files import read_toml

    try:
        table = read_toml(text)
    except InputError as error:
        raise InputError(f"{text}: {error}") from error
    unknown = set(table) - {"groups", "always", "fixed"}
    groups, always, fixed = table.get("groups", "feature"), table.get("always", []), table.get("fixed", {})
    if unknown:
        raise InputError(f"{text}: unknown entry '{min(unknown)}': a groups file has [groups], always and [fixed].")
    if not isinstance(groups, dict | str) or not _names(always):
        raise InputError(
            f'{text}: expected a table [groups] with lines such as position = ["x", "y"], and a list always.'
        )
    if isinstance(groups, dict) and not all(_names(inside) for inside in groups.values()):
        raise InputError(f"{text}: every group in [groups] must be a list of feature names.")
    numbers = isinstance(fixed, dict) and all(type(v) in (int, float) for v in fixed.values())
    if not numbers:
        raise InputError(f"{text}: [fixed] must give a number for each name.")
    return groups, tuple(always), fixed


def _names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _covariance(text: str | None) -> Any:
    """A number, several numbers, a matrix from a file, or the word 'estimate'."""
    if text is None or text == "estimate":
        return text
    try:
        numbers = [float(part) for part in text.split(",")]
        return numbers[0] if len(numbers) == 1 else numbers
    except ValueError:
        return _matrix(text)


def _matrix(text: str) -> Any:
    import numpy as np

    from policyspace.data.input_files import parse_json, settings_text
    from policyspace.data.npy import read_npy

    path = Path(text)
    try:
        if not path.is_file():
            raise InputError(
                f"--covariance must be a number, numbers, 'estimate' or a file with a matrix, found '{text}', which is none."
            )
        if path.suffix == ".npy":
            return read_npy(path)
        content = settings_text(path)
        if path.suffix == ".json":
            return np.asarray(parse_json(content))
        rows = [line.replace(",", " ").split() for line in content.splitlines()]
        return np.array([[float(entry) for entry in row] for row in rows if row])
    except (OSError, ValueError, OverflowError) as error:
        if str(error).startswith("--covariance"):
            raise
        reason = str(error).splitlines()[0].rstrip(".")
        raise InputError(f"{path}: is not a matrix of numbers ({reason}): give CSV, NPY or JSON.") from error


def check_targets(
    picture: Path | None,
    json_target: str | None,
    inputs: Iterable[str | Path | None] = (),
    out: Path | None = None,
    report: Path | None = None,
) -> None:
    """Say before the work that its results could not be saved."""
    from policyspace.data import whole_file

    if picture is not None:
        from policyspace.report.style import format_of

        format_of(picture)
    if report is not None:
        from policyspace.report.page import page_path

        page_path(report)
    whole_file.check_targets([picture, None if json_target == "-" else json_target, out, report], inputs)


def check_file(path: Path, suffixes: Sequence[str] = (), inputs: Iterable[str | Path | None] = ()) -> None:
    """Say before the work that this file could not be written."""
    if suffixes and not path.name.lower().endswith(tuple(suffixes)):
        raise InputError(f"{path}: the name must end in one of {', '.join(suffixes)}: choose another name.")
    from policyspace.data import whole_file

    whole_file.check_targets([path], inputs)


def write_json(text: str, target: str) -> None:
    """To the screen for '-', otherwise to a file that appears whole or not at all."""
    from policyspace.cli.screen import show_json

    if target == "-":
        show_json(text)
        return
    from policyspace.data.whole_file import replacing
    from policyspace.printable import safe_json

    with replacing(target) as out:
        out.write((safe_json(text) + "\n").encode())


def write_report(result: "Shown", target: Path) -> None:
    """Save the page of an answer, with the command that makes it again."""
    from copy import copy

    said = copy(result)
    object.__setattr__(said, "made_by", typed())
    said.report(target)
