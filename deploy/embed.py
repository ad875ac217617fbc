#!/usr/bin/python3
"""Puts manifests into the program: embed.py OUTPUT NAME INPUT... writes `struct manifest NAME[]`."""
import pathlib
import sys

output, name, inputs = sys.argv[1], sys.argv[2], [pathlib.Path(path) for path in sys.argv[3:]]
with open(output, "w", encoding="utf-8") as out:
    out.write('#include "src/cmd/manifests.h"\n\n')
    for number, path in enumerate(inputs):
        out.write(f"static const char text_{number}[] = {{\n")
        data = path.read_bytes() + b"\0"
        for at in range(0, len(data), 24):
            out.write(" " + "".join(f"{byte}," for byte in data[at : at + 24]) + "\n")
        out.write("};\n\n")
    out.write(f"const struct manifest {name}[] = {{\n")
    for number, path in enumerate(inputs):
        out.write(f'    {{ "{path.name}", text_{number} }},\n')
    out.write("    { 0 },\n};\n")
