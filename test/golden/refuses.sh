#!/bin/sh
# What the golden runner must not take for success; $1 is the runner.
set -u
golden=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
number=0

# refuses STATUS FILE WHY: the runner ends with that status and prints one sentence.
refuses() {
    number=$((number + 1))
    said=$("$golden" "$folder/$2" 2>&1)
    status=$?
    if [ $status -eq "$1" ] && [ "$(printf '%s\n' "$said" | wc -l)" -eq "$4" ]; then
        echo "ok $number - $3"
    else
        echo "not ok $number - $3"
        echo "# status $status: $said"
    fi
}

echo '{"cases":[{"input":{"duration":"1s"},"expected":{"ok":false}}]}' >"$folder/unknown-family.json"
echo '{"cases":[]}' >"$folder/wva-duration-empty.json"
echo '{"about":"nothing"}' >"$folder/wva-duration-none.json"
echo '{"cases":[' >"$folder/wva-duration-cut.json"
echo '{"cases":[{"id":"a","input":{"duration":"1s"},"expected":{"ok":false}}]}' >"$folder/wva-duration-wrong.json"
echo '{"vectors":[{}]}' >"$folder/wva-duration.json"

echo 1..7
refuses 2 unknown-family.json 'an unknown family' 1
refuses 2 wva-duration-empty.json 'no case' 1
refuses 2 wva-duration-none.json 'no array of cases' 1
refuses 2 wva-duration-cut.json 'a broken file' 1
refuses 2 wva-duration-absent.json 'a missing file' 1
refuses 1 wva-duration-wrong.json 'a wrong answer' 2
refuses 1 wva-duration.json 'a case that wants nothing' 2
