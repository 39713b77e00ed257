"""Knowledge distillation: a teacher's translations of a corpus train a small, fast student; measured at the end."""
