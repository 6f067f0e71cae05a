"""A record of what the library answers: many small problems, solved through its public interface, and the answers.

`python -m tests.golden_record [SECTION]…`, run from the root of the repository, makes the record anew. Do so only when an
answer is meant to change; what changed is then one line of `records/SECTION.json` for each problem.

Problems go through what users have: the names of `policyspace`, the command line, and files. Answers are read by the
functions of `answers`, one for each kind: where an answer gives a field another name, only these change, not the records.
"""
