"""How what was inspected is shown and saved: the terminal, web pages, notebooks, figures, files."""
