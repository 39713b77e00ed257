"""What stands beside attention: embeddings, positions, residual connections, feed-forward, recurrence."""
