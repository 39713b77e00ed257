"""Names of what layers come in several kinds of; whoever reads options needs them without PyTorch."""

from typing import Literal, TypeAlias

Nonlinearity: TypeAlias = Literal["relu", "swish", "gelu"]
"""f(x) of max(0, x); x sigmoid(x) (Ramachandran et al. 2017, arXiv 1710.05941); x Phi(x) (Hendrycks and Gimpel 2016,
arXiv 1606.08415)."""

Sinusoids: TypeAlias = Literal["sinusoidal", "sinusoidal-halves", "sinusoidal-tensor2tensor"]
"""How sinusoids are arranged, see `positions.py`: as in the paper; as in the Marian models of Hugging Face; or as in
Tensor2Tensor, Marian itself, M2M100 and NLLB."""
