"""Sutura: experiments with QUIC on lossy networks, and erasure codes for packets.

``sutura.lab`` runs the experiments, on this machine or on many. ``sutura.erasure`` has the codes.
"""

from . import erasure, lab

__all__ = ["erasure", "lab"]
