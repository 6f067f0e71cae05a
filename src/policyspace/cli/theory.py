"""`policyspace theory`: what the paper proves about this data set, and how loose that is."""

from policyspace.cli import screen
from policyspace.cli.options import Significance, Source
from policyspace.cli.running import running, waiting
from policyspace.cli.saving import JsonOut, check_targets, deliver


@running
def theory(source: Source, significance: Significance = 0.05, json: JsonOut = None) -> None:
    """Print the paper's quantities: σ, λ̂_min, its bounds at this n, and the n at which they say something.

    They are worst-case bounds, and loose: beside each stands what asymptotics say of the same thing.
    """
    from policyspace.theory import assess

    check_targets(json=json, inputs=source.inputs)
    with waiting("assessing"):
        result = assess(source.file, significance=significance, **source.said)
    deliver(result.to_json, json, lambda: screen.show(result, result.table().columns[1:]))
