"""Messages of programs: PO, JSON, YAML, Android, iOS, Java properties, tables."""
