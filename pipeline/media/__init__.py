"""Media: from the bytes of a file to the uint8 pixels that a model takes."""
