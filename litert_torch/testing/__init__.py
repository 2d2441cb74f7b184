"""For tests of models: compare a converted model with its PyTorch original."""
