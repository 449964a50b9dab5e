"""How the demo model is trained, exported and examined."""
