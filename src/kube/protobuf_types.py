#!/usr/bin/python3
"""Writes the table of protobuf fields that caches read: protobuf_types.py OUTPUT INPUT...

The inputs are .types files (src/apiserver/kinds/types/README.md has the format). Of all their types, the table has those
that the kinds in KINDS consist of, without the ones in OPAQUE, which no cache reads and which would double its size. A type
that loses a field to that, or has one of a type that the reader does not know, is not complete.
"""
import re
import sys

KINDS = [
    ("", "v1", "core.v1", "ConfigMap Namespace Node Pod Service"),
    ("apps", "v1", "apps.v1", "Deployment ReplicaSet StatefulSet"),
    ("autoscaling", "v2", "autoscaling.v2", "HorizontalPodAutoscaler"),
    ("batch", "v1", "batch.v1", "Job"),
    ("coordination.k8s.io", "v1", "coordination.v1", "Lease"),
    ("storage.k8s.io", "v1", "storage.v1", "StorageClass"),
    ("", "v1", "meta.v1", "Status"),
]
OPAQUE = {"core.v1." + name for name in (
    "AttachedVolume ContainerImage ContainerRestartRule ContainerUser EnvFromSource EnvVarSource EphemeralContainer "
    "HostAlias Lifecycle NodeAllocatableResourceClaimStatus NodeConfigStatus NodeDaemonEndpoints NodeFeatures "
    "NodeRuntimeHandler PersistentVolumeClaim PodAffinity PodAntiAffinity PodDNSConfig "
    "PodExtendedResourceClaimStatus PodResourceClaimStatus PodSchedulingGroup PodSecurityContext Probe ResourceStatus "
    "SecurityContext SessionAffinityConfig TopologySelectorTerm TopologySpreadConstraint Volume VolumeDevice VolumeMount "
    "VolumeMountStatus").split()} | {"batch.v1.PodFailurePolicy", "batch.v1.SuccessPolicy",
    "meta.v1.ManagedFieldsEntry"}
SCALARS = {"string": "STRING", "bytes": "BYTES", "int32": "INT32", "int64": "INT64", "bool": "BOOL",
           "quantity": "QUANTITY", "time": "TIME", "microtime": "MICRO_TIME", "intstr": "INT_OR_STRING"}
UNKNOWN = {"any", "float64"}
FIELD = re.compile(r"\s+(\d+) (\w+)([!?*]*) (\S+)")
EMBEDDED = re.compile(r"\s+(\d+) @ (\S+)")


def parse(paths):
    """Full name of a type -> list of (number, name, flags, type); None in place of an embedded type."""
    types, package, fields = {}, "", None
    for path in paths:
        for line in open(path, encoding="utf-8"):
            line = line.split("#")[0].rstrip()
            words = line.split()
            if line.startswith("package "):
                package = words[1]
            elif line.startswith("type "):
                fields = types.setdefault(f"{package}.{words[1]}", [])
            elif EMBEDDED.match(line):
                fields.append(None)
            elif line:
                number, name, flags, kind = FIELD.match(line).groups()
                base = kind.removeprefix("[]").removeprefix("map:")
                if base not in SCALARS and base not in UNKNOWN and "." not in base:
                    kind = kind.removesuffix(base) + f"{package}.{base}"
                fields.append((int(number), name, flags, kind))
    return types


class Table:
    def __init__(self, types):
        self.types = types
        self.names, self.at = {}, 0
        self.messages = {}  # full name -> index
        self.rows = []      # per message: rows of its fields, complete

    def name(self, text):
        if text not in self.names:
            self.names[text] = self.at
            self.at += len(text) + 1
        return self.names[text]

    def field(self, row):
        """The row of a field, and whether its value is complete; None if it cannot be read."""
        number, name, flags, kind = row
        bits = [bit for sign, bit in (("?", "PROTO_IF_SET"), ("*", "PROTO_ALWAYS")) if sign in flags]
        base = kind
        for prefix, bit in (("[]", "PROTO_LIST"), ("map:", "PROTO_MAP")):
            if base.startswith(prefix):
                base = base.removeprefix(prefix)
                bits.append(bit)
                break
        if base in OPAQUE or base in UNKNOWN or ":" in base or "[" in base:
            return None
        message, complete = 0, True
        if base not in SCALARS:
            if "PROTO_MAP" in bits:
                return None
            message, complete = self.message(base)
        kind = "PROTO_" + SCALARS.get(base, "MESSAGE")
        return f"{{ {self.name(name)}, {number}, {kind}, {' | '.join(bits) or '0'}, {message} }}, /* {name} */", complete

    def message(self, name):
        if name in self.messages:
            index = self.messages[name]
            if self.rows[index] is None:
                sys.exit(f"{name} contains itself")
            return index, self.rows[index][2]
        index = self.messages[name] = len(self.rows)
        self.rows.append(None)
        rows, complete = [], True
        for row in self.types[name]:
            if row and not row[0]:
                continue  # kind and apiVersion are not part of the message
            made = self.field(row) if row else None
            complete = complete and made is not None and made[1]
            if made:
                rows.append(made[0])
        self.rows[index] = (name, rows, complete)
        return index, complete


def main():
    table = Table(parse(sys.argv[2:]))
    kinds = []
    for group, version, package, names in KINDS:
        for name in names.split():
            index, _ = table.message(f"{package}.{name}")
            kinds.append(f'{{ "{group}", "{version}", "{name}", {index} }},')
    if len(table.rows) > 255 or table.at > 65535:
        sys.exit("the table is too large for its indexes")
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        out.write('#include "src/kube/protobuf_types.h"\n\nstatic const char names[] = {\n')
        for name in table.names:  # a literal would be longer than C allows
            out.write("    " + " ".join(f"'{c}'," for c in name) + " 0,\n")
        out.write("};\n\nstatic const struct prototable_field fields[] = {\n")
        first, messages = 0, []
        for name, rows, complete in table.rows:
            messages.append(f"{{ {first}, {len(rows)}, {str(complete).lower()} }}, /* {name} */")
            out.write("".join(f"    {row}\n" for row in rows))
            first += len(rows)
        for kind, rows in (("message", messages), ("kind", kinds)):
            out.write(f"}};\n\nstatic const struct prototable_{kind} {kind}s[] = {{\n")
            out.write("".join(f"    {row}\n" for row in rows))
        out.write("};\n\nconst struct prototable kube_protobuf_types = { names, fields, messages, kinds, "
                  f"{len(kinds)} }};\n")


main()
