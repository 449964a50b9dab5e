"""Results: their schema, and what of them is durable."""
