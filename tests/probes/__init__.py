"""What tries to break it: kills, damage, full disks, hostile input; a few times in tests, at length in benchmarks."""
