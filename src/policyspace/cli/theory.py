"""`policyspace theory`: what the paper proves about this data set, and how loose that is."""

from policyspace.cli import options, screen
from policyspace.cli.running import running, waiting
from policyspace.table import Table


@running
@options.with_source
def theory(source: options.Source, significance: options.Significance = 0.05, json: options.JsonOut = None) -> None:
    """Print the paper's quantities: σ, λ̂_min, its bounds at this n, and the n at which they say something.

    They are worst-case bounds, and loose: beside each stands what asymptotics say of the same thing.
    """
    from policyspace.theory import assess
    from policyspace.theory.statements import COLUMNS, assessment_notes

    options.check_targets(None, json, source.inputs)
    with waiting("assessing"):
        result = assess(source.read(), significance=significance, policy=source.spec)
    if json is not None:
        options.write_json(result.to_json(), json)
    if json != "-":
        table = Table(COLUMNS, result.rows())
        screen.show(result.sentence, table, assessment_notes(result), right=COLUMNS[1:])
        screen.show_saved([json])
