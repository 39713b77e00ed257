"""Detection of bad sentence pairs, by rules that state their reasons and by what is usual in the corpus."""
