#!/bin/sh
# The embedded API server beside a real kube-apiserver and etcd, where this machine has them.
exec /usr/bin/python3 "$(dirname "$0")/apiserver.py" "$@"
