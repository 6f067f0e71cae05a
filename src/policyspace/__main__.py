"""`python -m policyspace`."""

from policyspace.cli import main

main()
