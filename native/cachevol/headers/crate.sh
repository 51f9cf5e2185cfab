#!/bin/sh
# Prints the folder of HDF5's sources in the crate hdf5-metno-src that a manifest names, or nothing.
# Usage: crate.sh MANIFEST CARGO
manifest=$1 cargo=$2
command -v "$cargo" >/dev/null 2>&1 || exit 0
"$cargo" fetch --quiet --locked --manifest-path "$manifest" >&2 || exit 0
"$cargo" metadata --format-version 1 --locked --offline --manifest-path "$manifest" 2>/dev/null | tr ',' '\n' |
    sed -n 's,.*"manifest_path":"\([^"]*hdf5-metno-src[^"]*\)Cargo\.toml".*,\1ext/hdf5,p' | head -n 1
