#!/bin/sh
# A controller that watches all pods: what its start and its events cost, beside client-go's.
exec /usr/bin/python3 "$(dirname "$0")/sync.py" "$@"
