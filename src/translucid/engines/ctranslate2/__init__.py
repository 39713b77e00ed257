"""CTranslate2, the fastest maintained engine for Transformers on CPUs: models for it, and searching with it."""
