#!/usr/bin/python3
"""Embeds the type tables: embed.py OUTPUT INPUT... writes them, without comments and gzipped, as one C array."""
import gzip
import sys

text = ""
for path in sys.argv[2:]:
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            line = line.split("#")[0].rstrip()
            text += line + "\n" if line else ""
data = gzip.compress(text.encode(), 9, mtime=0)
with open(sys.argv[1], "w", encoding="utf-8") as out:
    out.write("#include <stddef.h>\nextern const unsigned char types_packed[];\nextern const size_t types_packed_n;\n")
    out.write(f"const size_t types_packed_n = {len(data)};\nconst unsigned char types_packed[] = {{\n")
    for at in range(0, len(data), 24):
        out.write(" " + "".join(f"{byte}," for byte in data[at : at + 24]) + "\n")
    out.write("};\n")
