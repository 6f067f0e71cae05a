"""Published numbers: Stata, R, NIST and firthlogist, each with where it comes from (see golden/README.md)."""

from pathlib import Path

import numpy as np
import pytest
import statsmodels.api as sm

from policyspace import GaussianLinear, InputError, Sample, SoftmaxLinear, likelihood_of, likelihood_ratio
from policyspace.families import ChiSquare


def boltzmann(x, y, names, reference=0, **more):
    data = Sample.from_arrays(x, y, names=names, discrete=True, reference=reference)
    return likelihood_of(SoftmaxLinear(data.names, data.action_names), data, **more)


def gaussian(x, y, names=None, covariance="estimate"):
    data = Sample.from_arrays(x, y, names=names, discrete=False)
    return likelihood_of(GaussianLinear(data.names, data.action_names, covariance), data)


def test_anes96_multinomial_logit():
    # Stata's mlogit: statsmodels/discrete/tests/results/results_discrete.py, class Anes, mnlogit_basezero.
    data = sm.datasets.anes96.load_pandas()
    found = boltzmann(data.exog.to_numpy(), data.endog.to_numpy().astype(int), tuple(data.exog.columns))
    assert found.num_rows == 944 and len(found.space.action_names) == 7
    assert found.full.log_likelihood == pytest.approx(-1461.922747312, abs=1e-6)
    null = found.fit(frozenset())
    assert null.log_likelihood == pytest.approx(-1750.34670999, abs=1e-6)
    test = likelihood_ratio(null, found.full)
    assert test.statistic == pytest.approx(576.8479253554, abs=1e-6)
    assert test.degrees_of_freedom == 30
    assert test.p_value == pytest.approx(1.8223179e-102, rel=1e-6)


def test_spector_logit():
    # Stata's logit: the same file, class Spector, logit; results_glm_logit_constrained.py for all the digits.
    data = sm.datasets.spector.load_pandas()
    found = boltzmann(data.exog.to_numpy(), data.endog.to_numpy().astype(int), tuple(data.exog.columns))
    assert found.full.log_likelihood == pytest.approx(-12.88963422213144, abs=1e-9)
    test = likelihood_ratio(found.fit(frozenset()), found.full)
    # That run read the grades in single precision: its digits end here.
    assert test.statistic == pytest.approx(15.4041924625676, abs=2e-6)
    assert (test.degrees_of_freedom, test.p_value) == (3, pytest.approx(0.0015018776, abs=2e-9))
    null = 11 * np.log(11 / 32) + 21 * np.log(21 / 32)
    assert test.statistic == pytest.approx(2 * (-12.88963422213144 - null), abs=1e-8)


def test_macrodata_likelihood_ratio_and_f():
    # R's lmtest::lrtest and waldtest: statsmodels/stats/tests/test_diagnostic.py, test_compare_lr.
    d = sm.datasets.macrodata.load_pandas().data
    growth = {name: 400 * np.diff(np.log(d[name].to_numpy())) for name in ("realinv", "realgdp")}
    x = np.column_stack([growth["realgdp"], d["realint"].to_numpy()[:-1]])
    found = gaussian(x, growth["realinv"], ("ggdp", "lint"))
    assert found.full.log_likelihood == pytest.approx(-763.9752181602237, abs=1e-9)
    restricted = found.fit(found.space.full_support - {2})
    assert restricted.log_likelihood == pytest.approx(-766.3091902020184, abs=1e-9)
    test = likelihood_ratio(restricted, found.full)
    assert test.statistic == pytest.approx(4.66794408358942, abs=1e-9)
    assert ChiSquare().p_value(test.statistic, 1) == pytest.approx(0.03073069384028677, abs=1e-10)
    assert np.expm1(test.statistic / 202) * 199 == pytest.approx(4.65216373312492, abs=1e-9)
    assert test.p_value == pytest.approx(0.03221346195239025, abs=1e-10)


def test_nist_longley():
    # https://www.itl.nist.gov/div898/strd/lls/data/LINKS/DATA/Longley.dat
    data = sm.datasets.longley.load_pandas()
    y = data.endog.to_numpy()
    found = gaussian(data.exog.to_numpy(), y, tuple(data.exog.columns))
    certified = [
        -3482258.63459582, 15.0618722713733, -0.358191792925910e-01, -2.02022980381683, -1.03322686717359,
        -0.511041056535807e-01, 1829.15146461355,
    ]  # fmt: skip
    np.testing.assert_allclose(found.full.theta, certified, rtol=1e-8)
    residual = y - sm.add_constant(data.exog.to_numpy()) @ found.full.theta
    assert residual @ residual == pytest.approx(836424.055505915, rel=1e-10)
    rss = 16 * np.exp(-2 * found.full.log_likelihood / 16 - 1 - np.log(2 * np.pi))
    assert rss == pytest.approx(836424.055505915, rel=1e-9)
    test = likelihood_ratio(found.fit(frozenset()), found.full)
    assert np.expm1(test.statistic / 16) * 9 / 6 == pytest.approx(330.285339234588, rel=1e-9)
    everywhere = found.statistics_of_all(list(found.space.tested))
    assert everywhere[0] == pytest.approx(test.statistic, abs=1e-8)


@pytest.mark.parametrize("base", [1.0, 0.1], ids=["wampler1", "wampler2"])
def test_nist_wampler(base):
    # y = Σ (base·x)^j, x = 0 … 20: https://www.itl.nist.gov/div898/strd/lls/data/LINKS/DATA/Wampler1.dat
    x = np.arange(21.0)
    powers = np.column_stack([x**j for j in range(1, 6)])
    coefficients = base ** np.arange(6)
    y = coefficients[0] + powers @ coefficients[1:]
    found = gaussian(powers, y, covariance=1.0)
    np.testing.assert_allclose(found.full.theta, coefficients, rtol=1e-6)
    assert found.identifiable
    with pytest.raises(InputError, match="exact linear function"):
        gaussian(powers, y)


def test_firth_on_sex2():
    # firthlogist 0.5.0, README: coefficients and penalised log-likelihood.
    table = np.loadtxt(Path(__file__).parents[1] / "golden" / "sex2.csv", delimiter=",", skiprows=1)
    names = ("age", "oc", "vic", "vicl", "vis", "dia")
    found = boltzmann(table[:, 1:], table[:, 0].astype(int), names, firth=True)
    published = [0.120254, -1.10598, -0.0688167, 2.26887, -2.11141, -0.788317, 3.09601]
    np.testing.assert_allclose(found.full.theta, published, rtol=1e-4)
    assert found.full.log_likelihood == pytest.approx(-132.5394, abs=5e-5)
    # R's logistf, the example of its manual: logistf(case ~ age + oc + vic + vicl + vis + dia, data = sex2).
    logistf = {
        "age": 6.143472e-03, "oc": 8.751911e-01, "vic": 1.678877e-06, "vicl": 1.237805e-05, "vis": 5.449701e-02,
        "dia": 4.951873e-03,
    }  # fmt: skip
    tests = [likelihood_ratio(found.fit(found.space.full_support - {g}), found.full) for g in found.space.tested]
    np.testing.assert_allclose([test.p_value for test in tests], list(logistf.values()), rtol=1e-5)
    assert tests[5].statistic == pytest.approx(7.89693139, abs=1e-6)
    assert tests[4].statistic == pytest.approx(3.69740975, abs=1e-6)
