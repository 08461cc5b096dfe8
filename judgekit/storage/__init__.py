"""Everything that touches the disk: data files and their formats, run folders, the results database, the cache.

Data files come in as cases and outputs of core, or as one error line that names file, line and JSON path. A run folder
is written as the run goes and is the only source of truth; the database can be built again from the folders.
"""
