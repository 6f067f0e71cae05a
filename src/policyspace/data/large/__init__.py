"""Logs that are larger than memory: files in parts, read in passes."""
