"""The command `translucid`: one file a subcommand, thin: parse, call, print."""
