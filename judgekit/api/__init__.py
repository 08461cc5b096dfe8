"""judgekit as a library: the runs of the command line from Python, and what they found.

`running` starts them and `results` reads their folders; `in_memory` turns lists and frames into the files of a run, so
that a run from Python is a run like any other. `without_runs` has the figures that need no run.
"""
