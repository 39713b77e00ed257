"""Translation memory: what was translated before, found again exactly or nearly."""
