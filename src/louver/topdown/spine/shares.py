"""Shares of the budget for a spec that leaves them out: if regions are arranged for areas, the shares of the geography, level by level.

Every level thus has the share that it would have without a spine, and geographic regions do not become worse because shares are chosen
again.
"""

from __future__ import annotations

from louver.topdown.measuring.noise_plan import measurable
from louver.topdown.options import SharesOptions
from louver.topdown.planning.shares import Aim, choose_shares
from louver.topdown.problem import Design
from louver.topdown.spine.forecast import geographic_design

__all__ = ["default_shares"]


def default_shares(design: Design) -> SharesOptions:
    """The shares chosen for the workload "even"."""
    arrangement = design.arrangement
    if arrangement is None or arrangement.geographic.n_levels != design.spine.n_levels:
        return _even(design)
    shares = geographic_design(design, _even).options.shares
    assert shares is not None
    name = dict(zip(arrangement.geographic.names, design.spine.names, strict=True))
    levels = {name[level]: share for level, share in shares.levels.items()}
    return shares.model_copy(
        update={"levels": levels, "at": {name[level]: own for level, own in shares.at.items()}}
    )


def _even(design: Design) -> SharesOptions:
    return choose_shares(design, measurable(design), Aim.named("even", design)).shares
