#!/bin/bash
# Runs parts on the machine with the card: tests/device/run.sh FOLDER PART…  A part that fails does not stop the next one.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
pack=$(cd "$1" && pwd)
shift
export TENON_CACHE=off LD_LIBRARY_PATH="$pack/lib:${LD_LIBRARY_PATH:-}" PYTHONPATH="$here:$pack/python:$pack" PYTHONUNBUFFERED=1
kit="$pack/bin/tenon-conformance $pack/lib/tenon/plugins/cuda.so"
# Runs files of tests with their tensors on the card, a process each. Names of tests there hold addresses, so that no plugin can share them out.
suites() {
  export TENON_CONFIG="$pack/tenon.toml" TENON_TEST_DEVICE=cuda:0
  find "$@" -name 'test_*.py' | sort | xargs -P "$(($(nproc) - 2))" -n 2 timeout 240 python3 -m pytest -q --timeout 100 -p no:cacheprovider --tb=line --no-header --import-mode=importlib
}
failed=0
for part in "$@"; do
  echo "== $part"
  case $part in
    values|bench|launches|products) python3 "$here/$part.py" "$pack/lib/libtenon.so" ;;
    programs|seen|training|torch_terms|draws|costs) TENON_CONFIG="$pack/tenon.toml" timeout 500 python3 "$here/$part.py" ;;
    cold) cache=$(mktemp -d); for process in 1 2; do TENON_CACHE=on TENON_CACHE_DIR="$cache" TENON_CONFIG="$pack/tenon.toml" python3 "$here/cold.py" || break; done ;;
    opinfo) TENON_CONFIG="$pack/tenon.toml" TENON_TEST_DEVICE=cuda:0 python3 "$here/opinfo.py" "${OPINFO_SECONDS:-400}" 6 ${OPINFO_ENTRIES:-} ;;
    opinfo_by_torch) TENON_CONFIG="$pack/tenon.toml" TENON_TEST_DEVICE=cuda:0 TENON_TEST_BACKEND=llvm python3 "$here/opinfo.py" "${OPINFO_SECONDS:-400}" 6 ${OPINFO_ENTRIES:-} ;;
    pytest) suites "$here"/../python/{devices,ops,tensors,training,modules,memory,opaque,control,breaks} ;;
    timeline) TENON_CONFIG="$pack/tenon.toml" PYTHONPATH="$pack:$pack/python" timeout 200 python3 "$here/timeline.py" ${NETWORKS:-step} ;;
    networks) TENON_CONFIG="$pack/tenon.toml" PYTHONPATH="$pack:$pack/python" timeout 550 python3 -m tests.bench.cuda ${NETWORKS:-} ;;
    conformance) $kit --jobs "$(nproc)" | tail -n 40 ;;
    sanitizer) timeout 150 compute-sanitizer --tool memcheck --target-processes all --error-exitcode 3 $kit --jobs "$(nproc)" --time-limit 120 \
      --filter 'sum,amax,argmax,var,softmax,transpose,permute,max_pool,mean,layer_norm' 2>&1 | grep -v '^=\+ *COMPUTE-SANITIZER$' | tail -n 25 ;;
    *) echo "no part is named $part" >&2; false ;;
  esac || { echo "== $part failed"; failed=1; }
done
exit $failed
