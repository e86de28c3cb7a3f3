"""The same function on several backends: by name, by a list, by configuration, by a callable."""
import torch

import tenon


def wave(x):
    return torch.sin(x) * 2 + torch.cos(x)


x = torch.linspace(0, 1, 5)

print("backends:", ", ".join(sorted(tenon.backends())))

# By name. "reference" runs every op from its definition: slow, and the judge of the others.
print("reference", tenon.compile(wave, backend="reference")(x))

# By a list, in order of preference. "printer" prints the graph and claims nothing, so "llvm" runs it.
print("printer, then llvm", tenon.compile(wave, backend=["printer", "llvm"])(x))

# By configuration: tenon.toml in this folder names the backends of whoever says nothing.
print("configured", tenon.compile(wave)(x))


# By a callable of your own, which gets the graph as captured: a torch.fx.GraphModule, and as Tenon has it.
def by_hand(graph, example_inputs):
    graph.tenon_graph.print_tabular()
    return graph.forward


print("by hand", tenon.compile(wave, backend=by_hand)(x))
