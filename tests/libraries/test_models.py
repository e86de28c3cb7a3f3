"""Models of libraries, as they are, come out as one graph that gives eager's results. Skipped where a library is not installed."""
import pytest

torch = pytest.importorskip("torch")

from tests.libraries.__main__ import measure  # noqa: E402
from tests.libraries.models import FAMILIES, is_installed  # noqa: E402

WHOLE = {
    "torch.nn": {"LSTM", "TransformerEncoder", "100 Linear"},
    "torchvision": {"resnet18", "densenet121", "mobilenet_v3_small", "swin_t"},
    "timm": {"resnet18", "convnext_atto"},
    "transformers": {"T5", "ViT"},
    "einops": {"Rearrange", "Reduce", "Attention by functions"},
}


@pytest.mark.parametrize("family", WHOLE)
def test_models_are_captured_whole(family):
    if not is_installed(family):
        pytest.skip(f"{family} is not installed")
    torch.manual_seed(0)
    found = set()
    for name, model, args, kwargs in FAMILIES[family]():
        if name not in WHOLE[family]:
            continue
        found.add(name)
        row = measure(model, args, kwargs)
        assert (row["graphs"], row["breaks"], row["fallbacks"]) == (1, [], 0), name
        assert row["error"] < 20, name
    assert found == WHOLE[family]
