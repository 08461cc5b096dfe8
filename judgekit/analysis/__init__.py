"""Findings from scores and judgments: figures with intervals, slices, gates, spot checks, drift, comparisons.

Workflows hand in records of core and get back frozen findings, which reports turn into text. Nothing here reads a file,
a clock or a random source. Formulas for plain numbers stand in `judgekit.stats`; what a number means stands here. A
figure whose docstring names no source is in-house.
"""
