"""The paper's experiments: settings as plain data, and one run as a pure function.

What their records say is the work of `policyspace.results`.
"""
