"""The demo: real programs through Tenon. Run it with ``./scripts/demo``."""
