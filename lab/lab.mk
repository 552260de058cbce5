# Long runs, benchmarks, generated code and releases, for the Makefile, which includes this.
.PHONY: compat tools docs-check browser sim soak heal night replace roll hostile soak-disk testenv mutants vuln alerts sbom fuzz bench bench-replication bench-sharding bench-hostile bench-durable scale slopes pekko bench-peers bench-peers-keys bench-peers-sharding bench-pekko laws versions outside apidiff proto proto-check

# Packages that call Proto.Actor; ALL=1, nightly, is for all whose tests contain it.
CALLS_ACTORS := ./internal/... ./node ./lab/noderun ./node/internal/guard ./coordination ./coordination/stash ./distributeddata ./singleton ./sharding ./testkit
USES_ACTORS := $(GO) list -test -f '{{$$p := .ImportPath}}{{range .Deps}}{{if eq . "github.com/asynkron/protoactor-go/actor"}}{{$$p}}{{end}}{{end}}' $(if $(ALL),work,$(CALLS_ACTORS)) | sed -n 's/\.test$$//p'
compat: ## the tests against the newest Proto.Actor that is also supported, of the packages that call it
	rm -rf $(BIN)/compat && mkdir -p $(BIN)/compat
	git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t $(BIN)/compat
	@set -e; cd $(BIN)/compat; for m in $(MODULES); do (cd $$m && $(GO) get github.com/asynkron/protoactor-go@v0.0.0-20260118094027-288962e52f3f && $(GO) mod tidy); done
	cd $(BIN)/compat && $(GO) vet work && $(TEST) $$($(USES_ACTORS)) && $(GO) run ./examples/quickstart
	rm -rf $(BIN)/compat

docs-check: ## the pages: Go blocks are lines of compiled files; links, commands, tests and fields exist
	cd examples/snippets && $(GO) vet .
	$(GO) test ./docs

VNU_VERSION := 26.9.27
VNU := $(BIN)/vnu-$(VNU_VERSION)/node_modules/vnu-jar/build/dist/vnu.jar
CHROMIUM = $(shell command -v chromium || command -v chromium-browser || command -v google-chrome)
browser: ## what cockpit-test needs: Chromium or Chrome, Java, and the Nu Html Checker from npm; installs it with apt if this is root
	@need="$(if $(CHROMIUM),,chromium fonts-dejavu-core)"; \
	command -v java >/dev/null || need="$$need default-jre-headless"; \
	test -e $(VNU) || command -v npm >/dev/null || need="$$need nodejs npm"; \
	test -z "$$need" || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null; } || { \
		echo "cockpit-test: NOT TESTED: install what Debian calls $$need, or run this as root on a Debian" >&2; exit 3; }; \
	test -z "$$need" || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$need; }
	@test -e $(VNU) || npm install --no-audit --no-fund --ignore-scripts --prefix $(BIN)/vnu-$(VNU_VERSION) vnu-jar@$(VNU_VERSION) || { \
		echo 'cockpit-test: NOT TESTED: npm cannot install vnu-jar, which validates the HTML' >&2; exit 3; }

SIMULATIONS := ./distributeddata/internal/core ./coordination/internal/core ./singleton/internal/core ./internal/membership ./sharding/internal/core
SIMULATION_TESTS := ^(TestHistories|TestSimulation_NeverTwoHolders|TestSimulation_AtMostOneInstance|TestSimulation_OneMovePerChange|TestSimulation_NeverTwoAlive|TestSimulation_PlannedMovesLoseNothing|TestSimulation_SplitsHeal|TestSimulation_OneSplitCostsLosersOneIncarnation|TestSimulation_WithoutASplitNobodyRejoins)$$

sim: ## SEEDS seeded histories (default 20000) each of replication, leases, singletons, splits and shards; FIRST=1 is the first seed
	@mkdir -p $(BIN); set -o pipefail; GOGC=400 $(GO) test -p 1 -v -timeout 24h -run '$(SIMULATION_TESTS)' $(SIMULATIONS) \
		-args -progress -seed $(or $(FIRST),1) -seeds $(or $(SEEDS),20000) 2>&1 | tee $(BIN)/sim.log; r=$$?; \
		echo; grep -E '^ok|^FAIL|histories, ' $(BIN)/sim.log | grep -v ' of '; exit $$r

