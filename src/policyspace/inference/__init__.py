"""Tests of H_I that hold where Wilks' theorem does not: simulated, split, or valid at every look."""
