"""Stories as transcripts: commands, and the rows that come of them.

A story is a text in ``stories``. Its blocks are comments, commands, a line of dashes and what the
commands print; one world lasts from the first block to the last. ``pytest tests/scenarios
--rewrite`` writes what is printed now into the texts: commit only a diff you can explain.
"""