soak: ## what takes long: SEEDS histories (default 100000), the scenarios on processes and the quickstart TIMES times (default 50)
	$(MAKE) sim SEEDS=$(or $(SEEDS),100000)
	$(GO) test -race -timeout 2h ./lab/datatest -args -rounds $(or $(TIMES),50)
	$(GO) test ./distributeddata/internal/core -run '^TestSmallWorlds$$' -timeout 24h -v -args -small 1000000
	$(GO) test ./distributeddata -run '^TestQuorums_' -timeout 1h -v -args -operations 100000
	$(GO) test ./lab/suites/automanaged -run SpeaksWith -timeout 1h -args -whole
	$(GO) test ./lab/shardtest -run ManyShards -timeout 1h -v -args -shards 1000
	$(GO) build -o $(BIN)/quickstart ./examples/quickstart
	for i in $$(seq $(or $(TIMES),50)); do $(BIN)/quickstart >$(BIN)/soak.log || { cat $(BIN)/soak.log; exit 1; }; done

heal: ## faults on real processes under node.Run, RUNS (default 3) runs of each case; about half an hour per run of all; CASE=regexp for some
	cd lab/testenv && $(GO) run . -only etcd -- $(GO) test ./lab/healtest -run '^Test(Heal|Outage)$$' -count=1 -timeout 1000h -v -parallel 1 \
		-args -runs $(or $(RUNS),3) -case '$(CASE)' -seed $(or $(SEED),0)
	$(GO) test ./lab/shardtest -run '^TestReal_(Rollout|Clerk.*)$$' -count=1 -timeout 1h -v -args -whole

night: ## a night on call: three members and etcd in network namespaces, and one of ten faults, by SEED, which is not named; lab/healtest/night/night.sh has the rest; takes root on Linux
	lab/healtest/night/night.sh up '$(or $(SEED),1)'

replace: ## rolling replacement of three and of five real members under load, ROUNDS (default 200) of each of four kinds; two seconds a round
	$(GO) test ./lab/datatest -run '^TestReal_RollingReplacement$$' -count=1 -timeout 24h -v -args -replacements $(or $(ROUNDS),200)

roll: ## five members under 1,000 requests a second, replaced in ROUNDS (default 200) rounds by FROM (default the former commit) and back, without and with versions of the application; FREEZE=6s stops a member in each round, KILL=1 kills one; prints a table; 20 s a round
	@mkdir -p $(BIN); $(GO) build -o $(BIN)/roll ./lab/bench/roll
	$(BIN)/roll $(ROLL)
	$(BIN)/roll $(ROLL) -app-version
roll: ROLL = -rounds $(or $(ROUNDS),200) -from '$(or $(FROM),HEAD~1)' -freeze $(or $(FREEZE),0) $(if $(KILL),-kill)

hostile: ## attacks on real members, without TLS and secret, with a secret, and with TLS; ATTACK=regexp for some
	$(GO) test ./lab/hostile -run '^TestHostile$$' -count=1 -timeout 1h -v -args -whole -attack '$(ATTACK)'

soak-disk: ## durable stores on real disks, TIMES (default 1000) power cuts, damaged files and killed processes each, a million elements that come and go, and whole clusters killed BLACKOUTS (default 100) times, and a disk of theirs damaged as often; takes root on Linux
	$(GO) test ./lab/disktest -count=1 -timeout 24h -v -args -mounts -seed $(or $(SEED),1) \
		-cuts $(or $(TIMES),1000) -damages $(or $(TIMES),1000) -kills $(or $(TIMES),1000) -cycles 1000000
	$(GO) test ./lab/datatest -run '^TestReal_(Blackout|Damage)$$' -count=1 -timeout 24h -v -args \
		-blackouts $(or $(BLACKOUTS),100) -damages $(or $(BLACKOUTS),100)

testenv: ## a shell beside the real servers, for single tests of stores
	cd lab/testenv && $(GO) run . -- $(SHELL)

mutants: ## plant known bugs, each must make its test fail
	$(GO) run ./lab/mutants

GOVULNCHECK_VERSION := v1.1.4
VULNDB := https://vuln.go.dev
vuln: ## known vulnerabilities of what the modules are built of; VULNDB=another database
	@curl -sSfo /dev/null --max-time 20 '$(VULNDB)/index/db.json' || { \
		echo 'vuln: NOT CHECKED: the vulnerability database $(VULNDB) cannot be reached; set VULNDB to a mirror' >&2; exit 3; }
	@$(MAKE) -s $(BIN)/govulncheck
	@set -e; for m in $(MODULES); do echo "== $$m"; (cd $$m && GOWORK=off $(BIN)/govulncheck -db '$(VULNDB)' -test ./...); done

alerts: $(BIN)/promtool ## the alert rules, on what Prometheus would have scraped
	cd docs/grafana && $(BIN)/promtool check rules alerts.yaml && $(BIN)/promtool test rules alerts_test.yaml

