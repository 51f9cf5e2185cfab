#!/bin/sh
# Prints the folder of HDF5 headers (1.14 or newer) to build with, or nothing.
# Usage: find.sh BUILD HDF5_INCLUDE CARGO
build=$1 wanted=$2 cargo=$3
here=$(dirname "$0")

new_enough() {  # folder: has the connector interface of HDF5 1.14, which 1.10 and 1.12 lack
    [ -f "$1/H5VLconnector_passthru.h" ] && grep -q 'H5VL_dataset_class_t' "$1/H5VLconnector.h" &&
        grep -q 'size_t count, void \*dset\[\]' "$1/H5VLconnector.h"
}

if [ -n "$wanted" ]; then
    if new_enough "$wanted" && [ -f "$wanted/H5pubconf.h" ]; then echo "$wanted"; exit; fi
    echo "cachevol: HDF5_INCLUDE=$wanted does not hold the headers of HDF5 1.14 or newer" >&2
    exit
fi
for folder in ${HDF5_DIR:+"$HDF5_DIR/include"} \
    $(h5cc -showconfig 2>/dev/null | sed -n 's/^ *Installation point: *//p' | sed 's,$,/include,' | grep '^/'); do
    if new_enough "$folder" && [ -f "$folder/H5pubconf.h" ] && ! grep -q 'define H5_HAVE_PARALLEL 1' "$folder/H5pubconf.h"; then
        echo "$folder"; exit
    fi
done
if new_enough "$build/include"; then echo "$build/include"; exit; fi
sources=$(sh "$here/crate.sh" "$here/Cargo.toml" "$cargo")
[ -n "$sources" ] || exit 0
rm -rf "$build/include.new"
mkdir -p "$build/include.new" &&
    cp "$sources"/src/*.h "$here/H5pubconf.h" "$build/include.new/" &&
    rm -rf "$build/include" && mv "$build/include.new" "$build/include" && echo "$build/include"
exit 0
