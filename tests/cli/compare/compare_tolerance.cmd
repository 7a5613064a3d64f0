# A number could be a fraction or a percentage.
longhaul compare a b --tolerance 0.15
