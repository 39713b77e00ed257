"""Messages of programs: PO, JSON, YAML, Android, iOS, .NET, Java properties, tables."""
