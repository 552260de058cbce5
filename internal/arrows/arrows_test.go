// Package arrows contains only the test that checks the direction of the packages' imports.
package arrows

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/concord-go/concord/"

// shared lists the machinery below the components, which belongs to none of them.
var shared = []string{
	"internal/ask", "internal/bugs", "internal/contain", "internal/gate", "internal/lifecycle",
	"internal/early", "internal/linear", "internal/logging", "internal/membership",
	"internal/meters",
	"internal/settings", "internal/shell", "internal/timer", "internal/wire", "proto",
}

// free are modules that no other imports, and that may import everything.
var free = regexp.MustCompile(`^(lab|examples)/`)

// arrows lists the packages of this repository that each package may import, outside tests. A
// package that is neither free nor listed fails the test and must be added.
var arrows = map[string][]string{
	"proto":              {},
	"internal/pmap":      {},
	"internal/field":     {},
	"internal/causal":    {"internal/field", "internal/pmap"},
	"internal/hosted":    {"internal/causal"},
	"internal/contain":   {"internal/bugs"},
	"internal/ask":       {"internal/contain"},
	"internal/timer":     {"internal/contain"},
	"internal/bugs":      {"internal/lifecycle"},
	"internal/shell":     {"internal/bugs", "internal/timer"},
	"internal/gate":      {"internal/contain"},
	"internal/lifecycle": {},
	"internal/meters":    {},
	"internal/races":     {},
	"internal/scenarios": {},
	"internal/ports":     {},
	"internal/clienttls": {},
	"internal/settings":  {},
	"internal/child":     {},
	"internal/wire":      {"proto"},
	"internal/early":     {},
	"internal/linear":    {},
	"internal/logging":   {},
	"internal/membership": {"internal/bugs", "internal/contain", "internal/lifecycle",
		"internal/early", "internal/shell", "internal/timer", "internal/wire", "proto"},
	"internal/meters/meterstest": {},
	"internal/memnet":            {},

	"internal/simnet": {"internal/contain"},
	"internal/arrows": {},
	"crdt": {"internal/causal", "internal/hosted", "internal/linear",
		"internal/pmap"},
	"distributeddata/internal/sketch":  {},
	"distributeddata/internal/expiry":  {},
	"distributeddata/internal/barrier": {},
	"distributeddata/internal/bases":   {"internal/causal"},
	"distributeddata/internal/outbox":  {"internal/causal"},
	"internal/homes":                   {},
	"distributeddata/internal/history": {"distributeddata/internal/sketch", "internal/causal",
		"internal/homes",
		"internal/pmap"},
	"distributeddata/internal/quorum":   {"internal/causal", "internal/wire", "proto"},
	"distributeddata/internal/waiting":  {},
	"distributeddata/internal/transfer": {"distributeddata/internal/sketch", "internal/causal"},
	"distributeddata/internal/core": {"distributeddata/internal/sketch",
		"distributeddata/internal/barrier", "distributeddata/internal/bases",
		"distributeddata/internal/history",
		"distributeddata/internal/outbox", "distributeddata/internal/quorum",
		"distributeddata/internal/transfer", "distributeddata/internal/waiting",
		"distributeddata/store",
		"internal/causal", "internal/field", "internal/linear",
		"internal/wire", "proto"},
	"distributeddata": append([]string{"crdt", "distributeddata/internal/core",
		"distributeddata/internal/history",
		"distributeddata/internal/expiry", "distributeddata/internal/quorum",
		"distributeddata/store", "internal/causal",
		"internal/hosted", "internal/pmap"}, shared...),
	"distributeddata/store":         {},
	"distributeddata/internal/disk": {"distributeddata/store"},
	"distributeddata/badger": {"distributeddata/internal/disk", "distributeddata/store",
		"internal/logging", "internal/settings"},
	"distributeddata/bbolt": {"distributeddata/internal/disk", "distributeddata/store",
		"internal/logging", "internal/settings"},
	"distributeddata/inspect": {"distributeddata/badger", "distributeddata/bbolt",
		"distributeddata/internal/disk", "distributeddata/store"},
	"coordination/internal/core": {"coordination/leasestore"},
	"internal/stash":             {"internal/contain"},
	"internal/leases":            {},
	"coordination/stash":         {"internal/stash"},
	"coordination/leasestore":    {},
	"coordination/leaseconfig":   {"coordination", "coordination/leasestore", "internal/settings"},
	"coordination": append([]string{"coordination/internal/core", "coordination/internal/queue",
		"internal/silence",
		"coordination/leasestore", "internal/leases", "internal/stash"}, shared...),
	"testkit/history":      {},
	"testkit/documenttest": {"coordination", "coordination/leasestore"},
	"testkit/leasetest": {"coordination", "testkit/history",
		"coordination/leasestore"},
	"coordination/internal/queue":      {"coordination/internal/core", "coordination/leasestore"},
	"coordination/internal/opened":     {"coordination", "coordination/leasestore"},
	"coordination/internal/leavebench": {"coordination"},
	"coordination/internal/takeover": {"coordination", "coordination/internal/faulty",
		"coordination/leasestore", "internal/child"},
	"coordination/internal/faulty": {"coordination", "coordination/leasestore"},
	"internal/silence":             {},
	"internal/silence/silencegrpc": {"internal/silence"},
	"internal/zxid":                {},
	"coordination/memory": {"coordination",
		"coordination/leaseconfig", "coordination/leasestore"},
	"coordination/file": {"coordination", "coordination/internal/opened",
		"internal/settings", "coordination/leaseconfig",
		"coordination/leasestore"},
	"coordination/fence":           {"coordination", "crdt"},
	"coordination/internal/record": {"coordination", "coordination/leasestore"},
	"coordination/etcd": {"coordination", "coordination/internal/opened",
		"internal/silence", "internal/silence/silencegrpc",
		"internal/clienttls", "coordination/internal/record",
		"internal/settings", "coordination/leaseconfig", "coordination/leasestore"},
	"coordination/postgres": {"coordination", "coordination/internal/opened",
		"internal/silence",
		"internal/settings", "coordination/leaseconfig",
		"coordination/leasestore"},
	"coordination/kubernetes": {"coordination", "coordination/internal/opened", "internal/silence",
		"coordination/leaseconfig", "coordination/leasestore"},
	"coordination/azureblob": {"coordination", "coordination/internal/opened",
		"internal/silence",
		"coordination/internal/record", "internal/settings",
		"coordination/leaseconfig", "coordination/leasestore"},
	"coordination/zookeeper": {"coordination", "coordination/internal/opened",
		"internal/clienttls", "coordination/internal/record",
		"coordination/zookeeper/internal/link", "internal/settings", "coordination/leaseconfig",
		"coordination/leasestore"},
	"coordination/*/internal/*": {"coordination", "internal/zxid"},
	"singleton/internal/core":   {},
	"sharding/internal/core":    {},
	"sharding/internal/lane":    {"sharding/internal/core"},
	"sharding/internal/props":   {},
	"sharding": append([]string{"coordination", "crdt", "internal/leases", "internal/stash",
		"distributeddata", "sharding/internal/core", "sharding/internal/lane", "singleton",
		"internal/homes", "sharding/internal/props", "coordination/leasestore"},
		shared...),
	"sharding/remembersql": {"coordination/fence", "sharding"},
	"sharding/grains": {"coordination", "distributeddata", "internal/ask", "internal/bugs",
		"internal/contain", "internal/lifecycle", "internal/membership", "internal/meters",
		"internal/settings", "internal/timer", "sharding", "sharding/internal/props"},
	"singleton": append([]string{"coordination", "internal/leases", "internal/stash",
		"singleton/internal/core"}, shared...),
	"node/internal/arbiter": {},
	"node/internal/guard": {"internal/bugs", "internal/linear", "internal/membership",
		"internal/wire", "proto"},
	"internal/stranger": {},
	"node": {"coordination", "node/internal/arbiter",
		"node/internal/guard", "internal/gate", "internal/lifecycle", "internal/early",
		"internal/membership", "internal/bugs", "internal/contain", "internal/leases",
		"internal/logging",
		"internal/meters", "internal/settings", "internal/shell", "internal/timer",
		"internal/wire", "proto"},
	"node/provider/internal/roster": {},
	"node/provider/*": {"internal/clienttls", "internal/silence", "internal/silence/silencegrpc",
		"node/internal/guard",
		"node/provider/internal/roster", "internal/settings", "internal/zxid"},
	"node/config": {"coordination", "distributeddata", "distributeddata/store",
		"node", "sharding", "singleton", "coordination/leaseconfig", "internal/settings"},
	"testkit/clustertest": {"internal/child", "internal/ports",
		"internal/races", "node"},
	"testkit/acceptance": {},
	"testkit/crdttest":   {"crdt", "internal/causal", "internal/hosted"},
	"testkit/pki":        {},
	"testkit": {"coordination", "coordination/memory",
		"distributeddata/store", "internal/lifecycle", "internal/membership", "internal/simnet",
		"internal/timer", "coordination/leasestore"},
	"internal/sim":         {},
	"testkit/remembertest": {"coordination", "coordination/fence", "sharding"},
	"testkit/storetest":    {"distributeddata/store"},
	"testkit/lookuptest":   {"coordination", "testkit"},
	"internal/cockpit/api": {},
	"cockpit/internal/view": {"internal/cockpit/api", "coordination", "distributeddata",
		"sharding", "singleton"},
	"cockpit": {"internal/cockpit/api", "cockpit/internal/view", "coordination",
		"crdt", "distributeddata", "internal/gate", "internal/lifecycle", "internal/membership",
		"internal/settings", "node", "sharding", "singleton"},
	"cmd/concordctl": {"internal/cockpit/api", "distributeddata/inspect",
		"distributeddata/store"},
}

