"""The classes for Python users: translators and their results, and the base class of models for other tasks."""
