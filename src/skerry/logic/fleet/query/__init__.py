"""Questions about what edges report, and answers that follow every change.

A row is one copy at one edge. Its expressions are functions of the row alone, so a row is computed
when it changes and at no other time: what it contributed before is taken out, what it contributes
now is put in. ``answer.reference`` computes the same from scratch; tests compare both after every
change.
"""
