#!/usr/bin/python3
"""Embeds compressed files in the program: embed.py OUTPUT NAME INPUT... writes `struct manifest NAME[]`, or
`struct web_file web_files[]` for the page."""
import gzip
import pathlib
import sys

output, name, inputs = sys.argv[1], sys.argv[2], [pathlib.Path(path) for path in sys.argv[3:]]
header, kind = ("web/web_internal.h", "web_file") if name == "web_files" else ("cmd/manifests.h", "manifest")


def content(path):
    """The bytes of a file; of a script without its indentation and lines of comment, which would be a tenth of it."""
    if path.suffix != ".js":
        return path.read_bytes()
    lines = (line.strip() for line in path.read_text(encoding="utf-8").split("\n"))
    return "\n".join(line for line in lines if line and not line.startswith("//")).encode()


with open(output, "w", encoding="utf-8") as out:
    out.write(f'#include "src/{header}"\n\n')
    for number, path in enumerate(inputs):
        out.write(f"static const unsigned char packed_{number}[] = {{\n")
        data = gzip.compress(content(path), mtime=0)  # mtime=0: reproducible output
        for at in range(0, len(data), 24):
            out.write(" " + "".join(f"{byte}," for byte in data[at : at + 24]) + "\n")
        out.write("};\n\n")
    out.write(f"const struct {kind} {name}[] = {{\n")
    for number, path in enumerate(inputs):
        out.write(f'    {{ "{path.name}", packed_{number}, sizeof(packed_{number}) }},\n')
    out.write("    { 0 },\n};\n")
