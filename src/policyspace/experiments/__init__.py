"""The paper's experiments: settings as plain data, one run as a pure function, an analysis of the records."""
