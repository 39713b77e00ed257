"""The APIs of other programs, whose clients can use this server unchanged."""
