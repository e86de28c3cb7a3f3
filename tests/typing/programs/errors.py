from typing import assert_type

import numpy as np

import tenon

try:
    tenon.compile(np.sin, options={"freezes": True})
except tenon.ConfigError as refused:
    assert_type(refused, tenon.ConfigError)
    error: tenon.Error = refused
    value: ValueError = refused
