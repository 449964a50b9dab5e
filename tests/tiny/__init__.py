"""Tiny random models in Hugging Face's layout, one for each model type, so that tests load the real classes."""

from tests.tiny.build import KINDS, tiny_model

__all__ = ["KINDS", "tiny_model"]
