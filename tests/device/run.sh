#!/bin/bash
# Runs parts on the machine with the card: tests/device/run.sh FOLDER PART…  A part that fails does not stop the next one.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
pack=$(cd "$1" && pwd)
shift
export TENON_CACHE=off LD_LIBRARY_PATH="$pack/lib:${LD_LIBRARY_PATH:-}" PYTHONPATH="$here" PYTHONUNBUFFERED=1
kit="$pack/bin/tenon-conformance $pack/lib/tenon/plugins/cuda.so"
failed=0
for part in "$@"; do
  echo "== $part"
  case $part in
    values) python3 "$here/values.py" "$pack/lib/libtenon.so" ;;
    bench) python3 "$here/bench.py" "$pack/lib/libtenon.so" ;;
    frontend) TENON_CONFIG="$pack/tenon.toml" PYTHONPATH="$pack/python" python3 "$here/frontend.py" ;;
    launches) python3 "$here/launches.py" "$pack/lib/libtenon.so" ;;
    cold) cache=$(mktemp -d); for process in 1 2; do TENON_CACHE=on TENON_CACHE_DIR="$cache" TENON_CONFIG="$pack/tenon.toml" PYTHONPATH="$pack/python" python3 "$here/cold.py" || break; done ;;
    conformance) $kit --jobs "$(nproc)" | tail -n 40 ;;
    sanitizer) timeout 150 compute-sanitizer --tool memcheck --target-processes all --error-exitcode 3 $kit --jobs "$(nproc)" --time-limit 120 \
      --filter 'sum,amax,argmax,var,softmax,transpose,permute,max_pool,mean,layer_norm' 2>&1 | grep -v '^=\+ *COMPUTE-SANITIZER$' | tail -n 25 ;;
    *) echo "no part is named $part" >&2; false ;;
  esac || { echo "== $part failed"; failed=1; }
done
exit $failed
