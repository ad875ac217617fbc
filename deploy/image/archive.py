#!/usr/bin/python3
"""archive.py ROOT OUTPUT VERSION: an OCI image archive with one layer, the files of the folder ROOT.

No daemon and no privileges are needed. The same ROOT gives the same bytes: files are sorted and belong to root, and
SOURCE_DATE_EPOCH replaces every time stamp. skopeo, podman and containerd read the archive:

    skopeo copy oci-archive:flyball-0.1.0-amd64.oci.tar docker://registry.example/flyball:0.1.0
"""
import gzip
import hashlib
import io
import json
import os
import pathlib
import platform
import sys
import tarfile
import time

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
USER = "65532:65532"


def add(tar, name, epoch, path=None, data=b"", mode=0o644):
    entry = tarfile.TarInfo(name) if path is None else tar.gettarinfo(path, name)
    entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = epoch, 0, 0, "", ""
    if path is None:
        entry.size, entry.mode = len(data), mode
        tar.addfile(entry, io.BytesIO(data))
    elif entry.isreg():
        with open(path, "rb") as file:
            tar.addfile(entry, file)
    else:
        tar.addfile(entry)


def pack(root, epoch):
    """The layer, uncompressed."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(pathlib.Path(root).rglob("*")):
            add(tar, str(path.relative_to(root)), epoch, path)
    return out.getvalue()


class Layout:
    """The files of an OCI image layout, by name."""

    def __init__(self):
        self.files = {"oci-layout": json.dumps({"imageLayoutVersion": "1.0.0"}).encode()}

    def blob(self, data, media_type, **more):
        digest = hashlib.sha256(data).hexdigest()
        self.files[f"blobs/sha256/{digest}"] = data
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data), **more}

    def json_blob(self, value, media_type, **more):
        return self.blob(json.dumps(value, sort_keys=True).encode(), media_type, **more)


def make_layout(root, version, epoch):
    oci = "application/vnd.oci.image"
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch))
    architecture = ARCHITECTURES[platform.machine()]
    layer = pack(root, epoch)
    layout = Layout()
    labels = {"org.opencontainers.image.title": "flyball", "org.opencontainers.image.version": version,
              "org.opencontainers.image.licenses": "Apache-2.0"}
    config = layout.json_blob({
        "created": created, "architecture": architecture, "os": "linux",
        "config": {"User": USER, "Entrypoint": ["/usr/bin/flyball"], "Labels": labels, "WorkingDir": "/"},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]},
        "history": [{"created": created, "comment": "flyball " + version}],
    }, f"{oci}.config.v1+json")
    packed = layout.blob(gzip.compress(layer, 9, mtime=0), f"{oci}.layer.v1.tar+gzip")
    manifest = layout.json_blob({"schemaVersion": 2, "mediaType": f"{oci}.manifest.v1+json", "config": config,
                                 "layers": [packed], "annotations": labels}, f"{oci}.manifest.v1+json",
                                platform={"architecture": architecture, "os": "linux"},
                                annotations={"org.opencontainers.image.ref.name": version})
    layout.files["index.json"] = json.dumps({"schemaVersion": 2, "mediaType": f"{oci}.index.v1+json",
                                             "manifests": [manifest]}, sort_keys=True).encode()
    return layout


def main():
    if len(sys.argv) != 4 or "SOURCE_DATE_EPOCH" not in os.environ:
        sys.exit("usage: SOURCE_DATE_EPOCH=SECONDS archive.py ROOT OUTPUT VERSION")
    _, root, output, version = sys.argv
    epoch = int(os.environ["SOURCE_DATE_EPOCH"])
    layout = make_layout(root, version, epoch)
    with tarfile.open(output, "w", format=tarfile.PAX_FORMAT) as tar:
        for name in sorted(layout.files):
            add(tar, name, epoch, data=layout.files[name])


if __name__ == "__main__":
    main()
