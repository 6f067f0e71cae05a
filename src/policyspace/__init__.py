"""policyspace: what does this agent perceive and control?

demonstrations ─► policy space ─► likelihood ─► GLR test ─► identification ─► report
"""

__version__ = "0.1.0"
