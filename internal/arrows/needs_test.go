package arrows

import (
	"go/ast"
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
