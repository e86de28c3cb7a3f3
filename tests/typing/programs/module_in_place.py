from typing import assert_type

import torch

import tenon

net = tenon.compile(torch.nn.Linear(3, 2), in_place=True)
assert_type(net, torch.nn.Linear)
net(torch.ones(1, 3))
