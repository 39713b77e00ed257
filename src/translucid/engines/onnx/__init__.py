"""Search with ONNX Runtime: graphs of an encoder and of one decoder step, and a beam search in NumPy."""
