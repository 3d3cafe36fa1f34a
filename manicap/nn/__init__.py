"""Encoders, heads and decoders. Nothing here knows a loss.

Construction draws from torch's global generator: fork and seed it around the constructor to have the same weights again

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        encoder = NatureCNN(1, 210, 160)
"""
