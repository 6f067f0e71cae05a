"""Environments that others wrote: agents are watched in them, and they are configured as our own worlds are."""
