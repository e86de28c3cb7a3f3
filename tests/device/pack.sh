#!/bin/bash
# Packs what run.sh needs on the machine with the card: tests/device/pack.sh BUILD FOLDER
set -euo pipefail
build=$1 to=$2
mkdir -p "$to/bin" "$to/lib/tenon/plugins"
cp "$build/bin/tenon-conformance" "$build/bin/tenon-probe" "$to/bin/"
cp "$build/lib/libtenon.so" "$to/lib/"
cp -L "$(ldd "$build/lib/libtenon.so" | awk '/libtbb/ { print $3 }')" "$to/lib/"
cp "$build/lib/tenon/defaults.toml" "$to/lib/tenon/"
for name in cuda text; do cp "$build/lib/tenon/plugins/$name.so" "$build/lib/tenon/plugins/$name.json" "$to/lib/tenon/plugins/"; done
strip --strip-unneeded "$to"/bin/* "$to"/lib/libtenon.so "$to"/lib/tenon/plugins/*.so
python3 - "$to"/lib/tenon/plugins/*.json <<'END'  # a manifest says which bytes it was made for
import hashlib, json, pathlib, sys
for manifest in map(pathlib.Path, sys.argv[1:]):
    library = manifest.with_suffix(".so").read_bytes()
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"size": len(library), "sha256": hashlib.sha256(library).hexdigest()}, indent=2))
END
du -sh "$to"
