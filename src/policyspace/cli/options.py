"""Command-line options about the data and the policy, and the `Request` that they become."""

import csv
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cached_property, wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from policyspace.errors import InputError, reason_of

if TYPE_CHECKING:
    from policyspace.data.request import Request
    from policyspace.families.choice import ChoiceLinear
    from policyspace.families.registry import PolicySpec


# -- Options as the fields of a dataclass: one argument of a function, and as many of the command line.


def option(default: Any, text: str, metavar: str | None = None, *names: str, **more: Any) -> Any:
    """A field that is an option, called as the field unless it has other names; `metavar` is what its value looks like."""
    return field(default=default, metadata={"names": names, "help": text, "metavar": metavar, **more})


def given(options: Any, *but: str) -> list[str]:
    """The options that are not as they are by default, as they are typed, some left aside."""
    said = [f.name for f in fields(options) if f.name not in but and getattr(options, f.name) != f.default]
    return [_typed(name) for name in said]


def bundled(command: Callable[..., None]) -> Callable[..., None]:
    """The command as Typer reads it: an argument that is a dataclass stands for an option for each of its fields."""
    hints = get_type_hints(command, include_extras=True)
    bundles = {name: kind for name, kind in hints.items() if isinstance(kind, type) and is_dataclass(kind)}
    parameters: list[Parameter] = []
    for name, parameter in signature(command).parameters.items():
        if name in bundles:
            kinds = get_type_hints(bundles[name], include_extras=True)
            for one in fields(bundles[name]):
                kind = kinds[one.name]
                if one.metadata:  # else the type has the words of the option
                    more = dict(one.metadata)
                    names = more.pop("names") or [_typed(one.name)]
                    kind = Annotated[kind, typer.Option(*names, **more)]
                default = Parameter.empty if one.default is MISSING else one.default
                parameters.append(Parameter(one.name, Parameter.KEYWORD_ONLY, default=default, annotation=kind))
        else:
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name]))

    @wraps(command)
    def called(**given: Any) -> None:
        for name, kind in bundles.items():
            given[name] = kind(**{f.name: given.pop(f.name) for f in fields(kind)})
        command(**given)

    return with_parameters(called, parameters)


def with_parameters(command: Callable[..., None], parameters: list[Parameter]) -> Callable[..., None]:
    """The command, of which Typer reads these parameters."""
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _typed(name: str) -> str:
    return f"--{name.replace('_', '-')}"


# -- What the text of an option stands for: names, columns of attributes and offsets, hidden layers, groups, a covariance.


def split(given: list[str] | None) -> list[str]:
    """Names from options that may be repeated; a name that holds a comma stands in double quotes."""
    try:
        fields = [name.strip() for row in csv.reader(given or [], skipinitialspace=True) for name in row]
    except csv.Error as error:
        raise InputError(f"names of columns must be separated by commas, found otherwise ({error}).") from error
    return [name for name in fields if name]


def attributes(given: list[str], long: bool) -> Any:
    """Columns by attribute from NAME=COLUMNS, or of a file with one row an alternative the names of columns."""
    if long:
        for name, sign, _ in (text.partition("=") for text in given):
            if sign:
                raise InputError(f"with --choice-id attributes are columns, found '{name}=…': name the columns alone.")
        return given or None
    named = pairs("--attributes", "must be such as 'cost=cost_*,time=time_*'", given)
    return {name: columns_of(columns, long) for name, columns in named.items()}


def offsets_of(given: list[str]) -> Any:
    """One column, or columns by action from ACTION=COL."""
    if len(given) == 1 and "=" not in given[0]:
        return given[0]
    return pairs("--offset", "must be one column, or such as 'left=col1,right=col2'", given, last=True) or None


def pairs(option: str, form: str, given: Sequence[str] | None, last: bool = False) -> dict[str, str]:
    """Values by name from NAME=VALUE, parted at the first sign or at the last; `form` says how they are written."""
    found: dict[str, str] = {}
    for text in given or ():
        name, sign, value = (part.strip() for part in (text.rpartition("=") if last else text.partition("=")))
        if not (name and sign and value):
            raise InputError(f"{option} {form}, found '{text}': correct it.")
        if name in found:
            raise InputError(f"{option} names '{name}' twice: give it once.")
        found[name] = value
    return found


def columns_of(text: str, long: bool) -> Any:
    """A pattern, or columns separated by bars; of a file with one row an alternative one column."""
    return text.strip() if long or "|" not in text else [part.strip() for part in text.split("|")]


def widths(text: str) -> tuple[int, ...]:
    """The hidden layers of a network: whole numbers with commas, or nothing for none."""
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise InputError(f"--hidden must be whole numbers with commas, such as 8 or 16,8, found '{text}'.") from error


