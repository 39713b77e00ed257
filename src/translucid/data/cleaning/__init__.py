"""Which pairs of a corpus are rubbish: rules, each with a reason, and what is usual in the corpus."""
