"""Published tables as an outsider sees them: pieces, the system of equations that they form, and certified bounds on its sums.

Shared by the verbs that audit tables and those that protect them; nothing here reads records or writes a release.
"""
