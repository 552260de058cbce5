#!/usr/bin/env bash
# Plays a night on call: three members on real processes in network namespaces of their own, etcd
# for the leases, a small disk for each member, and one of ten faults, which is not named.
#
#   night.sh up SEED     starts the shop, and half a minute later plays the fault of SEED
#   night.sh answer      says what was played, to be compared with what was written down before
#   night.sh down        ends everything
#
# Remedies, as an orchestrator and an operator of the network and machines have them:
#   start|stop|kill|resume MEMBER, network, space MEMBER, store start|stop, customers stop
#
# To look: DIR (default /tmp/night) has the logs and configurations of n1, n2, n3; the cockpits are
# at http://10.99.0.11:7070 to .13, with the token "night" (CONCORD_TOKEN=night concordctl -at …);
# /readyz is at port 8080.
# It takes root on Linux, and etcd in CONCORD_ETCD_BIN or in the testenv.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
dir=${DIR:-/tmp/night}
etcd=${CONCORD_ETCD_BIN:-$here/../../../bin/testenv/etcd}
members="n1 n2 n3"

ip_of() { echo "10.99.0.1${1#n}"; }
say() { echo "$(date +%T) $*" >>"$dir/answer"; }
# pick N ITEMS...: one of the items, by the seed and the number of the choice.
pick() {
	local n=$1; shift
	local hash; hash=$(printf '%s/%s' "$seed" "$n" | sha256sum | cut -c1-8)
	local i=$((16#$hash % $#)); shift $i; echo "$1"
}

network_of() { # a namespace, and its cable to the bridge
	ip netns add "night-$1"
	ip link add "night-$1" type veth peer name eth0 netns "night-$1"
	ip link set "night-$1" master night0 up
	ip -n "night-$1" addr add "$2/24" dev eth0
	ip -n "night-$1" link set eth0 up
	ip -n "night-$1" link set lo up
}
background() { # NAME COMMAND...: in the namespace of NAME
	(exec ip netns exec "night-$1" setsid "${@:2}") >>"$dir/$1.log" 2>&1 </dev/null &
	echo $! >"$dir/$1.pid"
	disown
}
within() { local n=$1; shift; ip netns exec "night-$n" "$@"; }

configure() { # member, with the variables of an old configuration
	local hosts=${hosts:-"10.99.0.11:6330, 10.99.0.12:6330, 10.99.0.13:6330"}
	cat >"$dir/$1.yaml" <<END
node:
  cluster: ${cluster:-shop}
  host: $(ip_of "$1")
  port: 7000
  secret-file: $dir/${secret:-secret}
  min-members: 2
  provider:
    class: automanaged
    hosts: [${hosts}]
  lease: shop
leases:
  shop:
    lease-class: etcd
    store: {endpoints: ["10.99.0.10:2379"], prefix: ${prefix:-shop/}}
replicators:
  shop:
    member: $1
    min-members: 3
    durable: ["${durable:-*}"]
    store: {class: bbolt, directory: $dir/$1.disk/shop}
singletons:
  clerk: {}
sharding:
  account: {shards: ${shards:-32}}
END
}

start() {
	local bin=$dir/bin/night
	test -e "$dir/$1.bin" && bin=$(cat "$dir/$1.bin")
	background "$1" "$bin" member "$dir/$1.yaml"
}
# finish MEMBER SIGNAL: sends it, and waits for the end of the process.
finish() {
	local pid; pid=$(cat "$dir/$1.pid")
	kill "-$2" "$pid" 2>/dev/null || true
	while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
}
store() {
	case $1 in
	start)
		background store "$etcd" --data-dir "$dir/store" --log-level warn \
			--listen-client-urls http://10.99.0.10:2379 \
			--advertise-client-urls http://10.99.0.10:2379
		;;
	stop) finish store KILL ;;
	esac
}

