"""Answers as frames, as LaTeX, in given axes, and the call that makes them again."""

import builtins
import html
import json
import re
import shutil
import subprocess

import numpy as np
import pandas
import polars
import pytest

import policyspace
from policyspace import InputError, identify, plan
from policyspace.display import LATEX, latex

RNG = np.random.default_rng(6)
X = RNG.normal(size=(200, 3))
FORCE = X[:, 0] + RNG.normal(size=200)
NAMES = ["speed_x & 50% {of} #1", r"a\b ~ ^c^ $\alpha$", "wind\t<1>"]


@pytest.fixture(scope="module")
def answer():
    return identify(X, FORCE, features=NAMES)


@pytest.mark.parametrize("kind", [polars.DataFrame, pandas.DataFrame])
def test_frames_hold_every_number(answer, kind):
    frame = answer.to_frame(pandas=kind is pandas.DataFrame)
    assert isinstance(frame, kind) and list(frame["group"]) == NAMES
    for name in ("statistic", "p_value", "adjusted_p_value", "coefficient_norm", "action_effect"):
        assert list(frame[name]) == [getattr(test, name) for test in answer.groups]
    assert list(frame["verdict"]) == ["used", "no evidence", "no evidence"]


def test_without_pandas_one_sentence_says_so(answer, monkeypatch):
    real = builtins.__import__

    def no_pandas(name, *args, **more):
        if name == "pandas":
            raise ImportError(name)
        return real(name, *args, **more)

    monkeypatch.setattr(builtins, "__import__", no_pandas)
    with pytest.raises(InputError, match="pip install pandas"):
        answer.to_frame(pandas=True)
    assert len(answer.to_frame()) == 3


def cells(text):
    """A table's cells as LaTeX would print them: an independent reading of the few commands that are used."""
    back = {code: c for c, code in LATEX.items() if len(code) > 1 and c not in "–—"}
    rows = []
    for line in text.splitlines():
        if not line.endswith(r"\\"):
            continue
        row = re.split(r"(?<!\\) & ", line.removesuffix(r" \\"))
        for code in sorted(back, key=len, reverse=True):
            row = [cell.replace(code, back[code]) for cell in row]
        rows.append([re.sub(r"\$([\d.]+) \\cdot 10\^\{(-?\d+)\}\$", r"\1e\2", cell) for cell in row])
    return rows


def test_latex_says_what_the_table_says():
    simple = identify(X, FORCE, features=["speed", "b & c", "d_1"], policy="gaussian")
    found = cells(simple.to_latex())
    table = simple.table()
    assert found[0] == list(table.columns)
    for row, shown in zip(table.rows, found[1:], strict=True):
        assert [re.sub(r"e-0", "e-", cell) for cell in row] == shown
    assert simple.to_latex().splitlines()[0] == r"\begin{tabular}{lrrrrrr}"


def test_a_label_of_latex_is_a_key():
    answer = policyspace.identify(np.arange(40.0)[:, None] % 7, np.arange(40.0) % 5)
    text = answer.to_latex(label="tab:a_b}\\input{/etc/passwd}%\n#")
    assert r"\label{tab:a_b--input-/etc/passwd----}" in text
    assert "\\input" not in text


def test_nothing_in_a_name_is_a_command(answer):
    text = answer.to_latex(caption="50% of \\input{x}", label="tab:a")
    assert r"speed\_x \& 50\% \{of\} \#1" in text
    assert (
        r"a\textbackslash{}b \textasciitilde{} \textasciicircum{}c\textasciicircum{} \$\textbackslash{}alpha\$" in text
    )
    assert r"wind\textbackslash{}t\textless{}1\textgreater{}" in text and "\t" not in text
    assert r"\caption{50\% of \textbackslash{}input\{x\}}" in text and r"\label{tab:a}" in text
    assert text.count(r"\begin{") == text.count(r"\end{") == 2
    assert latex("λ ≤ δ") == r"$\lambda$ $\le$ $\delta$"


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX here")
def test_latex_takes_it(answer, tmp_path):
    head = r"\documentclass{article}\usepackage{booktabs,amssymb}\begin{document}"
    (tmp_path / "a.tex").write_text(head + answer.to_latex(caption="") + plan(X, FORCE).to_latex() + r"\end{document}")
    run = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "a.tex"]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-2000:]


