"""Methods that turn noisy answers into a table of group sizes, by what they add noise to; `mechanisms` lists them."""
