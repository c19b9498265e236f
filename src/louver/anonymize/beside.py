"""What the other way of recoding would lose on the same data: beside one recoding for the file, classes one by one."""

from __future__ import annotations

from dataclasses import dataclass

from louver.anonymize.load import Loaded
from louver.anonymize.options import AnonymizeOptions
from louver.anonymize.publish import classes_as_published
from louver.anonymize.curve import MOST_SECONDS
from louver.anonymize.solve import form_classes
from louver.anonymize.watch import Watch
from louver.run import Run

__all__ = ["Beside", "local_beside"]



@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """The loss of a way of recoding that was not chosen, on the scale of the one that was."""

    recoding: str
    information_loss: float
    gcp: float
    classes: int
    suppressed: int


def local_beside(loaded: Loaded, options: AnonymizeOptions, run: Run) -> Beside | None:
    """What classes formed one by one would lose, in a short search; None where those are what is published."""
    if options.recoding == "local":
        return None
    watch = Watch(run, min(options.seconds, MOST_SECONDS) if options.steps is None else None)
    answer = form_classes(loaded, options.model_copy(update={"recoding": "local"}), watch)
    problem = loaded.problem
    return Beside(
        recoding="local",
        information_loss=problem.information_loss(answer),
        gcp=float(problem.lost_shares(answer).mean()) / problem.n_records,
        classes=classes_as_published(loaded, answer, options).n,
        suppressed=answer.n_suppressed,
    )
