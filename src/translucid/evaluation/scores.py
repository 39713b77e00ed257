"""placeholder"""
def bleu(h, refs):
    import sacrebleu
    return sacrebleu.corpus_bleu(h, refs).score
