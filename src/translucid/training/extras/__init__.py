"""What a training can add to the plain update and to its corpus; `training/steps.py` has the lists."""