def read_groups(text: str) -> tuple[Any, tuple[str, ...], Any]:
    """(groups, assume, fixed) from a word or from a TOML file with a table [groups], a list assume, a table [fixed]."""
    if text in ("feature", "parameter", "action", "input", "hidden", "output"):
        return text, (), None
    if not text.lower().endswith(".toml"):
        raise InputError(
            "--groups must be 'feature', 'parameter', 'action', for a network 'hidden' or 'output', or a TOML file, "
            f"found '{text}'."
        )
    from policyspace.data.files import located
    from policyspace.safe_io import read_toml

    with located(text):
        table = read_toml(text)
    unknown = set(table) - {"groups", "assume", "always", "fixed"}
    groups, fixed = table.get("groups", "feature"), table.get("fixed", {})
    assume = table.get("assume", table.get("always", []))  # the latter in files of before
    if unknown:
        raise InputError(f"{text}: unknown entry '{min(unknown)}': a groups file has [groups], assume and [fixed].")
    if not isinstance(groups, dict | str) or not _names(assume):
        raise InputError(
            f'{text}: expected a table [groups] with lines such as position = ["x", "y"], and a list assume.'
        )
    if isinstance(groups, dict) and not all(_names(inside) for inside in groups.values()):
        raise InputError(f"{text}: every group in [groups] must be a list of feature names.")
    numbers = isinstance(fixed, dict) and all(type(v) in (int, float) for v in fixed.values())
    if not numbers:
        raise InputError(f"{text}: [fixed] must give a number for each name.")
    return groups, tuple(assume), fixed


def _names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def covariance(text: str | None) -> Any:
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

    from policyspace.safe_io import parse_json, read_npy, settings_text

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
        raise InputError(f"{path}: is not a matrix of numbers ({reason_of(error)}): give CSV, NPY or JSON.") from error


# -- What commands share: the options that say what a file holds, and how they become data and a policy space.

Names = list[str] | None
Text = str | None

Groups = Annotated[
    str,
    typer.Option(
        "--groups", help="What is tested as one group.", metavar="feature|parameter|action|hidden|output|FILE.toml"
    ),
]
Assume = Annotated[
    Names, typer.Option("--assume", help="Groups known to be used or controlled: not tested.", metavar="COL[,COL…]")
]
Significance = Annotated[
    float, typer.Option("--significance", help="δ: the chance of any false 'used' or 'controlled'.", metavar="δ")
]


@dataclass(frozen=True)
class LogOptions:
    """A file, and which of its columns are what."""

    file: Annotated[
        Path,
        typer.Argument(
            help="Logged states and actions: a CSV, Parquet, Arrow/Feather or NPZ file, a folder of such files or a "
            "pattern in quotes ('logs/*.parquet'), D4RL's HDF5, a folder of LeRobot, the folder or id of a Minari dataset.",
            metavar="SOURCE",
        ),
    ]
    actions: Names = option(
        None, "Action column, or columns separated by commas.", "COL[,COL…]", "--actions", "--action"
    )
    features: Names = option(
        None,
        "Feature columns, or patterns such as 'obs_*'; by default all that play no other role and look like no "
        "log data (reward, done, step, …).",
        "COL[,COL…]",
    )
    episodes: Text = option(None, "Column that says which episode a row is from.", "COL", "--episodes", "--episode")
    weights: Text = option(None, "Column of row weights.", "COL", "--weights", "--weight")
    missing: str = option("error", "What missing values are: an error, or rows to drop.", "error|drop")

    @property
    def action_columns(self) -> Any:
        """One name as it is, several as a list."""
        names = split(self.actions)
        return names if len(names) > 1 else names[0] if names else None


