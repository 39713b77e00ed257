"""Image captioners, from options and images to commands and routes.

Xu et al. 2015 with soft and hard attention, and a Transformer over the same grid. Read `image_encoder.py`, which turns
an image into a grid, then `model.py` next to its paper.
"""

from bitext.public_names import public_names

__getattr__, __dir__ = public_names(__name__)
