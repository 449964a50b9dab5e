"""What makes the corpus: only `tests.media.make_corpus` needs this, and the encoders that it calls."""
