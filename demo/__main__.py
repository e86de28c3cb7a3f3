"""Runs the demo's programs eagerly and compiled, prints a table, and writes pictures to demo_output/."""
from __future__ import annotations

import argparse
import copy
import pathlib
import statistics
import time
from collections.abc import Callable

import matplotlib
import numpy as np
import torch
from matplotlib import pyplot
from PIL import Image
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits, load_sample_images

import tenon
from demo import digits, measure, other, photo

matplotlib.use("Agg")
OUTPUT = pathlib.Path("demo_output")
console = Console(width=170)


@tenon.compile
def develop(picture):
    """The photo pipeline, compiled; the module that it lives in imports only NumPy."""
    return photo.develop(picture)


@tenon.compile
def segment(picture):
    """The second pipeline: a library's own code."""
    return other.pipeline(picture)


def run(name: str, compiled: Callable, eager: Callable, args: tuple, judge: Callable, table: Table) -> object:
    """Compiles and times one program and adds its row. Returns the compiled result."""
    tenon.reset()
    compile_ms = measure.first_call_ms(compiled, args)
    result = compiled(*args)
    ms = measure.interleaved_ms({"eager": eager, "tenon": compiled}, args, seconds=2.0)
    stats = tenon.stats()
    report = tenon.explain(eager)(*args)
    backends = ", ".join(f"{b['nodes']} nodes on {n}" for n, b in stats["backends"].items() if b["nodes"])
    error = measure.largest_error(result, judge(*args))
    eager_error = measure.largest_error(eager(*args), judge(*args))
    table.add_row(name, f"{report.graph_count}", f"{report.op_count}", f"{stats['eager_fallbacks']}", f"{compile_ms:.1f}", f"{ms['eager']:.3f}",
                  f"{ms['tenon']:.3f}", f"{ms['eager'] / ms['tenon']:.1f}×", f"{error:.1e} ({eager_error:.1e})", backends)
    if report.graph_count != 1 or stats["eager_fallbacks"]:
        raise SystemExit(f"{name}: captured as {report.graph_count} graphs with {stats['eager_fallbacks']} fallbacks, not as one graph:\n{report}")
    return result


def as_png(image: np.ndarray, path: pathlib.Path) -> None:
    """Writes an image with values in [0, 1] or of 8 bits."""
    Image.fromarray(image if image.dtype == np.uint8 else (np.clip(image, 0, 1) * 255).astype(np.uint8)).save(path)


def photographs(table: Table) -> None:
    """scikit-learn's sample photographs, through both pipelines."""
    for picture, name in zip(load_sample_images().images, ("china", "flower")):
        drawn = run(f"photo.develop ({name})", develop, photo.develop, (picture,), measure.in_float64(photo.develop), table)
        as_png(picture, OUTPUT / f"{name}_before.png")
        as_png(drawn, OUTPUT / f"{name}_after.png")
    wide = picture.astype(np.float64) / 255
    second = run(other.NAME, segment, other.pipeline, (wide,), other.pipeline, table)
    as_png(second, OUTPUT / f"{name}_second.png")


def train_digits(x: torch.Tensor, y: torch.Tensor, steps: int = 150) -> torch.nn.Module:
    """Trains twins from the same weights, one by plain steps and one by compiled ones, and draws both losses. Returns the compiled steps' network."""
    torch.manual_seed(0)
    plain = digits.Digits()
    twin = copy.deepcopy(plain)
    tenon.reset()
    ways = {"eager": digits.stepper(plain), "tenon": tenon.compile(digits.stepper(twin))}
    losses, ms = {way: [] for way in ways}, {way: [] for way in ways}
    for _ in range(steps):
        for way, step in ways.items():
            start = time.perf_counter()
            losses[way].append(step(x, y).item())
            ms[way].append((time.perf_counter() - start) * 1e3)
    stats = tenon.stats()
    told = ", ".join(f"{way} {sum(ms[way]) / 1e3:.2f} s ({statistics.median(ms[way]):.2f} ms a step, loss {losses[way][-1]:.4f})" for way in ways)
    console.print(f"Trained on {len(x)} digits for {steps} steps, compiling included: {told}; {stats['graph_breaks']} graph breaks.")
    draw_losses(losses, OUTPUT / "digits_loss.png")
    if stats["graph_breaks"] or stats["eager_fallbacks"]:
        raise SystemExit(f"the training step is not one graph: {stats['graph_breaks']} breaks, {stats['eager_fallbacks']} fallbacks")
    return twin.eval()


