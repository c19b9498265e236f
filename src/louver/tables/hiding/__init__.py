"""Which further cells of linked tables to hide, with a bound and an exact proof: arrays in, a pattern out.

`problem` says what a pattern has to do, `hide` searches, `certify` proves. `louver.protect` and `louver.audit` use it.
"""
