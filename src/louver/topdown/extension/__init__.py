"""Extending a release: new and finer attributes for people who have been released already (Abowd et al. 2019, sections 1.1 and 2.3).

Read `load` for what is asked, `estimation` for how every class of the first release is divided, `repair` for the final edits.
"""
