"""Building blocks around attention: embeddings, positions, residual connections, feed-forward, dropout."""
