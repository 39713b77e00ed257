"""Sentence pairs read from the files of translators, a part at a time: PO, TMX and XLIFF."""
