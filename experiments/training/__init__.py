"""One training loop for all studies: settings and their command line, batches that can be sought, checkpoints, logs, a report.

A study has a frozen dataclass of settings with a field `training: Training`, a model, a loss and a `Source` of batches, and
calls `fit`. docs/training.md shows a whole one.
"""

from stmlang.experiments.training.errors import TrainingError
from stmlang.experiments.training.fitting import Fitted, Task, Validation, fit
from stmlang.experiments.training.settings import Training, meanings
from stmlang.experiments.training.source import Shuffled, Source

__all__ = ["Fitted", "Shuffled", "Source", "Task", "Training", "TrainingError", "Validation", "fit", "meanings"]
