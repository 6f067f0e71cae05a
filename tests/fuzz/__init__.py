"""Hostile input by the hundred thousand, and processes killed at any moment: `make fuzz`."""
