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
python3 "$(dirname "$0")/stamp.py" "$to"/lib/tenon/plugins/*.json
du -sh "$to"
