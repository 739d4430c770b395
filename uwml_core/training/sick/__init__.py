"""Short trainings on the sample data, each with a known illness, and healthy ones to hold them against."""

from uwml_core.training.sick.kinds import KINDS, SickKind
from uwml_core.training.sick.run import sick_run

__all__ = ["KINDS", "SickKind", "sick_run"]