// pure lists the packages whose behaviour depends only on their inputs.
var pure = []string{"internal/field", "internal/pmap", "internal/causal", "crdt",
	"distributeddata/internal/core", "distributeddata/internal/expiry",
	"distributeddata/internal/barrier", "distributeddata/internal/bases",
	"distributeddata/internal/outbox", "distributeddata/internal/quorum",
	"distributeddata/internal/waiting",
	"distributeddata/internal/sketch", "distributeddata/internal/transfer",
	"coordination/internal/core", "singleton/internal/core",
	"sharding/internal/core", "sharding/internal/lane", "node/internal/arbiter"}

type file struct {
	pkg  string // path below the module
	test bool
	ast  *ast.File
}

func TestImports_PointOneWay(t *testing.T) {
	for name, f := range files(t) {
		if f.test || free.MatchString(f.pkg) {
			continue
		}
		allowed, ok := lookup(f.pkg)
		if !ok {
			t.Errorf("%s: package %s has no place in the table of arrows", name, f.pkg)
			continue
		}
		for _, imp := range imports(f.ast) {
			to, ours := strings.CutPrefix(imp, module)
			if ours && !slices.ContainsFunc(allowed, func(a string) bool { return match(a, to) }) {
				t.Errorf("%s: %s must not import %s", name, f.pkg, to)
			}
		}
	}
}

