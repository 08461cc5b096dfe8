"""Statistics on plain numbers: means, proportions, paired tests, agreement, resampling, sequential tests.

Every function names its formula and source, and tests hold it to an independent library or a published value. Nothing
here knows what a case or a judge is.
"""
