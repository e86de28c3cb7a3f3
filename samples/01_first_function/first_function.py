"""One decorator, one graph, the same numbers."""
import numpy as np
import torch

import tenon


@tenon.compile
def gaussian_kernel(x, y):
    """Kernel matrix of points x (n, d) and y (m, d)."""
    distance = ((x[:, None, :] - y[None, :, :]) ** 2).sum(-1)
    return torch.exp(-distance / 2)


@tenon.compile
def standardise(table):
    """Columns with mean 0 and deviation 1."""
    return (table - table.mean(axis=0)) / table.std(axis=0)


x, y = torch.randn(300, 3), torch.randn(200, 3)
kernel = gaussian_kernel(x, y)
print("kernel matrix", tuple(kernel.shape), "largest error", float((kernel - torch.exp(-torch.cdist(x, y) ** 2 / 2)).abs().max()))

table = np.random.default_rng(0).normal(5, 2, (1000, 8))
print("columns have mean", np.abs(standardise(table).mean(axis=0)).max().round(6), "and deviation", standardise(table).std(axis=0).mean().round(6))

print(tenon.explain(gaussian_kernel.__wrapped__)(x, y))
