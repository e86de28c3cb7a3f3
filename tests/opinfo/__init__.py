"""torch's own database of operator samples, run through tenon.compile."""
