"""Two twins learn to tell rings from each other: one by plain steps, one by compiled ones."""
import copy
import time

import torch
from torch import nn

import tenon


def rings(count):
    """Points of three rings around the origin, and which ring each is on."""
    ring = torch.randint(0, 3, (count,))
    angle, radius = torch.rand(count) * 2 * torch.pi, ring + 1 + 0.15 * torch.randn(count)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], 1), ring


def stepper(net):
    """A training step as one writes it anywhere."""
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 300)

    def step(points, ring):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(points), ring)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        return loss.detach()

    return step


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.BatchNorm1d(32), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 3))
twin = copy.deepcopy(net)
ways = {"plain": stepper(net), "compiled": tenon.compile(stepper(twin))}
losses, seconds = {way: [] for way in ways}, dict.fromkeys(ways, 0.0)

for _ in range(300):
    batch = rings(64)
    for way, step in ways.items():
        start = time.perf_counter()
        losses[way].append(step(*batch).item())
        seconds[way] += time.perf_counter() - start

print("step      plain   compiled")
for at in range(0, 300, 50):
    print(f"{at:4}  {losses['plain'][at]:9.4f}  {losses['compiled'][at]:9.4f}")
print(f"seconds, compiling included: {seconds['plain']:.2f} plain, {seconds['compiled']:.2f} compiled")
points, ring = rings(1000)
for way, model in (("plain", net), ("compiled", twin)):
    with torch.no_grad():
        print(f"{way}: {(model.eval()(points).argmax(1) == ring).float().mean():.1%} of 1,000 new points are told right")
print({name: tenon.stats()[name] for name in ("graphs", "graph_breaks", "eager_fallbacks")})
