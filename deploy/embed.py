#!/usr/bin/python3
"""Embeds compressed manifests in the program: embed.py OUTPUT NAME INPUT... writes `struct manifest NAME[]`."""
import gzip
import pathlib
import sys

output, name, inputs = sys.argv[1], sys.argv[2], [pathlib.Path(path) for path in sys.argv[3:]]
with open(output, "w", encoding="utf-8") as out:
    out.write('#include "src/cmd/manifests.h"\n\n')
    for number, path in enumerate(inputs):
        out.write(f"static const unsigned char packed_{number}[] = {{\n")
        data = gzip.compress(path.read_bytes(), mtime=0)  # mtime=0: reproducible output
        for at in range(0, len(data), 24):
            out.write(" " + "".join(f"{byte}," for byte in data[at : at + 24]) + "\n")
        out.write("};\n\n")
    out.write(f"const struct manifest {name}[] = {{\n")
    for number, path in enumerate(inputs):
        out.write(f'    {{ "{path.name}", packed_{number}, sizeof(packed_{number}) }},\n')
    out.write("    { 0 },\n};\n")
