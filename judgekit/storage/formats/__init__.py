"""Formats of other tools, one file a format: each turns the cases and outputs of a file into rows with our field names.

The name of a file is the name of its format in a config; `storage.record_formats` has what they are made of,
`storage.reading` finds out which one a file is in. Other packages add theirs by the entry point `judgekit.formats`.
"""
