"""Demonstrations: logged states and actions, named, validated, read from files and written to them."""
