"""The explorer: every job of louver in a browser, on this machine alone.

`server` starts it and `guard` decides who may access it; a `session` belongs to one tab; `work` is the process in which its jobs run
(`jobs`), so that Cancel really ends them; `look` draws, `copying` turns the user's choices into a command and a call; every page is a
module in `pages` and a line in its registry. Nothing is computed here that a verb does not compute.
"""
