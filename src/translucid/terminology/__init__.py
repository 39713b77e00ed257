"""Terminology: term lists, their matches in sources, and annotations for models that apply terms."""
