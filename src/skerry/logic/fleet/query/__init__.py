"""Questions about what edges report, and answers that follow every change.

A row is one copy at one edge. Its expressions are functions of the row alone, so a row is computed
when it changes and at no other time: what it contributed before is taken out, what it contributes
now is put in. ``answer.reference`` computes the same from scratch; tests compare both after every
change.

* ``asking``: from what a person types to a StatusQuery's spec; ``plan``: a spec read, compiled and
  judged. ``expressions``: CEL in two halves, what needs the whole object and what can wait.
* ``tables``: the tables that queries are folded from; ``rows``: one copy at one edge, and what a
  query makes of it; ``values``: what a result can hold, exact and bounded.
* ``fold``: all rows of one query; ``groups``: what those of one group come to; ``sketch``:
  percentiles of values that come and go.
* ``answer``: the status of a query; ``text``: for people and spreadsheets.

Promises: whatever edges report, a row costs no more than the plan was judged to, and an answer
stays below the size that its query asked for. Rows of one workspace are in no other's answer.
"""
