"""Methods that turn noisy answers into a table of group sizes, by the counts to which they add noise; `mechanisms` lists them."""
