"""Formulas: the columns that they stand for, what is tested with what, and what is refused."""

import numpy as np
import polars
import pytest

import policyspace
from policyspace import InputError
from policyspace.data import parse_formula

pytest.importorskip("formulaic")


def frame(n=500, seed=3):
    rng = np.random.default_rng(seed)
    time, income, road = rng.normal(size=n), rng.uniform(1, 4, n), rng.choice(["dry", "icy", "wet"], n)
    right = rng.random(n) < 1 / (1 + np.exp(-(0.8 * time + 0.7 * time * (income - 2.5))))
    return polars.DataFrame({"time": time, "income": income, "road": road, "choice": np.where(right, "r", "l")})


def test_terms_are_the_products_of_their_columns():
    data = frame()
    answer = policyspace.identify(
        data, formula="choice ~ time*income + I(time**2) + log(income) + road:time + road", test="wilks"
    )
    assert answer.policy.groups == ("time", "income", "time**2", "log(income)", "road", "time:income", "road:time")
    sm = pytest.importorskip("statsmodels.formula.api")
    y = data.with_columns((polars.col("choice") == "l").cast(int).alias("y")).to_pandas()
    peer = sm.logit("y ~ time*income + I(time**2) + np.log(income) + road*time", y).fit(disp=0, tol=1e-12)
    assert answer.fit.log_likelihood == pytest.approx(peer.llf, abs=1e-7)


def test_marginality():
    data = frame()
    answer = policyspace.identify(data, formula="choice ~ time*income + road", test="wilks")
    tests = {test.group: test for test in answer.groups}
    x = data.with_columns((polars.col("time") * polars.col("income")).alias("both"))

    def log_likelihood(*names):
        return policyspace.identify(x, "choice", features=[*names, "road"], test="wilks").fit.log_likelihood

    full = log_likelihood("time", "income", "both")
    assert tests["time:income"].statistic == pytest.approx(2 * (full - log_likelihood("time", "income")), abs=1e-6)
    assert tests["time"].statistic == pytest.approx(2 * (full - log_likelihood("income")), abs=1e-6)
    assert [tests[name].degrees_of_freedom for name in ("time", "income", "time:income", "road")] == [2, 2, 1, 2]
    assert tests["income"].adjusted_p_value <= tests["time:income"].adjusted_p_value
    assert answer.selected == ("time", "income", "time:income")


def test_terms_of_one_column_are_not_for_the_lean_test():
    subjects = {"subjects": "who", "formula": "choice ~ time*income"}
    many, few = (frame().with_columns(who=polars.int_range(500) % size) for size in (50, 4))
    answer = policyspace.identify(many, **subjects)
    assert answer.test.name == "mixed" and answer.guarantee and answer.selected == ("time", "income", "time:income")
    assert policyspace.identify(few, **subjects).guarantee is None
    with pytest.raises(InputError, match="in any form"):
        policyspace.identify(many, **subjects, test="lean")
    assert policyspace.identify(many, subjects="who", formula="choice ~ time + income").test.name == "mixed"


def test_files_and_rules(tmp_path):
    frame().write_csv(tmp_path / "log.csv")
    answer = policyspace.identify(tmp_path / "log.csv", formula="choice ~ time + I(time**2)", test="wilks")
    assert [test.degrees_of_freedom for test in answer.groups] == [2, 1]
    with pytest.raises(InputError, match="simplified rule"):
        policyspace.identify(frame(), formula="choice ~ time*income", rule="combinatorial")
    with pytest.raises(InputError, match="beside it"):
        policyspace.identify(frame(), "choice", formula="choice ~ time")
    with pytest.raises(InputError, match="did you mean 'income'"):
        policyspace.identify(frame(), formula="choice ~ incom")


@pytest.mark.parametrize(
    "text",
    [
        "choice ~ __import__('os').system('touch broken')", "choice ~ {open('broken', 'w')}", "choice ~ I(time.income)",
        "choice ~ eval(time)", "choice ~ np.log(time)", "choice ~ I([x for x in time])", "choice ~ I(time**99)",
        "choice ~ I(time + income)", "choice ~ time:income", "choice ~ 0 + time", "choice", "~ time", "choice ~ 1",
        "a ~ b ~ c", "choice ~ (lambda: 1)()", "choice ~ `x` + + )", "",
    ],
)  # fmt: skip
def test_what_is_no_plain_formula_is_refused(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError):
        policyspace.identify(frame(), formula=text)
    assert not list(tmp_path.iterdir())


def test_a_name_in_backticks_is_a_name():
    assert parse_formula("choice ~ `reaction time` * cost").columns == ["reaction time", "cost"]


def test_factors_of_a_formula_and_random_effects():
    rng = np.random.default_rng(0)
    frame = polars.DataFrame({"gear": rng.integers(0, 3, 200), "speed": rng.normal(size=200)})
    frame = frame.with_columns(move=polars.Series(np.where(rng.random(200) < 0.5, "go", "stop")))
    answer = policyspace.identify(frame, formula="move ~ C(gear) + speed", policy="boltzmann")
    assert answer.group("gear").degrees_of_freedom == 2
    with pytest.raises(InputError, match="--subjects"):
        policyspace.identify(frame, formula="move ~ speed + (1|gear)")
