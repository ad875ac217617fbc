#!/bin/sh
# Paths and decisions of runtime configuration, beside client-go's JSONPath where there is Go.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
"$here/../build/bench/runtimeconfig_bench"
if command -v go >/dev/null; then
    cd "$here/peers" && GOFLAGS=-mod=mod go run ./jsonpath ||
        echo "client-go is not at hand: measured without it"
else
    echo "there is no Go here: measured without client-go"
fi
