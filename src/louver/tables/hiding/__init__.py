"""Which further cells of linked tables to hide, with a bound and an exact proof: arrays in, a pattern out.

`problem` states the requirements on a pattern, `hide` searches, `certify` proves. `louver.protect` and `louver.audit` use it.
"""
