"""Translators as ONNX: an encoder and one step of a decoder, for any program that has onnxruntime."""
