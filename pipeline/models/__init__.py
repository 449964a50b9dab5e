"""Model types as data, and what is made of them: prompts and requests."""
