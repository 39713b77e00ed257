"""The server: a web page, an API that LibreTranslate's clients can use, and one for looking inside."""