# From Debian's package, without the server that it would start.
$(BIN)/promtool:
	@mkdir -p $(BIN)/prometheus; promtool=$$(command -v promtool) || { command -v apt-get >/dev/null && \
		cd $(BIN)/prometheus && apt-get download -qq prometheus && dpkg -x prometheus_*.deb . && \
		promtool=$(BIN)/prometheus/usr/bin/promtool; } || { \
		echo 'alerts: NOT TESTED: install promtool of Prometheus, or run this on a Debian' >&2; exit 3; }; \
	ln -sf $$promtool $(BIN)/promtool

sbom: ## bin/sbom.json and one for each nested module: what it is built of, as CycloneDX; asks no server
	@mkdir -p $(BIN)
	$(GO) build -o $(BIN)/sbom ./lab/sbom
	@set -e; for m in $(MODULES); do n=$${m#.}; (cd $$m && $(BIN)/sbom) >$(BIN)/sbom$${n//\//-}.json; done
	@ls $(BIN)/sbom*.json

fuzz: ## every decoder for FUZZTIME (default 30s) each
	@set -e; for pkg in $$($(GO) list work); do \
		for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "== $$pkg $$f"; $(GO) test $$pkg -run '^$$' -fuzz "^$$f$$" -fuzztime $(or $(FUZZTIME),30s); \
		done; done

bench: ## every benchmark once; hours
	$(GO) test -run '^$$' -bench . -benchmem -timeout 5h work

bench-replication: ## what replication costs: convergence, traffic, joins, memory, updates
	set -o pipefail; $(GO) test ./distributeddata/internal/core -run '^TestNumbers_' -v | grep -E ' after |^ok|^FAIL'
	$(GO) test ./distributeddata/internal/core ./distributeddata/internal/sketch -run '^$$' -bench 'InSync|Locate|Delta|Updates|Difference' -benchmem
	$(GO) test ./distributeddata/internal/core -run '^$$' -bench 'Join|Memory|Churn' -benchtime 1x
	$(GO) test ./lab/bench/loopback -run '^$$' -bench . -benchtime 10x

bench-sharding: ## entities beside bare actors in one interleaved run: tell, remote tell, start, a move; a million entities; two to four minutes
	$(GO) run ./lab/bench/sharding

bench-hostile: ## what the guard, a secret, TLS and a flooding peer cost, on real processes in turn; about six minutes
	$(GO) run ./lab/bench/strangers

bench-durable: ## durable stores beside the disk and the databases they are on, in one interleaved run: about twenty minutes; DIR=/on/a/disk
	$(GO) run ./lab/bench/durable -dir '$(DIR)'

RESULTS := lab/bench/results
scale: ## what members say to each other and what that costs, 3 to 400 of them in virtual time, and how 3 to 50 start at once on loopback; writes lab/bench/results
	set -o pipefail; $(GO) test ./distributeddata/internal/core -run '^$$' -bench 'Members|ColdStart|Departed' -benchtime 1x -cpu 1 -timeout 2h | tee /dev/stderr | grep ^Bench >$(RESULTS)/members.txt
	set -o pipefail; $(GO) test ./internal/membership -run '^$$' -bench Members -benchtime 1x -cpu 1 -timeout 2h | tee /dev/stderr | grep ^Bench >$(RESULTS)/hellos.txt
	set -o pipefail; $(GO) run ./lab/bench/coldstart 3 10 30 50 | tee $(RESULTS)/coldstart.txt

slopes: ## how cost grows with the calls that wait, the keys of a transaction and the keys subscribed to; writes lab/bench/results
	set -o pipefail; $(GO) test ./distributeddata/internal/core -run '^$$' -bench Calls -benchtime 3x -cpu 1 | tee /dev/stderr | grep ^Bench >$(RESULTS)/slopes.txt
	set -o pipefail; $(GO) test ./distributeddata -run '^$$' -bench "Subscribed|Loops" -benchtime 5x -cpu 1 | tee /dev/stderr | grep ^Bench >>$(RESULTS)/slopes.txt
	$(GO) test ./distributeddata/internal/core -run '^$$' -bench Large -benchtime 1x -cpu 1
	$(GO) test ./sharding -run '^$$' -bench Rest -benchtime 100x -cpu 1

pekko: ## what bench-peers and bench-pekko need: a JDK of version 17 or later, and Maven; installs them with apt if this is root
	@need="$$(command -v javac >/dev/null || echo default-jdk-headless) $$(command -v mvn >/dev/null || echo maven)"; \
	test "$$need" = ' ' || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null; } || { \
		echo "pekko: NOT MEASURED: install what Debian calls $$need, or run this as root on a Debian" >&2; exit 3; }; \
	test "$$need" = ' ' || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$need; }
	cd lab/bench/pekko && mvn -q -B compile dependency:build-classpath -Dmdep.outputFile=target/classpath

