"""Methods that turn noisy answers into a table of group sizes: one file per published algorithm; `mechanisms` lists them."""
