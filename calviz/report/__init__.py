"""Results written down for others: JSON now, documents later."""
