"""The layers of a model other than attention: embeddings, positions, residuals, feed-forward and recurrent layers."""
