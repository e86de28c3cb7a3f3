"""Where the time of a workload of tests/bench/cuda.py goes: python3 timeline.py WORD…  Kernels by what they take in one call, and calls of the host."""
from __future__ import annotations

import collections
import sys

import torch
from torch.profiler import ProfilerActivity, profile

import tenon
from tests.bench.cuda import WORKLOADS, chosen

MOST = 22


def of_card(call) -> None:
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        call()
        torch.cuda.synchronize()
    taken, counts = collections.Counter(), collections.Counter()
    for event in seen.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            taken[event.name[:70]] += event.device_time
            counts[event.name[:70]] += 1
    print(f"  card: {sum(taken.values()):.0f} us in {sum(counts.values())} kernels and copies")
    for name, us in taken.most_common(MOST):
        print(f"    {us:8.0f} us {counts[name]:5d} x {name}")


def of_host(call) -> None:
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        call()
        torch.cuda.synchronize()
    rows = sorted(seen.key_averages(), key=lambda row: -row.self_cpu_time_total)
    print(f"  host: {sum(row.self_cpu_time_total for row in rows):.0f} us")
    for row in rows[:MOST]:
        print(f"    {row.self_cpu_time_total:8.0f} us {row.count:5d} x {row.key[:70]}")


def main() -> None:
    for name in chosen(sys.argv[1:]):
        make = WORKLOADS[name]()
        for label, way in (("compiled", tenon.compile), ("eager", lambda fn: fn)):
            call = make(way)
            for _ in range(6):
                call()
            torch.cuda.synchronize()
            print(f"{name}, {label}:")
            of_card(call)
            of_host(call)
        stats = tenon.stats()
        print({key: (counts["steps"], counts["nodes"]) for key, counts in stats["backends"].items() if counts["runs"]})


if __name__ == "__main__":
    main()
