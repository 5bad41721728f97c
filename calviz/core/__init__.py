"""Types, registries and errors: what everything else is made of."""
