"""The command line: each command parses its options, calls one workflow, prints, and sets the exit code.

Commands import what they run on inside the function, so that `--help` stays quick. What is printed comes from
`judgekit.reports`; which error ends with which exit code is said by `judgekit.core.errors`.
"""
