"""Tables and options by hypothesis, which is better at odd texts and numbers than we are."""

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.fuzz.case import Case

NAMES = st.one_of(st.sampled_from(["x", "y", "step", "", " ", "reward"]), st.text(max_size=6))
CELL = st.one_of(
    st.floats().map(repr), st.integers().map(str), st.text(max_size=8), st.sampled_from(["", "nan", "a", "b", "1", '"'])
)
COLUMN = st.one_of(
    st.lists(st.floats(-9, 9, width=16).map(repr), min_size=12, max_size=12),
    st.lists(st.integers(-2, 2).map(str), min_size=12, max_size=12),
    st.lists(st.sampled_from("abc"), min_size=12, max_size=12),
    st.lists(CELL, min_size=12, max_size=12),
)
OPTIONS = st.sampled_from(
    [
        [],
        ["--rule", "combinatorial"],
        ["--test", "lean"],
        ["--missing", "drop"],
        ["--categorical", "x"],
        ["--features", "x"],
    ]
)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    names = draw(st.lists(NAMES, min_size=1, max_size=4))
    columns = [draw(COLUMN) for _ in [*names, "action"]]
    quoted = draw(st.booleans())

    def shown(cell: str) -> str:
        return '"' + cell.replace('"', '""') + '"' if quoted else cell

    lines = [
        ",".join(map(shown, [*names, "action"])),
        *(",".join(map(shown, row)) for row in zip(*columns, strict=True)),
    ]
    text = "\n".join(lines) + draw(st.sampled_from(["\n", ""]))
    return Case(
        ["identify", "t.csv", "--actions", "action", *draw(OPTIONS), "--json", "-"],
        {"t.csv": text.encode("utf-8", "surrogatepass")},
    )


def examples(number: int, count: int) -> list[Case]:
    """So many cases, the same for the same number."""
    found: list[Case] = []

    @seed(number)
    @settings(max_examples=count, database=None, deadline=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(cases())
    def gather(case: Case) -> None:
        found.append(case)

    gather()
    return found
