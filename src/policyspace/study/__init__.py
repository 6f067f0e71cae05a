"""Ask and tell: a study of one agent, which lives in one file for as long as it takes."""

from policyspace.study.answers import Forecast, Request, Status
from policyspace.study.study import Study

__all__ = ["Forecast", "Request", "Status", "Study"]
