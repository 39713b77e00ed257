"""What a training shows and writes: progress, metrics, trackers, provenance."""
