"""Ways from noisy answers to a table of group sizes: one file for each published algorithm; `mechanisms` names them."""
