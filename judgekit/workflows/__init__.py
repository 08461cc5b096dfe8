"""One file a command, read from top to bottom: open, check, work, write.

`setup` turns a config into objects, `job` opens a new run of them, `stored` opens a run folder that is there, and `run`
carries a run out. Judging is done by `judgekit.engine`, figures by `judgekit.analysis`, text by `judgekit.reports`; a
workflow calls them in order and writes what they return.
"""