@dataclass(frozen=True)
class SampleOptions(LogOptions):
    """The options that say what a file holds and what the policy is, as they were typed."""

    subjects: Text = option(
        None, "Column that says which person or animal a row is from.", "COL", "--subjects", "--subject"
    )
    na: Names = option(
        None, "Labels that stand for a missing value; by default NA, NaN, null, None and empty ones.", "TEXT[,TEXT…]"
    )
    categorical: Names = option(None, "Columns whose numbers are categories.", "COL[,COL…]")
    formula: Text = option(
        None,
        "Actions and features in one, with interactions and powers; needs the extra 'formula'.",
        "'choice ~ cost + time*income'",
    )
    lags: int | None = option(None, "Add the agent's own last N actions of an episode as features.", "N")
    lags_of_inputs: int | None = option(
        None, "Test every feature together with its last N values in the episode: for an agent that remembers.", "N"
    )
    weight_type: Text = option(
        None,
        "What weights are: how many equal rows a row is (default), or how much of a population it stands for.",
        "frequency|sampling",
    )
    trials: Text = option(
        None, "Column that says of how many trials the action counts the successes, or is their share.", "COL"
    )
    rows_are: Text = option(
        None,
        "Whether rows are in the order of time, or their order means nothing, as in a table of people; by default the "
        "order of time, unless the table is sorted by labels and in random order otherwise.",
        "exchangeable|ordered",
    )
    offset: Names = option(
        None,
        "A known part, added to the mean or to the log-odds with weight 1: a column, one for each action, or with "
        "--attributes or --choice-id an attribute.",
        "COL|ACTION=COL[,…]",
    )
    policy: Text = option(
        None,
        "By default inferred from the type of the action; 'any' is no model at all.",
        "gaussian|boltzmann|poisson|negative-binomial|ordered|network|choice|any",
    )
    hidden: Text = option(
        None, "Widths of a network's hidden layers, with commas. By default what the file records, else 8.", "N[,N…]"
    )
    covariance: Text = option(
        None,
        "Of a Gaussian policy: a variance, variances with commas, a file with a matrix, or 'estimate' (default).",
        "VALUE|FILE|estimate",
    )
    groups: Groups = "feature"
    assume: Assume = None
    levels: Names = option(None, "With --policy ordered: the actions from the lowest to the highest.", "LABEL[,LABEL…]")
    no_intercept: bool = option(False, "Do not add a constant feature.")
    reference: Text = option(None, "The action that the others are compared with.", "LABEL")
    attributes: Names = option(
        None,
        "Attributes of alternatives: 'cost=cost_*', where * is the alternative, or 'cost=c1|c2' in the order of the "
        "alternatives; with --choice-id, columns.",
        "NAME=COLS[,…]|COL[,…]",
    )
    available: Text = option(None, "Columns that say whether an alternative can be chosen, such as 'av_*'.", "COLS|COL")
    specific: Names = option(None, "Attributes with a coefficient for every alternative.", "NAME[,NAME…]")
    choice_id: Text = option(None, "Of a file with one row an alternative: which choice it belongs to.", "COL")
    chosen: Text = option(None, "With --choice-id: whether the alternative was chosen.", "COL")
    alternative: Text = option(None, "With --choice-id: the name of the alternative.", "COL")

    @cached_property
    def spec(self) -> "PolicySpec":
        """What the options say about the policy."""
        from policyspace.families.registry import POLICIES, PolicySpec

        if self.policy is not None and self.policy not in POLICIES:
            raise InputError(f"--policy must be one of {', '.join(POLICIES)}, found '{self.policy}': choose one.")
        groups, assume, fixed = read_groups(self.groups)
        choice = self._choice(None if groups == "feature" else groups, (*split(self.assume), *assume), fixed)
        if choice is not None:
            return PolicySpec(choice)
        return PolicySpec(
            self.policy,  # type: ignore[arg-type]  # any text, which is checked there
            hidden=None if self.hidden is None else widths(self.hidden),
            covariance=covariance(self.covariance),
            groups=None if groups == "feature" else groups,
            assume=(*split(self.assume), *assume),
            fixed=fixed or None,
            intercept=False if self.no_intercept else None,
            levels=split(self.levels) or None,
        )

    def _choice(self, groups: Any, assume: tuple[str, ...], fixed: Any) -> "ChoiceLinear | None":
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
        from policyspace.data.columns import LongFormat
        from policyspace.families.choice import ChoiceLinear

        if self.choice_id is not None and self.chosen is None:
            raise InputError("--choice-id needs --chosen, the column that says which alternative was chosen: add it.")
        if self.choice_id is None and (self.chosen or self.alternative):
            raise InputError(
                "--chosen and --alternative need --choice-id, the column that numbers the choices: add it."
            )
        long = None if self.choice_id is None else LongFormat(self.choice_id, self.chosen or "", self.alternative)
        return ChoiceLinear(
            attributes=attributes(split(self.attributes), long is not None),
            available=None if self.available is None else columns_of(self.available, long is not None),
            specific=split(self.specific) or None,
            groups=groups,
            assume=assume,
            fixed=fixed or 0.0,
            intercept=False if self.no_intercept else None,
            long=long,
            offset=split(self.offset) or None,
        )

    @property
    def _exchangeable(self) -> bool | None:
        """Whether the order of rows was said to mean nothing."""
        if self.rows_are not in (None, "exchangeable", "ordered"):
            raise InputError(f"--rows-are must be 'exchangeable' or 'ordered', found '{self.rows_are}': choose one.")
        return None if self.rows_are is None else self.rows_are == "exchangeable"

    @property
    def inputs(self) -> tuple[Path | str | None, ...]:
        """What is read, as far as it is files."""
        return self.file, self.groups, self.covariance

    def request(self, data: Any = None, backend: Any = None) -> "Request":
        """What the options say about the file, or about other data of its kind, and about the policy."""
        from policyspace.data.request import ColumnOptions, Request

        if self.features is not None and not split(self.features):
            raise InputError("--features must name at least one column, found none: leave it out to take all columns.")
        # The offset of alternatives is said by their policy.
        offset = None if self.spec.choices is not None else offsets_of(split(self.offset))
        columns: ColumnOptions = {
            "features": split(self.features) or None,
            "episodes": self.episodes,
            "weights": self.weights,
            "subjects": self.subjects,
            "categorical": split(self.categorical) or None,
            "na": None if self.na is None else split(self.na) or [""],
            "missing": self.missing,  # type: ignore[typeddict-item]  # any text, which is checked there
            "reference": self.reference,
            "formula": self.formula,
            "lags": self.lags,
            "lags_of_inputs": self.lags_of_inputs,
            "weight_type": self.weight_type,  # type: ignore[typeddict-item]
            "offset": offset,
            "trials": self.trials,
            "exchangeable": self._exchangeable,
        }
        return Request.of(self.file if data is None else data, self.action_columns, self.spec, backend, **columns)
