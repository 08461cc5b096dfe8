"""Foreign formats of cases and outputs, one file a format: each turns what it reads into rows with our field names.

`lookup` finds the format of a file; `source` and `records` are what the readers stand on.
"""
