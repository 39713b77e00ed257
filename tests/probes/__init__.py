"""Robustness trials: kills, damage, full disks, hostile input; short in tests, at full length in benchmarks."""