def draw_losses(losses: dict[str, list[float]], path: pathlib.Path) -> None:
    """A curve a way, of the loss of each step."""
    figure, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
    for (way, values), style in zip(losses.items(), ("-", "--")):
        axes.semilogy(values, style, label=way)
    axes.set(xlabel="step", ylabel="loss", title="Digits, the same weights and batches")
    axes.legend()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def digit_network(table: Table) -> None:
    """A network trained for a moment on scikit-learn's digits, then asked about them."""
    data = load_digits()
    x, y = torch.tensor(data.data, dtype=torch.float32), torch.tensor(data.target)
    network = train_digits(x, y)
    wide = digits.Digits().double().eval()
    wide.load_state_dict(network.state_dict())
    compiled = tenon.compile(network)
    with torch.no_grad():
        answer = run("digits network (1797 images)", compiled, network, (x,), lambda x: wide(x.double()), table)
    console.print(f"The network reads {float((answer.argmax(1) == y).float().mean()):.1%} of the digits right.")
    with torch.no_grad():
        on_a_card(network, wide, x, table)


def on_a_card(network: torch.nn.Module, wide: torch.nn.Module, x: torch.Tensor, table: Table) -> None:
    """The network on a card, where there is one."""
    if not torch.cuda.is_available():
        console.print("There is no NVIDIA card here: all programs run on the host.")
        return
    there, pictures = copy.deepcopy(network).cuda(), x.cuda()

    def read(pictures: torch.Tensor) -> torch.Tensor:
        return there(pictures).cpu()

    run(f"the same on {torch.cuda.get_device_name()}", tenon.compile(read, backend=["cuda", "llvm"]), read, (pictures,), lambda x: wide(x.cpu().double()), table)


def other_backends(plugins: pathlib.Path | None) -> None:
    """The photo's graph through the printer, and through a plugin that knows nothing of this tree."""
    picture = load_sample_images().images[0]
    want = photo.develop(picture)
    names: list[list[str]] = [["printer", "llvm"]]
    if plugins:
        names.append([plugins.stem, "llvm"])
    for backends in names:
        tenon.reset()
        options = {"printer": {"file": str(OUTPUT / "photo_graph.txt")}} if backends[0] == "printer" else None
        result = tenon.compile(photo.develop, backend=backends, options=options)(picture)
        nodes = {n: b["nodes"] for n, b in tenon.stats()["backends"].items() if b["nodes"]}
        console.print(f"backends {backends}: nodes by backend {nodes}, largest difference from NumPy {np.abs(result - want).max():.1e}")


def main() -> None:
    """Runs everything."""
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    parser.add_argument("--plugin", type=pathlib.Path, help="a backend plugin built out of tree (its folder is in TENON_PLUGIN_PATH)")
    options = parser.parse_args()
    OUTPUT.mkdir(exist_ok=True)
    table = Table(title="Eager and compiled, medians of interleaved calls, on this machine")
    for title in ("program", "graphs", "ops", "fallbacks", "first call ms", "eager ms", "tenon ms", "speed-up", "error vs float64 (eager's)", "ran on"):
        table.add_column(title, justify="left" if title in ("program", "ran on") else "right")
    photographs(table)
    digit_network(table)
    console.print(table)
    other_backends(options.plugin)
    console.print(f"Pictures before and after, loss curves, and the printed graph: {OUTPUT}/")


if __name__ == "__main__":
    main()
