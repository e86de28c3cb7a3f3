#!/bin/bash
# Adds the Python package to what pack.sh has packed: tests/device/pack_frontend.sh BUILD MODULE FOLDER, where MODULE is the extension module
# built for the Python there (a build folder of its own, with -DPython_EXECUTABLE=…, target _tenon).
set -euo pipefail
build=$1 module=$2 to=$3
mkdir -p "$to/python/tenon" "$to/lib/tenon/plugins"
cp -RL "$build"/python/tenon/*.py* "$to/python/tenon/"
cp "$module" "$to/python/tenon/"
for name in reference canonical simplify cleanup; do cp "$build/lib/tenon/plugins/$name.so" "$build/lib/tenon/plugins/$name.json" "$to/lib/tenon/plugins/"; done
printf '[compile]\nbackends = ["cuda"]\n' > "$to/tenon.toml"
strip --strip-unneeded "$to"/python/tenon/*.so "$to"/lib/tenon/plugins/*.so
python3 "$(dirname "$0")/stamp.py" "$to"/lib/tenon/plugins/*.json
du -sh "$to"
