"""Settings for every test: the first call of a kernel compiles it, so examples have no deadline."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("louver", deadline=None)
settings.load_profile("louver")
