"""Compiles the bench's programs and networks once, with the code that stays."""
import torch

from tests.bench import networks, workloads


def main() -> None:
    torch.manual_seed(0)
    with torch.no_grad():
        for _, make in [*workloads.all_workloads(), *networks.networks()]:
            work = make()
            work.compiled(settled=True)(*work.args)


if __name__ == "__main__":
    main()