def test_plot_draws_where_it_is_told(answer):
    from matplotlib import pyplot
    from matplotlib.figure import Figure

    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert answer.plot(ax=right) is right
    assert not left.lines
    effects = [test.action_effect for test in answer.by_effect[::-1]]
    assert [point.get_xdata()[0] for point in right.lines[1::2]] == effects
    own = answer.plot()
    assert own.figure.number in pyplot.get_fignums() and own.get_title(loc="left").startswith("The agent uses")
    own.figure.canvas.draw()
    pyplot.close(own.figure)


def test_the_call_makes_it_again(tmp_path):
    table = polars.DataFrame(X, ["a", "b", "c"]).with_columns(force=FORCE)
    table.write_csv(tmp_path / "it's.csv")
    first = identify(tmp_path / "it's.csv", "force", features=["a", "b"], significance=0.1, groups=None)
    assert first.made_by.endswith(" 'force', features=['a', 'b'], significance=0.1)")
    again = eval(first.made_by, {"policyspace": policyspace})
    assert again.to_dict() == first.to_dict()
    planned = plan(X, FORCE, power=0.8)
    assert planned.made_by == "policyspace.plan(data, actions, power=0.8)"
    assert (
        eval(planned.made_by, {"policyspace": policyspace, "data": X, "actions": FORCE}).to_dict() == planned.to_dict()
    )
    assert "made_by" not in planned.to_dict()


def test_every_kind_of_answer_is_text_and_json_of_the_same_words():
    from policyspace import identify_by
    from policyspace.theory import assess

    table = polars.DataFrame({"x": X[:, 0], "y": X[:, 1], "force": FORCE, "who": np.repeat(["a", "b"], 100)})
    found = [identify(X, FORCE), plan(X, FORCE), assess(X, FORCE), identify_by(table, "who", "force")]
    for one in found:
        lines = str(one).splitlines()
        assert lines[0] == one.sentence and lines[-len(one.notes()) :] == one.notes()
        assert all(all(cell in line for cell in row) for row, line in zip(one.table().rows, _rows(lines), strict=True))
        assert json.loads(one.to_json()) == json.loads(json.dumps(one.to_dict()))
        assert one.sentence in html.unescape(one._repr_html_()) and r"\toprule" in one.to_latex()
    with pytest.raises(InputError, match="a report is made of an answer"):
        found[2].report("page.html")


def _rows(lines):
    """The lines of the table: between the two empty lines, without the names of the columns and the rule under them."""
    first, last = (place for place, line in enumerate(lines) if not line)
    return [line for line in lines[first + 2 : last] if not line.startswith("─")]


def test_coefficients_of_several_models_side_by_side(tmp_path):
    """Estimates and errors are those of least squares; stars are by their p-values."""
    one = identify(X, FORCE, features=["a", "b", "c"], policy="gaussian").coefficients()
    two = identify(X[:, :1], FORCE, features=["a"], policy="gaussian").coefficients()
    text = one.to_latex(two, names=["all", "a alone"], label="tab:w")
    assert text.startswith("\\begin{table}") and "\\label{tab:w}" in text
    design = np.column_stack([np.ones(200), X])
    wanted = np.linalg.lstsq(design, FORCE, rcond=None)[0]
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("intercept"))
    for i, (row, weight) in enumerate(zip(one.rows, wanted, strict=True)):
        cells = lines[start + 2 * i].removesuffix(r" \\").split(" & ")
        assert float(cells[1].rstrip("*").replace("$-$", "-")) == pytest.approx(weight, rel=1e-3)
        stars = (row.p_value < 0.05) + (row.p_value < 0.01) + (row.p_value < 0.001)
        assert cells[1].count("*") == stars and bool(cells[2]) == (i < 2)
    frame = one.to_frame()
    assert list(frame["estimate"]) == pytest.approx(list(wanted), rel=1e-6)
    with pytest.raises(InputError, match="one for each of 2 models"):
        one.to_latex(two, names=["x"])


def test_coefficients_are_drawn():
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    found = identify(X, FORCE, features=["a", "b", "c"], policy="gaussian").coefficients()
    assert found.plot(ax=axes) is axes
    assert [list(line.get_xdata()) for line in axes.lines[:-1:2]] == [
        [row.lower, row.upper] for row in found.rows[::-1]
    ]
