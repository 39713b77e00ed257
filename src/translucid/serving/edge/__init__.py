"""Checks on requests and responses: hosts, limits, sizes, errors."""
