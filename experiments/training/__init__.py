"""One training loop for all studies: settings and their command line, batches that can be sought, checkpoints, logs, a report.

A study has a frozen dataclass of settings with a field `training: Training` (`settings.py`), a model, a loss and a `Source` of
batches (`source.py`), and calls `fit` (`fitting.py`); `command.py` makes its command line, `report.py` its page. Nothing is
imported here, since a command line is read before what training needs is there. docs/training.md shows a whole study.
"""
