"""Deciding which inputs an agent uses from what it was seen to do."""
