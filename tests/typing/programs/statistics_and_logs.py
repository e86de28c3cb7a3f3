from typing import Any, assert_type

import tenon

tenon.set_logs(graph_breaks=True, recompiles=False)
tenon.set_logs()
tenon.reset()
assert_type(tenon.stats(), dict[str, Any])
assert_type(tenon.plugins(), list[dict[str, Any]])
assert_type(tenon.is_compiling(), bool)
