"""Scheduling: batches, workers, fairness between clients."""
