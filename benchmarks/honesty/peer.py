"""What a careful user of statsmodels would do: a regression, Wald tests robust to clusters, and Holm's correction."""

import warnings

import numpy as np
import statsmodels.api as sm
from scipy.stats import f
from statsmodels.stats.multitest import multipletests

from benchmarks.honesty.scenario import Array, Scenario


class NoAnswer(Exception):
    """The regression did not give usable standard errors."""


def found_by_statsmodels(scenario: Scenario, significance: float) -> list[str]:
    """The inputs whose weight differs from zero: OLS for real numbers, MNLogit (with two actions: Logit) for labels.

    Standard errors are clustered by subject or episode, or, without either, robust to unequal variances (HC1).
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what statsmodels warns of is judged by its p-values
        try:
            p_values = _choices(scenario) if scenario.discrete else _real_numbers(scenario)
        except (np.linalg.LinAlgError, ValueError, sm.tools.sm_exceptions.PerfectSeparationError) as error:
            raise NoAnswer(str(error)) from error
    if not np.all(np.isfinite(p_values)):
        raise NoAnswer("standard errors are not finite")
    rejected = multipletests(p_values, significance, method="holm")[0]
    return [name for name, found in zip(scenario.names, rejected, strict=True) if found]


def _errors(scenario: Scenario) -> dict:
    if scenario.clusters is None:
        return {"cov_type": "HC1"}
    return {"cov_type": "cluster", "cov_kwds": {"groups": scenario.clusters}}


def _real_numbers(scenario: Scenario) -> Array:
    """One regression an action; the smallest p-value of an input times the number of actions (Bonferroni)."""
    design = sm.add_constant(scenario.features)
    actions = scenario.actions.reshape(len(design), -1)
    each = [sm.OLS(a, design).fit(use_t=True, **_errors(scenario)).pvalues[1:] for a in actions.T]
    return np.minimum(1, len(each) * np.min(each, axis=0))


def _choices(scenario: Scenario) -> Array:
    """A joint Wald test of all weights of an input."""
    design = sm.add_constant(scenario.features)
    codes = np.unique(scenario.actions, return_inverse=True)[1]
    fit = sm.MNLogit(codes, design).fit(disp=0, maxiter=200, **_errors(scenario))
    if not fit.mle_retvals["converged"]:
        raise NoAnswer("the fit did not converge")
    num_columns, num_equations = np.asarray(fit.params).shape
    theta, covariance = np.asarray(fit.params).ravel(order="F"), np.asarray(fit.cov_params())
    p_values = []
    for j in range(1, num_columns):
        own = j + num_columns * np.arange(num_equations)
        wald = theta[own] @ np.linalg.solve(covariance[np.ix_(own, own)], theta[own])
        p_values.append(f.sf(wald / num_equations, num_equations, _denominator(scenario)))
    return np.array(p_values)


def _denominator(scenario: Scenario) -> int:
    """Degrees of freedom, as for OLS: clusters, or rows, less one or less the weights."""
    n, q = scenario.features.shape
    return n - q - 1 if scenario.clusters is None else len(np.unique(scenario.clusters)) - 1
