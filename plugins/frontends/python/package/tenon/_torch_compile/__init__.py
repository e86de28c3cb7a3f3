"""What speaks to torch.compile: in its words, with its graphs, by its names."""
