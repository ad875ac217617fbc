#!/usr/bin/python3
"""sbom.py ROOT VERSION: the software bill of materials of the folder ROOT, as SPDX 2.3 JSON on standard output.

It names flyball and, for each library and data file, the Debian package and version that the file comes from.
"""
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time


def owner(path):
    """Package and version that installed `path`, or None."""
    for name in {str(path), os.path.realpath(path), re.sub(r"^/(usr/)?", "/usr/", str(path)),
                 re.sub(r"^/usr/", "/", os.path.realpath(path))}:
        found = subprocess.run(["dpkg-query", "-S", name], capture_output=True, text=True, check=False)
        if found.returncode == 0:
            package = found.stdout.split(": ")[0]
            version = subprocess.run(["dpkg-query", "-W", "-f", "${source:Package} ${Version}", package],
                                     capture_output=True, text=True, check=True).stdout.split()
            return package.split(":")[0], version[0], version[1]
    return None


def components(root):
    """Packages of the libraries and data in `root`."""
    found = {}
    for path in sorted(pathlib.Path(root).rglob("*.so*")):
        found[owner("/" + str(path.relative_to(root)))] = True
    for path, name in (("/usr/share/zoneinfo/UTC", "usr/share/zoneinfo"),
                       ("/usr/sbin/update-ca-certificates", "etc/ssl/certs/ca-certificates.crt")):
        if (pathlib.Path(root) / name).exists():
            found[owner(path)] = True
    return sorted(c for c in found if c)


def spdx(root, version, epoch):
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch))
    program = hashlib.sha256((pathlib.Path(root) / "usr/bin/flyball").read_bytes()).hexdigest()
    packages = [{"SPDXID": "SPDXRef-flyball", "name": "flyball", "versionInfo": version,
                 "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": "Apache-2.0",
                 "licenseDeclared": "Apache-2.0", "copyrightText": "NOASSERTION",
                 "checksums": [{"algorithm": "SHA256", "checksumValue": program}]}]
    links = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
              "relatedSpdxElement": "SPDXRef-flyball"}]
    for package, source, release in components(root):
        ref = "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", package)
        packages.append({"SPDXID": ref, "name": package, "versionInfo": release, "downloadLocation": "NOASSERTION",
                         "filesAnalyzed": False, "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION",
                         "copyrightText": "NOASSERTION", "sourceInfo": f"built from the Debian source {source}",
                         "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                                           "referenceLocator": f"pkg:deb/debian/{package}@{release}"}]})
        links.append({"spdxElementId": "SPDXRef-flyball", "relationshipType": "DEPENDS_ON",
                      "relatedSpdxElement": ref})
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
            "name": f"flyball-{version}", "documentNamespace": f"urn:flyball:{version}:{program}",
            "creationInfo": {"created": created, "creators": ["Organization: flyball maintainers"]},
            "packages": packages, "relationships": links}


if __name__ == "__main__":
    if len(sys.argv) != 3 or "SOURCE_DATE_EPOCH" not in os.environ:
        sys.exit("usage: SOURCE_DATE_EPOCH=SECONDS sbom.py ROOT VERSION")
    json.dump(spdx(sys.argv[1], sys.argv[2], int(os.environ["SOURCE_DATE_EPOCH"])), sys.stdout, indent=1)
    print()
