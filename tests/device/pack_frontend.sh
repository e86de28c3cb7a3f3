#!/bin/bash
# Adds the Python package to what pack.sh has packed: tests/device/pack_frontend.sh BUILD MODULE FOLDER, where MODULE is the extension module
# built for the Python there (a build folder of its own, with -DPython_EXECUTABLE=…, target _tenon; not that of `scripts/test versions`, which optimises less).
set -euo pipefail
build=$1 module=$2 to=$3
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$to/python/tenon" "$to/lib/tenon/plugins" "$to/tests"
cp -RL "$build"/python/tenon/*.py* "$build"/python/tenon/_[a-z]*/ "$to/python/tenon/"
cp "$module" "$to/python/tenon/"
for name in reference llvm canonical simplify cleanup; do cp "$build/lib/tenon/plugins/$name.so" "$build/lib/tenon/plugins/$name.json" "$to/lib/tenon/plugins/"; done
python3 -c 'import expecttest, os; print(os.path.dirname(expecttest.__file__))' | xargs -I{} cp -R {} "$to/python/"  # torch's operator database asks for it
cp -R "$here"/../{python,opinfo,walks,device,bench,process,fuzz_tensors,fuzz_loops,fuzz_objects,fuzz_modules,fuzz_python,plugins,conftest.py} "$to/tests/"
printf '[compile]\nbackends = ["cuda", "llvm"]\n' > "$to/tenon.toml"
strip --strip-unneeded "$to"/python/tenon/*.so "$to"/lib/tenon/plugins/*.so
python3 "$here/stamp.py" "$to"/lib/tenon/plugins/*.json
du -sh "$to"
