"""Extending a release: new and finer attributes for people who were already released (Abowd et al. 2019, sections 1.1 and 2.3).

`problem` has the checked request, `estimation` divides every class of the first release, `repair` makes the final edits.
"""
