"""The jobs of a session's worker process: functions that take plain data and a `Run` and return plain data."""
