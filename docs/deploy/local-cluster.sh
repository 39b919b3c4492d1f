#!/bin/sh
# A Redis Cluster on this machine, for trying it: three primaries from port 7001 on, each with REPLICAS replicas (none by
# default). Its files lie in DATA_DIR/nodes. It runs until it is ended; a second start finds what is there.
set -eu
port=${NODES_PORT:-7001}
replicas=${REPLICAS:-0}
dir=${DATA_DIR:-./data}/nodes
count=$((3 * (1 + replicas)))
failover=yes
writes=0
if [ "${DURABILITY:-fsync}" = replica ]; then
  failover=no
  writes=1
fi
pids=
nodes=
trap 'kill $pids 2>/dev/null || true; wait; exit 0' TERM INT
n=0
while [ "$n" -lt "$count" ]; do
  own=$((port + n))
  mkdir -p "$dir/$own"
  redis-server --port "$own" --bind 127.0.0.1 --dir "$dir/$own" --logfile redis.log --save '' \
    --cluster-enabled yes --cluster-node-timeout 3000 --cluster-require-full-coverage no \
    --cluster-replica-no-failover "$failover" --min-replicas-to-write "$writes" --min-replicas-max-lag 5 \
    --appendonly yes --appendfsync always --no-appendfsync-on-rewrite no --repl-diskless-sync-delay 0 \
    --maxmemory "${REDIS_MAXMEMORY:-256mb}" --maxmemory-policy noeviction &
  pids="$pids $!"
  nodes="$nodes 127.0.0.1:$own"
  n=$((n + 1))
done
for node in $nodes; do
  until redis-cli -p "${node#*:}" ping 2>/dev/null | grep -q PONG; do sleep 0.1; done
done
if redis-cli -p "$port" cluster info | grep -q 'cluster_known_nodes:1$\|cluster_known_nodes:1.$'; then
  # shellcheck disable=SC2086
  redis-cli --cluster create $nodes --cluster-replicas "$replicas" --cluster-yes
fi
wait
