#!/bin/sh
# The operator with nothing to do: see operator.py.
exec /usr/bin/python3 "$(dirname "$0")/operator.py" "$(dirname "$0")/../build/flyball" "$@"
