package arrows

import (
	"go/ast"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTests_StartNoProcess: "go test ./..." at the root needs nothing. Tests that start processes
// belong to lab.
func TestTests_StartNoProcess(t *testing.T) {
	for name, f := range rootTests(t) {
		if slices.Contains(imports(f.ast), "os/exec") {
			t.Errorf("%s starts processes: move it to lab", name)
		}
	}
}

// opens are the calls that open a port.
var opens = []string{"net.Listen", "net.ListenPacket", "http.ListenAndServe", "ports.Free",
	"httptest.NewServer", "httptest.NewTLSServer", "httptest.NewUnstartedServer", "node.Run",
	"clustertest.Run"}

// mayOpen are files that "go test" without flags only compiles.
var mayOpen = map[string]string{
	"cockpit/cost_bench_test.go":          "a benchmark",
	"cockpit/example_test.go":             "an example without output",
	"node/example_test.go":                "an example without output",
	"node/internal/guard/bench_test.go":   "a benchmark of the network",
	"testkit/clustertest/example_test.go": "an example without output",
}

// TestTests_OpenNoPort: tests at the root can run beside anything else.
func TestTests_OpenNoPort(t *testing.T) {
	all := rootTests(t)
	for name := range mayOpen {
		if _, ok := all[name]; !ok {
			t.Errorf("%s of the exceptions does not exist", name)
		}
	}
	for name, f := range all {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if ok && mayOpen[name] == "" && slices.Contains(opens, types.ExprString(call.Fun)) &&
				types.ExprString(call.Args[0]) != `"unix"` {
				t.Errorf("%s: %s opens a port: use internal/memnet, or move it to lab", name,
					types.ExprString(call.Fun))
			}
			return true
		})
	}
}

// rootTests returns the test files of the root module that need no build tag.
func rootTests(t *testing.T) map[string]file {
	t.Helper()
	var nested []string
	eachFile(t, func(rel, _ string) error {
		if dir, mod := filepath.Split(rel); mod == "go.mod" && dir != "" {
			nested = append(nested, filepath.ToSlash(dir))
		}
		return nil
	})
	out := files(t)
	for name, f := range out {
		within := func(dir string) bool { return strings.HasPrefix(f.pkg+"/", dir) }
		if !f.test || slices.ContainsFunc(nested, within) || tagged(f.ast) {
			delete(out, name)
		}
	}
	if len(out) < 300 {
		t.Errorf("there seem to be only %d tests at the root", len(out))
	}
	return out
}

// tagged reports whether "go test" leaves a file out, unless a tag is set.
func tagged(f *ast.File) bool {
	for _, group := range f.Comments {
		for _, c := range group.List {
			if tag, ok := strings.CutPrefix(c.Text, "//go:build "); ok && c.Pos() < f.Package {
				return tag == "stores" || tag == "browser"
			}
		}
	}
	return false
}
