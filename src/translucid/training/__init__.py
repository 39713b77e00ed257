"""Training: objective, schedule, trainer, run folder."""
