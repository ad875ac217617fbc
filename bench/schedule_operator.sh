#!/bin/sh
# The schedule's controller at size: see schedule_operator.py.
exec /usr/bin/python3 "$(dirname "$0")/schedule_operator.py" "$(dirname "$0")/../build/flyball" "$@"
