"""A promise that only some methods may make."""

from __future__ import annotations

import pytest

from louver.groups.mechanisms import MECHANISMS
from louver.release.manifest import Manifest
from louver.release.promises import PROMISES
from louver.release.promises.requested import weaknesses


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=lambda mechanism: mechanism.name)
def test_only_relaxed_mechanisms_may_leave_open_whether_regions_add_up(mechanism):
    entry = {"promise": "group-counts", "levels": ["total", "state"]}
    release = Manifest(
        verb="groups", method=mechanism.name, parameters={"regions": ["state"]}, promises=[entry]
    )
    found = list(weaknesses(release))
    assert found == (
        [f'{mechanism.name} must promise more than "group-counts"'] if mechanism.is_consistent else []
    )
    assert (mechanism.name in PROMISES["group-counts"].only) == (not mechanism.is_consistent)
