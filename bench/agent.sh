#!/bin/sh
# The node agent at size: see agent.py.
exec /usr/bin/python3 "$(dirname "$0")/agent.py" "${FLYBALL:-$(dirname "$0")/../build/flyball}" "$@"
