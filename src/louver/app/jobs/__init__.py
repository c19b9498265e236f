"""What runs in the process of a session: functions of plain data with a `Run`, answers as plain data."""