bench-peers: pekko ## the same work for Concord, bare Proto.Actor and Apache Pekko, three processes each, in ROUNDS (default 3) rounds; writes docs/pictures and docs/performance.md; ten to fifteen minutes
	$(GO) build -o $(BIN)/peers ./lab/bench/peers
	$(BIN)/peers -rounds $(or $(ROUNDS),3) -out $(RESULTS)/peers.txt; r=$$?; $(GO) run ./lab/bench/plot && exit $$r

bench-peers-keys: pekko ## updates of all types of values with 1 to 100,000 keys and 1 to 1,000 callers, and the heap meanwhile; writes lab/bench/results/peers-keys.md; about ten minutes
	$(GO) build -o $(BIN)/peers ./lab/bench/peers
	$(BIN)/peers -keys -rounds $(or $(ROUNDS),1) -out $(RESULTS)/peers-keys.txt; r=$$?; $(GO) run ./lab/bench/plot && exit $$r

bench-peers-sharding: pekko ## entities of Concord and of Apache Pekko, and actors of bare Proto.Actor, three processes each, in ROUNDS (default 3) rounds: messages, starts, heap, moves of a shard, members that are killed; writes lab/bench/results/peers-sharding.md; about eleven minutes
	$(GO) build -o $(BIN)/peers ./lab/bench/peers
	$(BIN)/peers -sharding -rounds $(or $(ROUNDS),3) -out $(RESULTS)/peers-sharding.txt; r=$$?; $(GO) run ./lab/bench/plot && exit $$r

comma := ,
SIZE ?= 10,100,1000
JMH = java -cp lab/bench/pekko/target/classes:$$(cat lab/bench/pekko/target/classpath) org.openjdk.jmh.Main -f 1 -wi 4 -w 1s -i 5 -r 1s -rf csv -rff $(BIN)/jmh.csv
# Names and units as those of Go's benchmarks: for each line of JMH, its case, size, time and error.
KEEP_JMH = sed -nE 's/^"bench\.(\w+)\.(\w+)","avgt",1,([0-9]+),([0-9.]+),([0-9.NaN]+),"ns\/op",([0-9]+)\r?$$/BenchmarkPekko_\1\/\2\/elems=\6 \3 \4 ns\/op \5 error-ns\/op/p' $(BIN)/jmh.csv \
	| sed 's/Vectors\(.*\)elems/VersionVector\1replicas/' >>$(RESULTS)/merges.txt
bench-pekko: pekko ## merges and vectors beside those of Apache Pekko, in one run; writes lab/bench/results/merges.md; about seven minutes; SIZE=20 for another number of elements
	@mkdir -p $(BIN); { echo "# $$(date -u '+%-d %B %Y'), load $$(cut -d' ' -f1 /proc/loadavg) before"; \
		echo "# Pekko $$(grep -oE 'distributed-data_[0-9.]+-[0-9.]+[0-9]' lab/bench/pekko/target/classpath | sed 's/.*-//'), JMH, $$(java -version 2>&1 | head -1); $$($(GO) env GOVERSION)"; } >$(RESULTS)/merges.txt
	$(JMH) -p size=$(SIZE) bench.ORSetMerge && $(KEEP_JMH)
	set -o pipefail; $(GO) test ./crdt -run '^$$' -bench 'Peers_ORSetMerge/.*/elems=($(subst $(comma),|,$(SIZE)))$$' -benchmem -count 5 | tee /dev/stderr | grep ^Bench >>$(RESULTS)/merges.txt
	$(JMH) -p size=5 bench.Vectors && $(KEEP_JMH)
	set -o pipefail; $(GO) test ./crdt -run '^$$' -bench 'Peers_VersionVector/.*/replicas=5$$' -benchmem -count 5 | tee /dev/stderr | grep ^Bench >>$(RESULTS)/merges.txt
	echo "# load $$(cut -d' ' -f1 /proc/loadavg) after" >>$(RESULTS)/merges.txt
	$(GO) run ./lab/bench/plot

laws: ## every law of replicated types on LAWS (default 100,000) histories each, and the small model to 8 steps; hours
	$(GO) test ./crdt ./examples/customcrdt -run Laws -timeout 24h -args -rapid.checks=$(or $(LAWS),100000)
	$(GO) test ./crdt -run 'Exhaustive' -timeout 24h -v -args -exhaustive=8

