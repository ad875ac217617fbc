#!/bin/sh
# Many windows that open in the same second, on a real kube-apiserver: see storm.py.
here=$(cd "$(dirname "$0")" && pwd)
command -v go >/dev/null || [ -d "${XDG_CACHE_HOME:-$HOME/.cache}/flyball" ] || {
    echo "skipped: there is no Go, and no kube-apiserver was built"
    exit 0
}
exec "$here/../test/kube/cluster" run /usr/bin/python3 "$here/storm.py" "${FLYBALL:-$here/../build/flyball}" "$@"
