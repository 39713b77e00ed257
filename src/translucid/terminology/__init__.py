"""Terms: how certain words are to be translated; found in sources, and pointed out to models that apply them."""
