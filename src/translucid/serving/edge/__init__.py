"""Checks of requests and responses: hosts, rate limits, sizes, errors."""
