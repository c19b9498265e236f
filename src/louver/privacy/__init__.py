"""Neighbour relations, budgets, exact noise, the ledger and sealed measurements."""
