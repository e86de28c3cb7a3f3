"""Times of a card."""
from __future__ import annotations

from collections.abc import Callable

import torch


def back_to_back(run: Callable[[], object], count: int, rounds: int) -> list[float]:
    """Microseconds of the card a call, of so many that follow each other, a number a round."""
    taken = []
    for _ in range(rounds):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        begin.record()
        for _ in range(count):
            run()
        end.record()
        torch.cuda.synchronize()
        taken.append(begin.elapsed_time(end) * 1000 / count)
    return taken
