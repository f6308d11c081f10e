"""replay: from the logs of a PyTorch run to what happened first, on which rank, why, and what it cost."""

__version__ = "0.1.0"
