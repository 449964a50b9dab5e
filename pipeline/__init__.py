"""Framescribe: batch captioning and OCR with vision-language models, from manifests to Parquet."""

__version__ = "0.1.0"
