"""Thirteen lessons about attention, with the numbers of small models: pages that a browser shows, and notebooks."""
