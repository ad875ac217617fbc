#!/bin/sh
# The memory of many calendars: see schedule_calendars.py.
exec /usr/bin/python3 "$(dirname "$0")/schedule_calendars.py" "$(dirname "$0")/../build/flyball" "$@"
