"""Hostile input, thousands of times: bad files, texts, settings, images, run folders, vocabularies, lines and searches.

What is promised: bad input gets one clear line; nothing else is raised, nothing crashes, hangs, fills the memory or
loses a line; nothing outside a run folder is read.

    python -m tests.probes.hostile --count 100000

Each target is a file with a function `fuzz(count, seed) -> Tally`; `runner.py` gives each a process of its own.
"""
