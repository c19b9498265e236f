"""The explorer: every job of louver in a browser, on this machine only.

`server` starts it and `guard` decides who may access it; a `session` belongs to one tab; `work` is the process in which its jobs (`jobs`)
run, so that Cancel really ends them; `look` draws; `copying` turns the user's choices into a command and a call; and every page is a module
in `pages` with a line in its list. Nothing is computed here that a verb does not compute.
"""
