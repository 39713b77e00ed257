"""CTranslate2, the fastest maintained engine for Transformers on CPUs: models for it, and searching with it."""

import os

from translucid.kernels.machine import amd, avx512

# It has kernels for AVX-512 that have to be asked for before it is loaded. They are faster on AMD's processors; on
# Intel's, some of which slow down for them, they have not been measured.
if amd() and avx512():
    os.environ.setdefault("CT2_FORCE_CPU_ISA", "AVX512")