build() {
	mkdir -p "$dir/bin/runtime"
	cd "$here"
	go build -o "$dir/bin/night" .
	go build -o "$dir/bin/concordctl" ../../../cmd/concordctl
	# The same program with a monotonic clock of another rate. The runtime reads the clock without
	# libc, so libfaketime has no effect.
	local runtime; runtime=$(go env GOROOT)/src/runtime
	for rate in fast:1 slow:2; do # the clock is halved or quartered, and then tripled
		local to=$dir/bin/runtime/${rate%:*} shift=${rate#*:}
		sed "s|return nanotime1()|return nanotime1() >> $shift * 3|" \
			"$runtime/time_nofake.go" >"$to.go"
		sed "s|ADDQ\tDX, CX|&; SHRQ \$$shift, CX; IMULQ \$3, CX|" \
			"$runtime/time_linux_amd64.s" >"$to.s"
		echo "{\"Replace\": {\"$runtime/time_nofake.go\": \"$to.go\",
			\"$runtime/time_linux_amd64.s\": \"$to.s\"}}" >"$to.json"
		go build -overlay "$to.json" -o "$dir/bin/night-${rate%:*}" .
	done
}

faults=(killed frozen one-way disk clock configuration store-slow store-gone store-restored flood)

up() {
	seed=$1
	fault=${FAULT:-$(pick fault "${faults[@]}")}
	victim=$(pick victim $members)
	test -x "$dir/bin/night-slow" || build
	rm -rf "$dir"/n?.log "$dir"/n?.bin "$dir"/store* "$dir/answer"
	echo 'the secret of the shop at night' >"$dir/secret"
	echo 'a secret of the last year' >"$dir/secret.old"
	chmod 600 "$dir"/secret*
	ip link add night0 type bridge
	ip addr add 10.99.0.1/24 dev night0
	ip link set night0 up
	network_of store 10.99.0.10
	store start
	for m in $members; do
		network_of "$m" "$(ip_of "$m")"
		mkdir -p "$dir/$m.disk"
		mount -t tmpfs -o size=64m none "$dir/$m.disk"
		configure "$m"
	done
	if [ "$fault" = clock ]; then
		rate=$(pick rate fast slow)
		echo "$dir/bin/night-$rate" >"$dir/$victim.bin"
		say "the clock of $victim is $rate: half as fast again, or three quarters"
	fi
	for m in $members; do start "$m"; done
	(sleep $((20 + $(pick when 0 5 10 15))); play) </dev/null >"$dir/player.log" 2>&1 &
	echo $! >"$dir/player.pid"
	disown
}

play() {
	case $fault in
	killed) finish "$victim" KILL; say "$victim was killed" ;;
	frozen) kill -STOP "$(cat "$dir/$victim.pid")"; say "$victim is frozen" ;;
	one-way)
		local way; way=$(pick way OUTPUT INPUT)
		local end=-d; [ $way = INPUT ] && end=-s
		for m in $members; do
			[ "$m" = "$victim" ] || within "$victim" iptables -A "$way" $end "$(ip_of "$m")" -j DROP
		done
		say "$way of $victim to or from the other members is lost"
		;;
	disk) dd if=/dev/zero of="$dir/$victim.disk/filler" bs=1M status=none || true
		say "the disk of $victim is full" ;;
	clock | none) ;;
	configuration)
		local old; old=$(pick old secret=secret.old hosts=10.99.0.1${victim#n}:6330 shards=16 \
			prefix=old/ durable=orders-c1 cluster=shops)
		finish "$victim" TERM
		local "$old"
		configure "$victim"
		start "$victim"
		say "$victim was restarted with an old configuration: $old"
		;;
	store-slow)
		say "the store is slow"
		while kill -STOP "$(cat "$dir/store.pid")"; do
			sleep 2; kill -CONT "$(cat "$dir/store.pid")"; sleep 0.3
		done
		;;
	store-gone) finish store KILL; say "the store was killed" ;;
	store-restored)
		kill -STOP "$(cat "$dir/store.pid")"
		cp -r "$dir/store" "$dir/store.backup"
		kill -CONT "$(cat "$dir/store.pid")"
		finish "$victim" TERM; start "$victim"; sleep 20
		finish store KILL
		rm -r "$dir/store"; mv "$dir/store.backup" "$dir/store"
		store start
		say "the store was restored from a backup of 20 s before; $victim was restarted meanwhile"
		;;
	flood)
		local kind; kind=$(pick kind customer stranger)
		"$dir/bin/night" "$kind" "$(ip_of "$victim")" $([ "$kind" = customer ] && echo 500) &
		echo $! >"$dir/flood.pid"
		say "a $kind floods $victim"
		wait
		;;
	esac
}

case ${1:-} in
build) build ;;
up) up "${2:?SEED}" ;;
answer) cat "$dir/answer" ;;
start) start "$2" ;;
stop) finish "$2" TERM ;;
kill) finish "$2" KILL ;;
resume) kill -CONT "$(cat "$dir/$2.pid")" ;;
network) for m in $members; do within "$m" iptables -F; done ;;
space) rm -f "$dir/$2.disk/filler" ;;
store) kill "$(cat "$dir/player.pid")" 2>/dev/null || true
	kill -CONT "$(cat "$dir/store.pid")" 2>/dev/null || true
	store "$2" ;;
customers) kill "$(cat "$dir/flood.pid")" 2>/dev/null || true ;;
down)
	for p in player flood n1 n2 n3 store; do
		test -e "$dir/$p.pid" && kill -CONT "$(cat "$dir/$p.pid")" 2>/dev/null || true
		test -e "$dir/$p.pid" && kill -KILL "$(cat "$dir/$p.pid")" 2>/dev/null || true
		rm -f "$dir/$p.pid"
	done
	sleep 0.5 # for the processes to end
	for m in store $members; do
		ip netns del "night-$m" 2>/dev/null || true
		umount "$dir/$m.disk" 2>/dev/null || true
	done
	ip link del night0 2>/dev/null || true
	for m in store $members; do ip link del "night-$m" 2>/dev/null || true; done
	;;
*) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 2 ;;
esac
