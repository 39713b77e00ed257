"""The built-in corpus of pictures: generated scenes with captions, and a gold box for the thing each word is about."""

from .generation import HELD_OUT_PAIRS, generate
from .painting import masks, paint
from .scene import GROUND, Caption, Scene, Thing

__all__ = ["GROUND", "HELD_OUT_PAIRS", "Caption", "Scene", "Thing", "generate", "masks", "paint"]
