"""The server: a web page, the APIs of LibreTranslate and DeepL, and an API for inspection."""
