"""What commands share: the options that say what a file holds, and how they become data and a policy space."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from policyspace.cli import typed_values as values
from policyspace.cli.bundled import option
from policyspace.errors import InputError

if TYPE_CHECKING:
    from policyspace.policies.choice_linear import ChoiceLinear
    from policyspace.policies.spec import PolicySpec

Names = list[str] | None
Text = str | None

Groups = Annotated[
    str,
    typer.Option("--groups", help="What is tested as one unit.", metavar="feature|parameter|hidden|output|FILE.toml"),
]
Always = Annotated[
    Names, typer.Option("--always", help="Groups known to be used or controlled: not tested.", metavar="COL[,COL…]")
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
        "bookkeeping (reward, done, step, …).",
        "COL[,COL…]",
    )
    episodes: Text = option(None, "Column that says which episode a row is from.", "COL", "--episodes", "--episode")
    weights: Text = option(None, "Column of row weights (counts).", "COL", "--weights", "--weight")
    missing: str = option("error", "What missing values are: an error, or rows to drop.", "error|drop")

    @property
    def action_columns(self) -> Any:
        """One name as it is, several as a list."""
        names = values.split(self.actions)
        return names if len(names) > 1 else names[0] if names else None


@dataclass(frozen=True)
class Source(LogOptions):
    """The options that say what a file holds and what the policy is, as they were typed."""

    subjects: Text = option(
        None, "Column that says which person or animal a row is from.", "COL", "--subjects", "--subject"
    )
    categorical: Names = option(None, "Columns whose numbers are categories, not amounts.", "COL[,COL…]")
    formula: Text = option(
        None,
        "Actions and features in one, with interactions and powers; needs the extra 'formula'.",
        "'choice ~ cost + time*income'",
    )
    lags: int | None = option(None, "Add the agent's own last N actions of an episode as features.", "N")
    weights_are: Text = option(
        None,
        "What weights are: counts of equal pairs (default), or how much of a population a row stands for.",
        "counts|sampling",
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
        "gaussian|boltzmann|network|choice|any",
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
    always: Always = None
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
        from policyspace.policies.spec import POLICIES, PolicySpec

        if self.policy is not None and self.policy not in POLICIES:
            raise InputError(f"--policy must be one of {', '.join(POLICIES)}, found '{self.policy}': choose one.")
        groups, always, fixed = values.read_groups(self.groups)
        choice = self._choice(None if groups == "feature" else groups, (*values.split(self.always), *always), fixed)
        if choice is not None:
            return PolicySpec(choice)
        return PolicySpec(
            self.policy,  # type: ignore[arg-type]  # any text, which is checked there
            hidden=None if self.hidden is None else values.widths(self.hidden),
            covariance=values.covariance(self.covariance),
            groups=None if groups == "feature" else groups,
            always=(*values.split(self.always), *always),
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
            attributes=values.attributes(values.split(self.attributes), long is not None),
            available=None if self.available is None else values.columns_of(self.available, long is not None),
            specific=values.split(self.specific) or None,
            groups=groups,
            always=always,
            fixed=fixed or 0.0,
            intercept=False if self.no_intercept else None,
            long=long,
            offset=values.split(self.offset) or None,
        )

    @property
    def inputs(self) -> tuple[Path | str | None, ...]:
        """What is read, as far as it is files."""
        return self.file, self.groups, self.covariance

    @property
    def said(self) -> dict[str, Any]:
        """What the options say about the columns and the policy, in the words of `identify`."""
        if self.features is not None and not values.split(self.features):
            raise InputError("--features must name at least one column, found none: leave it out to take all columns.")
        # The offset of alternatives is said by their policy.
        offset = None if self.spec.choices is not None else values.offset(values.split(self.offset))
        as_typed = ("episodes", "weights", "reference", "subjects", "missing", "formula", "lags", "weights_are")
        return {word: getattr(self, word) for word in as_typed} | {
            "actions": self.action_columns,
            "features": values.split(self.features) or None,
            "categorical": values.split(self.categorical) or None,
            "offset": offset,
            "policy": self.spec,
        }
