"""What Ray Data maps: read, prepare, generate, write. Each takes and gives one batch as one Arrow row."""
