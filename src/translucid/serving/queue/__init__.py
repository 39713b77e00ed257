"""Scheduling: batches, workers, and fairness between clients."""
