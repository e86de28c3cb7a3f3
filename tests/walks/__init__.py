"""Walks over a database of calls: each entry in a process of its own, what became of its samples counted in a table that a walk goes on with."""
