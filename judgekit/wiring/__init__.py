"""The composition root: puts together what workflows run on."""

from judgekit.wiring.assembly import Assembly, assemble, config_path_of, open_estimate
from judgekit.wiring.caches import estimating
from judgekit.wiring.jobs import open_job, results_dir_of
from judgekit.wiring.models import Options, open_models
from judgekit.wiring.resuming import resume_job

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
