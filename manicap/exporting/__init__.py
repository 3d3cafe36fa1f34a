"""Encoders for other programs: ONNX and torch.export, checked against torch."""
