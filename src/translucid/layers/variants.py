"""The names of variants of layers, and of what is read from them; commands import them without PyTorch and Pydantic."""

from typing import Literal, TypeAlias

Nonlinearity: TypeAlias = Literal["relu", "swish", "gelu"]
"""f(x) = max(0, x), x sigmoid(x) (Ramachandran et al. 2017, arXiv 1710.05941) or x Phi(x) (Hendrycks and Gimpel 2016,
arXiv 1606.08415)."""

Norm: TypeAlias = Literal["pre", "post", "post-final"]
"""Layer normalization before each sublayer, after it, or after it and after the last block (`residual.py`)."""

Sinusoids: TypeAlias = Literal["sinusoidal", "sinusoidal-halves", "sinusoidal-tensor2tensor"]
"""The arrangement of sinusoids in `positions.py`: that of the paper, of Hugging Face's Marian models, or of
Tensor2Tensor, Marian itself, M2M100 and NLLB."""

Method: TypeAlias = Literal["weights", "content", "norms", "contributions"]
"""The relation of target to source words: attention weights, those of content words only, norm-based attention, or
contributions (ALTI)."""
