"""The models of libraries that Tenon captures as they are: name -> (model, arguments). Random weights, evaluation, small sizes."""
from __future__ import annotations

import functools
import importlib
import importlib.util
import sys

import torch


def image(size=64, batch=1):
    return torch.randn(batch, 3, size, size, generator=torch.Generator().manual_seed(0))


def tokens(vocabulary, length=12, batch=1):
    return torch.randint(0, vocabulary, (batch, length), generator=torch.Generator().manual_seed(0))


def torch_nn():
    nn = torch.nn
    x = torch.randn(2, 10, 32, generator=torch.Generator().manual_seed(0))
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    yield "TransformerEncoderLayer", layer, (x,), {}
    yield "TransformerEncoder", nn.TransformerEncoder(layer, 2), (x,), {}
    yield "TransformerDecoderLayer", nn.TransformerDecoderLayer(32, 4, 64, batch_first=True), (x, x), {}
    yield "MultiheadAttention", nn.MultiheadAttention(32, 4, batch_first=True), (x, x, x), {}
    yield "LSTM", nn.LSTM(32, 16, num_layers=2, bidirectional=True, batch_first=True), (x,), {}
    yield "GRU", nn.GRU(32, 16, batch_first=True), (x,), {}
    yield "100 Linear", nn.Sequential(*[nn.Linear(4, 4) for _ in range(100)]), (torch.ones(1, 4),), {}


@functools.cache
def torchvision_operators():
    """Imports torchvision before timm or transformers does. One without its compiled library needs the operators declared first."""
    try:
        importlib.import_module("torchvision")
        return None
    except (ImportError, RuntimeError):
        for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
            del sys.modules[name]
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        if not hasattr(torch.ops.torchvision, name):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return library


def torchvision():
    torchvision_operators()
    from torchvision import models

    sizes = {"inception_v3": 96, "vit_b_32": 224, "swin_t": 64, "maxvit_t": 224}
    names = ("alexnet", "convnext_tiny", "densenet121", "efficientnet_b0", "efficientnet_v2_s", "googlenet", "inception_v3", "mnasnet0_5", "mobilenet_v2",
             "mobilenet_v3_small", "regnet_y_400mf", "resnet18", "resnext50_32x4d", "shufflenet_v2_x0_5", "squeezenet1_1", "swin_t", "swin_v2_t", "vgg11_bn",
             "vit_b_32", "maxvit_t", "wide_resnet50_2")
    for name in names:
        extra = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
        yield name, models.get_model(name, weights=None, **extra), (image(sizes.get(name, 64)),), {}
    from torchvision.models.detection.backbone_utils import resnet_fpn_backbone

    yield "resnet18 with pyramid", resnet_fpn_backbone(backbone_name="resnet18", weights=None), (image(64),), {}


def timm():
    torchvision_operators()
    import timm as library

    names = ("resnet18", "vit_tiny_patch16_224", "convnext_atto", "deit_tiny_patch16_224", "mixer_s32_224", "efficientnet_b0", "mobilenetv3_small_050",
             "regnetx_002", "levit_128s", "poolformer_s12", "swin_tiny_patch4_window7_224", "xcit_nano_12_p16_224", "ghostnet_050", "repvgg_a0", "edgenext_xx_small")
    for name in names:
        size = 224 if any(part in name for part in ("224", "levit", "poolformer")) else 64
        yield name, library.create_model(name, pretrained=False), (image(size),), {}


def transformers():
    torchvision_operators()
    import transformers as library

    def small(config, **more):
        return config(vocab_size=100, **more)

    bert = small(library.BertConfig, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64)
    yield "BERT", library.BertModel(bert), (tokens(100),), {}
    gpt2 = small(library.GPT2Config, n_embd=32, n_layer=2, n_head=4, n_positions=64)
    yield "GPT-2", library.GPT2LMHeadModel(gpt2), (tokens(100),), {"use_cache": False}
    yield "GPT-2, new cache", library.GPT2LMHeadModel(gpt2), (tokens(100),), {"use_cache": True}
    llama = small(library.LlamaConfig, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=64, max_position_embeddings=64)
    yield "Llama", library.LlamaForCausalLM(llama), (tokens(100),), {"use_cache": False}
    yield "Llama, dynamic cache", library.LlamaForCausalLM(llama), (tokens(100),), {"past_key_values": library.DynamicCache(config=llama)}
    yield "Llama, static cache", library.LlamaForCausalLM(llama), (tokens(100),), {"past_key_values": library.StaticCache(config=llama, max_cache_len=32)}
    t5 = small(library.T5Config, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4)
    yield "T5", library.T5Model(t5), (), {"input_ids": tokens(100), "decoder_input_ids": tokens(100, 6), "use_cache": False}
    vit = library.ViTConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=32, patch_size=8)
    yield "ViT", library.ViTModel(vit), (image(32),), {}
    yield "ViT, images classified", library.ViTForImageClassification(vit), (image(32),), {}
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    clip = library.CLIPConfig(text_config={**sizes, "vocab_size": 100, "max_position_embeddings": 16, "eos_token_id": 2},
                              vision_config={**sizes, "image_size": 32, "patch_size": 8}, projection_dim=16)
    yield "CLIP", library.CLIPModel(clip), (), {"input_ids": tokens(100), "pixel_values": image(32)}
    whisper = small(library.WhisperConfig, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
                    encoder_ffn_dim=64, decoder_ffn_dim=64, max_source_positions=20, max_target_positions=16, num_mel_bins=8, pad_token_id=0, bos_token_id=1,
                    eos_token_id=2, decoder_start_token_id=1)
    sound = torch.randn(1, 8, 40, generator=torch.Generator().manual_seed(0))
    yield "Whisper", library.WhisperModel(whisper), (), {"input_features": sound, "decoder_input_ids": tokens(100, 6), "use_cache": False}
    roberta = small(library.RobertaConfig, max_position_embeddings=32, **sizes)
    yield "RoBERTa, tokens masked", library.RobertaForMaskedLM(roberta), (tokens(100),), {"attention_mask": torch.ones(1, 12, dtype=torch.long)}
    distilled = small(library.DistilBertConfig, dim=32, n_layers=2, n_heads=4, hidden_dim=64)
    yield "DistilBERT", library.DistilBertModel(distilled), (tokens(100),), {}


def einops():
    from einops import rearrange, reduce, repeat
    from einops.layers.torch import Rearrange, Reduce

    class Attention(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.heads, self.qkv = 2, torch.nn.Linear(3, 24)

        def forward(self, x):
            q, k, v = map(lambda t: rearrange(t, "b n (h d) -> b h n d", h=self.heads), self.qkv(rearrange(x, "b c h w -> b (h w) c")).chunk(3, dim=-1))
            return repeat(reduce(q @ k.mT @ v, "b h n d -> b n d", "mean"), "b n d -> b n (2 d)")

    x = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    yield "Rearrange", torch.nn.Sequential(Rearrange("b c (h p) (w q) -> b (h w) (p q c)", p=2, q=2), torch.nn.Linear(12, 5)), (x,), {}
    yield "Reduce", torch.nn.Sequential(Reduce("b c (h 2) (w 2) -> b c h w", "mean"), torch.nn.ReLU()), (x,), {}
    yield "Attention by functions", Attention(), (x,), {}


FAMILIES = {"torch.nn": torch_nn, "torchvision": torchvision, "timm": timm, "transformers": transformers, "einops": einops}


def is_installed(family: str) -> bool:
    return importlib.util.find_spec(family.split(".")[0]) is not None
