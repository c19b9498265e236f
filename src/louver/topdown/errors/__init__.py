"""Known errors of a release: simulations, standard errors and intervals of regions, queries and unions of leaves."""
