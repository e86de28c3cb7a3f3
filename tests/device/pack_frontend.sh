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
python3 - "$to"/lib/tenon/plugins/*.json <<'END'  # a manifest says which bytes it was made for
import hashlib, json, pathlib, sys
for manifest in map(pathlib.Path, sys.argv[1:]):
    library = manifest.with_suffix(".so").read_bytes()
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"size": len(library), "sha256": hashlib.sha256(library).hexdigest()}, indent=2))
END
du -sh "$to"
