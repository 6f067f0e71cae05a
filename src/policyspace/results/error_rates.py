"""What the error rates of a configured run are shares of."""

from policyspace.experiments.records import Record
from policyspace.worlds import make_world

MISSED, WRONG = "false_negative_rate", "false_positive_rate"


def units_of(record: Record) -> dict[str, int | None]:
    """How many units the shares missed and falsely selected are of; null where a record does not name them."""
    world = make_world(record.setting.get("world", "minigolf"))
    owned = len(record.result["truth"]) if "truth" in record.result else None
    others = None if owned is None else len(world.feature_names) - owned
    return {f"{MISSED}_of": owned, f"{WRONG}_of": others}
