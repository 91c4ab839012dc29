#!/bin/sh
# Runs the approval flow. Without an argument it stops for you; `run.sh yes` and `run.sh no` answer by themselves.
# Needs pyoco-client on the PATH, and a server that was started with --flows on the folder above this one.
set -eu
here=$(dirname "$0")
answer=${1:-}

member() { sed -n "s/.*\"$1\": \"\([^\"]*\)\".*/\1/p"; }

echo "== the flow gets a name"
pyoco-client graph put approval "$here/flow.yaml"

echo "== an execution of it starts"
execution=$(pyoco-client exec create approval --param to=Grace --start | member executionId)
echo "$execution"

echo "== it works until it needs a person"
until waiting=$(pyoco-client waits | grep "^$execution"); do
  case $(pyoco-client exec get "$execution" --json | grep -o '"status": "[A-Z]*"' | head -n 1) in
    *ACTIVE*) sleep 0.1 ;;
    *) echo "it has ended without asking anybody" >&2 && exit 1 ;;
  esac
done
echo "$waiting"

yes="pyoco-client node resume $execution approve --key letter --output '{\"approved\": true}'"
case $answer in
  yes) eval "$yes" ;;
  no) pyoco-client node resume "$execution" approve --key letter --output '{"approved": false}' ;;
  *) printf '== say yes in another terminal:\n%s\n' "$yes" ;;
esac

echo "== what happened, and what happens until the end"
pyoco-client exec events "$execution" --follow
