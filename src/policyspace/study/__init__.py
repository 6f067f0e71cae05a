"""Ask and tell: a study of one agent, which lives in one file for as long as it takes."""

from policyspace.configuration.request import Forecast, Request
from policyspace.configuration.status import Status
from policyspace.study.study import Study

__all__ = ["Forecast", "Request", "Status", "Study"]
