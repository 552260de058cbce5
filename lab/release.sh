#!/bin/bash
# release.sh v0.x.y puts the modules of HEAD into a proxy of files, as if HEAD had the tags of that
# version, and builds a program outside the repository with them: the one of the README, with an etcd
# store. GOTOOLCHAIN=go1.27.0 builds it with that toolchain. Other modules come from the module cache
# first.
set -euo pipefail
version=${1:?version}
top=$(git rev-parse --show-toplevel)
ours=github.com/concord-go/concord
work=$(mktemp -d)
trap 'git -C "$top" worktree remove --force "$work/tree"; rm -rf "$work"' EXIT

git worktree add --quiet --detach "$work/tree"
cd "$work/tree"
make -s versions VERSION="$version"
git -c user.name=release -c user.email= commit -qam "$version"
mapfile -t nested < <(awk '/^\t\.\// {print substr($1, 3)}' go.work)

# module adds a module to the proxy: its path in the repository, and what is not part of it.
module() {
	local dir=$1 path=$ours${1:+/$1}
	shift
	local at=$work/proxy/$path/@v
	mkdir -p "$at"
	echo "$version" >"$at/list"
	echo "{\"Version\":\"$version\",\"Time\":\"$(git log -1 --format=%cI)\"}" >"$at/$version.info"
	git show "HEAD:${dir:+$dir/}go.mod" >"$at/$version.mod"
	git archive --format=zip --prefix="$path@$version/" -o "$at/$version.zip" "HEAD${dir:+:$dir}" "$@"
}
module ''  . "${nested[@]/#/:(exclude)}"
for dir in "${nested[@]}"; do
	test "$dir" = lab || test "$dir" = examples || module "$dir" # no program imports these
done

mkdir "$work/party"
cd "$work/party"
cp "$top/examples/hello/main.go" .
cat >store.go <<'END'
package main

import "github.com/concord-go/concord/coordination/etcd"

var _ = etcd.New
END
local=$(go env GOMODCACHE)/cache/download
export GOWORK=off GOFLAGS="-modcacherw -trimpath" GOMODCACHE=$work/cache GONOSUMDB="$ours,$ours/*"
export GOPROXY="file://$work/proxy,file://$local,$(go env GOPROXY)"
go mod init party
go get $ours@"$version" $ours/coordination/etcd@"$version"
go mod tidy

go build -o party .
go version -m party | grep -E "^party|$ours"
