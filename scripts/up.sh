#!/usr/bin/env bash
# `make up`: starts the server, runs examples/hello, and stays up. HOST and PORT choose the address.
set -euo pipefail
cd "$(dirname "$0")/.."

HOST=${HOST:-127.0.0.1}
PORT=${PORT:-8000}
DATA=${PYOCO_DATA_DIR:-.pyoco}
BIN=${BIN:-target/debug}
LOG=$DATA/server.log
URL=http://$HOST:$PORT
case $HOST in 0.0.0.0 | ::) URL=http://127.0.0.1:$PORT ;; esac

mkdir -p "$DATA"
# Signals of the terminal reach the server by themselves; from elsewhere they are passed on.
"$BIN/pyoco-server" up --host "$HOST" --port "$PORT" --data-dir "$DATA" --flows examples >"$LOG" &
server=$!
trap 'kill -TERM $server 2>/dev/null || true' TERM EXIT
trap : INT

client() { "$BIN/pyoco-client" --server "$URL" "$@"; }

until client metrics >/dev/null 2>&1; do
  if ! kill -0 $server 2>/dev/null; then
    wait $server || exit $?
  fi
  sleep 0.1
done

echo
echo "== examples/hello: five tasks, three of them side by side, one of them retried"
run=$(client submit --flow-name hello --param name=you | sed 's/.*"run_id": "\([^"]*\)".*/\1/')
client watch "$run" --output status --until-terminal
echo
echo "== what the tasks printed"
"${PYTHON:-python3}" - "$LOG" "$run" <<'PY'
import json, sys
for line in open(sys.argv[1], encoding="utf-8"):
    event = json.loads(line)
    if event.get("logger") == "pyoco_server.task" and event.get("run_id") == sys.argv[2]:
        print(f"  {event['task']:<10} {event['message']}")
PY
echo
echo "== its result"
client tasks "$run" | "${PYTHON:-python3}" -c 'import json, sys; print(" ", json.load(sys.stdin)["task_records"]["report"]["output"])'
cat <<NEXT

The server stays up at $URL (log: $LOG). Try, in another terminal:
  $BIN/pyoco-client --server $URL submit --flow-name hello --param name=Ada
  $BIN/pyoco-client --server $URL list --output table
  $BIN/pyoco-client --server $URL get $run --records
  curl $URL/workers
  open $URL/docs
Stop it with Ctrl-C.
NEXT
trap 'kill -TERM $server 2>/dev/null || true' INT
wait $server && code=0 || code=$?
trap - EXIT
exit $code
