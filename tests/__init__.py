"""A package, so that the benchmarks can import `tests.probes`."""
