"""Logs that do not fit in memory: files and their parts, read in passes, on threads or on a dask cluster."""
