"""Other people's models in and out."""
