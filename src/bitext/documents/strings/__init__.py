"""Messages of programs: PO, JSON, YAML, Android, Apple, .NET, Qt, Fluent, Java properties, tables."""
