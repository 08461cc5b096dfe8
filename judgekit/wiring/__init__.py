"""The composition root: puts together what workflows run on.

Names are imported when they are first used, so that a command pays only for the part that it needs.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from judgekit.wiring.assembly import Assembly, assemble, config_path_of, open_estimate
    from judgekit.wiring.caches import estimating
    from judgekit.wiring.jobs import open_job, results_dir_of
    from judgekit.wiring.models import Options, open_models
    from judgekit.wiring.resuming import resume_job

_PLACES = {
    "Assembly": "assembly",
    "Options": "models",
    "assemble": "assembly",
    "config_path_of": "assembly",
    "open_estimate": "assembly",
    "open_models": "models",
    "estimating": "caches",
    "open_job": "jobs",
    "results_dir_of": "jobs",
    "resume_job": "resuming",
}

__all__ = [
    "Assembly",
    "Options",
    "assemble",
    "config_path_of",
    "estimating",
    "open_estimate",
    "open_job",
    "open_models",
    "results_dir_of",
    "resume_job",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'judgekit.wiring' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"judgekit.wiring.{_PLACES[name]}"), name)