OURS := github.com/concord-go/concord
VERSION = $(shell TZ=UTC git log -1 --abbrev=12 --date=format-local:%Y%m%d%H%M%S --format=v0.0.0-%cd-%h)
versions: ## let the modules require VERSION=v0.x.y of each other, before a release; without VERSION the last commit
	sed -i.bak -E 's#($(OURS)[^ ]*) v[0-9][^ ]*#\1 $(VERSION)#' $(MODULES:%=%/go.mod)
	@rm -f $(MODULES:%=%/go.mod.bak)
	$(if $(filter v0.0.0-%,$(VERSION)),,@echo 'commit this, and tag that commit:' $(VERSION) $(patsubst ./%,%/$(VERSION),$(filter-out . ./lab ./examples,$(MODULES))))

outside: ## a program outside the repository, with the modules of the last commit from a proxy, as if they had the tags of VERSION (default v0.1.0); GOTOOLCHAIN=go1.27.0 for another Go
	lab/release.sh $(if $(filter v0.0.0-%,$(VERSION)),v0.1.0,$(VERSION))

APIDIFF_VERSION := v0.0.0-20261113113407-e3970619a1a4
apidiff: $(BIN)/apidiff ## what has changed in the exported names of each module since TAG (default the last one); fails with PATCH=1 if a program may not compile any more
	@set -e; tag='$(TAG)'; test -n "$$tag" || tag=$$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null) || { \
		echo 'apidiff: NOT COMPARED: there is no tag yet; TAG=a-commit compares with that'; exit 0; }; \
	old=$(BIN)/apidiff.old; git worktree remove --force $$old 2>/dev/null || true; git worktree prune; \
	git worktree add --quiet --force --detach $$old "$$tag"; trap 'git worktree remove --force '$$old EXIT; export GOWORK=off; broken=; \
	for m in $(filter-out ./lab ./examples %test %/acceptance,$(MODULES)); do name=$$(awk '/^module / {print $$2}' $$m/go.mod); echo "== $$name since $$tag"; \
		test -e $$old/$$m/go.mod || { echo 'a new module'; continue; }; \
		(cd $$old/$$m && $(BIN)/apidiff -m -w $$old/was $$name); (cd $$m && $(BIN)/apidiff -m -w $$old/is $$name); \
		$(BIN)/apidiff -m $$old/was $$old/is; \
		test -z "$$($(BIN)/apidiff -m -incompatible $$old/was $$old/is)" || broken="$$broken $$name"; done; \
	for m in $$broken; do echo "changed incompatibly: $$m"; done; test -z '$(PATCH)' -o -z "$$broken"

$(BIN)/apidiff:
	GOBIN=$(BIN) $(GO) install golang.org/x/exp/cmd/apidiff@$(APIDIFF_VERSION)

proto: $(BIN)/buf $(BIN)/protoc-gen-go ## regenerate proto/*.pb.go
	rm -rf $(BIN)/schema && mkdir -p $(BIN)/schema/concord/v1 && cp proto/*.proto $(BIN)/schema/concord/v1
	PATH=$(BIN):$$PATH buf generate $(BIN)/schema --output $(or $(OUT),.) --template \
		'{"version":"v2","plugins":[{"local":"protoc-gen-go","out":".","opt":"module=github.com/concord-go/concord"}]}'

proto-check: ## the generated code is that of the schema
	@rm -rf $(BIN)/generated && mkdir -p $(BIN)/generated && $(MAKE) -s proto OUT=$(BIN)/generated
	diff -r -x '*.proto' -x '*_test.go' -x testdata proto $(BIN)/generated/proto

$(BIN)/govulncheck:
	GOBIN=$(BIN) $(GO) install golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION)

LINT_VERSION := v2.15.0
PROTOC_GEN_GO_VERSION := v1.36.12
BUF_VERSION := v1.75.0
tools: $(BIN)/golangci-lint $(BIN)/protoc-gen-go $(BIN)/buf ## install the tools into bin/

$(BIN)/golangci-lint:
	GOBIN=$(BIN) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)

$(BIN)/protoc-gen-go:
	GOBIN=$(BIN) $(GO) install google.golang.org/protobuf/cmd/protoc-gen-go@$(PROTOC_GEN_GO_VERSION)

$(BIN)/buf:
	GOBIN=$(BIN) $(GO) install github.com/bufbuild/buf/cmd/buf@$(BUF_VERSION)