func TestCores_AreDeterministic(t *testing.T) {
	for name, f := range files(t) {
		if f.test || !slices.Contains(pure, f.pkg) {
			continue
		}
		for _, imp := range imports(f.ast) {
			if strings.HasPrefix(imp, "math/rand") ||
				strings.HasPrefix(imp, "github.com/asynkron/") || imp == "os" || imp == "net" {
				t.Errorf("%s: a core must not import %s", name, imp)
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s: a core starts no goroutine", name)
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" &&
					slices.Contains([]string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep",
						"NewTimer", "NewTicker", "Tick"}, n.Sel.Name) {
					t.Errorf("%s: a core has no clock: time.%s", name, n.Sel.Name)
				}
			}
			return true
		})
	}
}

// The test above must be able to detect a reversed arrow.
func TestImports_ReversedArrowIsSeen(t *testing.T) {
	allowed, ok := lookup("crdt")
	if !ok || slices.ContainsFunc(allowed, func(a string) bool {
		return match(a, "distributeddata")
	}) {
		t.Error("crdt may import distributeddata")
	}
	seen := map[string]bool{}
	for _, f := range files(t) {
		seen[f.pkg] = true
	}
	for pkg := range arrows {
		if !strings.Contains(pkg, "*") && !seen[pkg] {
			t.Errorf("package %s of the table does not exist", pkg)
		}
	}
}

// TestArchitecture_NamesEveryPackage: the first section of ARCHITECTURE.md is a map without gaps,
// except inside lab and examples.
func TestArchitecture_NamesEveryPackage(t *testing.T) {
	text, err := os.ReadFile("../../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	packages, _, _ := strings.Cut(string(text), "## Where a line")
	named := map[string]bool{}
	for _, word := range paths.FindAllString(packages, -1) {
		for _, name := range spread(word) {
			named[name] = true
		}
	}
	missing := map[string]bool{}
	for _, f := range files(t) {
		if !free.MatchString(f.pkg) && !named[f.pkg] {
			missing[f.pkg] = true
		}
	}
	for pkg := range missing {
		t.Errorf("package %s is not named", pkg)
	}
}

// paths matches the path of a package, or of several: node/{config, healtest}.
var paths = regexp.MustCompile(`[\w/-]+(\{[\w/, -]+\})?`)

// spread returns the paths that a word stands for.
func spread(word string) (out []string) {
	before, choice, several := strings.Cut(strings.TrimSuffix(word, "}"), "{")
	if !several {
		return []string{word}
	}
	for name := range strings.SplitSeq(choice, ",") {
		out = append(out, before+strings.TrimSpace(name))
	}
	return out
}

func lookup(pkg string) ([]string, bool) {
	if a, ok := arrows[pkg]; ok {
		return a, true
	}
	for pattern, a := range arrows {
		if match(pattern, pkg) {
			return a, true
		}
	}
	return nil, false
}

func match(pattern, pkg string) bool {
	ok, err := path.Match(pattern, pkg)
	return err == nil && ok
}

func files(t *testing.T) map[string]file {
	t.Helper()
	out := map[string]file{}
	eachFile(t, func(rel, name string) error {
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		out[rel] = file{pkg: filepath.ToSlash(filepath.Dir(rel)), test: strings.HasSuffix(name,
			"_test.go"), ast: parsed}
		return nil
	})
	return out
}

// eachFile calls visit for each file of the repository, with its path from the root and from here.
func eachFile(t *testing.T, visit func(rel, name string) error) {
	t.Helper()
	const root = "../.."
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && skipped(d.Name()):
			return filepath.SkipDir
		case d.IsDir():
			return nil
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		return visit(rel, name)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// skipped reports whether a directory of this name holds none of this repository's packages.
func skipped(name string) bool {
	return name == "testdata" || name == "bin" || strings.HasPrefix(name, ".") && len(name) > 2
}

func imports(f *ast.File) (out []string) {
	for _, i := range f.Imports {
		if p, err := strconv.Unquote(i.Path.Value); err == nil {
			out = append(out, p)
		}
	}
	return out
}
