"""What a release would cost in accuracy, told before anything is spent."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from louver._words import counted
from louver.errors import printable
from louver.groups.plan import SizePlan
from louver.groups.simulate import Forecast

__all__ = ["Preview"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Preview:
    """The plan of a release, and the errors it would have with about `expect` groups spread evenly."""

    plan: SizePlan
    forecast: Forecast
    expect: int

    def to_dict(self) -> dict[str, Any]:
        found = zip(self.plan.levels, self.forecast.before, self.forecast.after, strict=True)
        levels = [
            {
                "name": level.name,
                "regions": level.n_regions,
                "share": float(level.share),
                "measured_l1": before.l1,
                "forecast_l1": after.l1,
                "forecast_emd": after.emd,
            }
            for level, before, after in found
        ]
        return {"mechanism": self.plan.mechanism.name, "levels": levels}

    def to_json(self) -> str:
        """The same as JSON text."""
        return json.dumps(self.to_dict())

    def __repr__(self) -> str:
        told = self.to_dict()
        lines = [
            f"Forecast for {told['mechanism']} on {self.expect:,} groups spread evenly, {self.plan.loss}; nothing is spent:"
        ]
        lines += [
            f"  {level['name']}: {counted(level['regions'], 'region')}, share {level['share']:.3f}, "
            f"L1 error about {level['forecast_l1']:,.0f}, earth mover's about {level['forecast_emd']:,.0f}"
            for level in told["levels"]
        ]
        return "\n".join(map(printable, lines))
