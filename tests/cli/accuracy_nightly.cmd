# The errors on all published rows, as docs/accuracy.md has them.
longhaul validate | sed -n '/^errors/,$p'
