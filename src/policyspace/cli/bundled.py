"""Options as the fields of a dataclass: one argument of a function, and as many of the command line."""

from collections.abc import Callable
from dataclasses import MISSING, Field, field, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, get_type_hints

import typer


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
    bundles: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters: list[Parameter] = []
    for name, parameter in signature(command).parameters.items():
        if name in bundles:
            kinds = get_type_hints(bundles[name], include_extras=True)
            parameters += [_parameter(f, kinds[f.name]) for f in fields(bundles[name])]
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


def _parameter(field: Field, kind: Any) -> Parameter:
    """A field as Typer reads it; one without the words of an option says them in its type."""
    if field.metadata:
        more = dict(field.metadata)
        names = more.pop("names") or [_typed(field.name)]
        kind = Annotated[kind, typer.Option(*names, **more)]
    default = Parameter.empty if field.default is MISSING else field.default
    return Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _typed(name: str) -> str:
    return f"--{name.replace('_', '-')}"
