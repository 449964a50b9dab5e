"""A tiny vision-language model, the pictures it was trained on, and a sample dataset to caption with it."""
