"""Deterministic metrics: scores of a case and its output that need no model.

A metric family is one file: its columns, and a pure function from case and output to an outcome for each column (a
number, not applicable, or a failure). `judgekit.analysis` makes figures of all cases.
"""
