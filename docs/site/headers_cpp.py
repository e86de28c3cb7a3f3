"""The reference of C++: what the SDK's headers declare, with their comments."""
from __future__ import annotations

import pathlib

from docs.site.headers import section

HEADERS = (
    "sdk/include/tenon/backend.h", "sdk/include/tenon/pass.h", "sdk/include/tenon/frontend.h", "sdk/include/tenon/host_services.h", "sdk/include/tenon/device.h",
    "sdk/include/tenon/parallel_for.h", "framework/core/abi/graph_view.h", "sdk/include/tenon/embed.hpp", "framework/core/ops/build/node_builder.h",
)  # fmt: skip


def page(root: pathlib.Path) -> str:
    opening = ("# C++ reference of the SDK", "", "What a plugin or a program that embeds Tenon includes in C++. [Writing a plugin](plugins.md) is the guide; "
               "samples are [04_backend_plugin](../samples/04_backend_plugin/README.md), [05_pass_plugin](../samples/05_pass_plugin/README.md) and "
               "[06_embed_in_cpp](../samples/06_embed_in_cpp/README.md).", "")  # fmt: skip
    return "\n".join([*opening, *(section(root, header) for header in HEADERS)])
