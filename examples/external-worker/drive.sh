#!/bin/sh
# A worker in POSIX shell: registers a graph with a fork and a join, creates an execution, and drives its nodes to the end over
# plain HTTP, both branches at once. Needs curl, sed and grep, and a server at $PYOCO_SERVER_URL (default http://127.0.0.1:8000).
set -eu
url=${PYOCO_SERVER_URL:-http://127.0.0.1:8000}
here=$(dirname "$0")
# Every command has a key of its own. Sent again under the same key it is done once, so that curl may retry.
run=$(date +%s)-$$

# request METHOD PATH [CURL ARGUMENTS]: prints the answer; what is no success ends the script.
request() {
  method=$1 path=$2
  shift 2
  answer=$(curl --silent --show-error --retry 5 --retry-connrefused --max-time 30 \
    --write-out '\n%{http_code}' --request "$method" "$@" "$url$path")
  status=$(printf '%s\n' "$answer" | sed -n '$p')
  body=$(printf '%s\n' "$answer" | sed '$d')
  case $status in
    2??) printf '%s\n' "$body" ;;
    *) printf '%s %s: HTTP %s %s\n' "$method" "$path" "$status" "$body" >&2 && return 1 ;;
  esac
}

# tell PATH BODY: a command under its own key.
tell() {
  request POST "$1" --header "X-Idempotency-Key: $run$1" --header "X-Correlation-Id: $run" \
    --header 'Content-Type: application/json' --data "$2"
}

# member NAME: the text of a member, out of JSON on standard input.
member() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }

# node NAME COMMAND BODY
node() {
  tell "/executions/$execution/nodes/$1/$2" "$3" >/dev/null
  echo "$1: $2"
}

# work NAME OUTPUT: one node from its start to its end.
work() {
  node "$1" start '{"workerId":"shell"}'
  node "$1" progress '{"progress":50,"message":"half of it"}'
  node "$1" success "{\"output\":$2}"
}

echo "== the graph"
request PUT /graphs/fork-and-join --header 'Content-Type: application/yaml' --data-binary "@$here/flow.yaml"

echo "== an execution"
execution=$(tell /executions '{"graphId":"fork-and-join","input":{"words":2}}' | member executionId)
[ -n "$execution" ]
echo "$execution"
tell "/executions/$execution/start" '{}' >/dev/null

echo "== before the fork"
work prepare '{"words":["hello","world"]}'

echo "== two branches at once"
work left '"hello"' &
left=$!
work right '"world"' &
right=$!
wait "$left"
wait "$right"

echo "== behind the join"
work merge '"hello world"'

echo "== how it ended"
status=$(request GET "/executions/$execution" | grep -o '"status":"[A-Z]*"' | head -n 1 | sed 's/.*:"\(.*\)"/\1/')
echo "$status"
request GET "/executions/$execution/events?limit=1000" | grep -o '"type":"[A-Z_]*"' | sed 's/.*:"\(.*\)"/  \1/'
[ "$status" = COMPLETED ]
