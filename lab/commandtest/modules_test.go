package commandtest

import (
	"cmp"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// heavy are clients of servers, which the root module must not require: a program that imports crdt
// has no use for them. A store or provider with such a client is a nested module.
var heavy = []string{
	"github.com/Azure/", "github.com/AzureAD/", "github.com/go-zookeeper/",
	"github.com/hashicorp/consul",
	"github.com/jackc/", "go.etcd.io/etcd/", "k8s.io/", "sigs.k8s.io/",
}

// apart are the modules outside the workspace. lab/testenv builds servers, which may need
// other versions than their clients.
var apart = []string{"lab/testenv"}

type requirement struct{ Path, Version string }

type goMod struct {
	Module  struct{ Path string }
	Go      string
	Require []requirement
	Replace []struct{ Old, New requirement }
	Use     []struct{ DiskPath string } // of go.work
}

// TestModules_RootIsLight also keeps heavy clients out of the root's indirect requirements, which
// every importer gets.
func TestModules_RootIsLight(t *testing.T) {
	mods := goMods(t)
	for _, r := range mods["."].Require {
		if isHeavy(r.Path) {
			t.Errorf("go.mod requires %s: move the package that needs it into a nested module",
				r.Path)
		}
	}
	if !slices.ContainsFunc(mods["coordination/etcd"].Require, func(r requirement) bool {
		return isHeavy(r.Path)
	}) {
		t.Error("coordination/etcd seems to need no heavy client: this test cannot see one")
	}
}

func isHeavy(mod string) bool {
	return slices.ContainsFunc(heavy, func(h string) bool { return strings.HasPrefix(mod, h) })
}

// TestModules_WorkspaceHasAll: a module that go.work does not list would be neither tested nor
// linted.
func TestModules_WorkspaceHasAll(t *testing.T) {
	var listed []string
	for _, use := range edited(t, "work", "../../go.work").Use {
		listed = append(listed, path.Clean(use.DiskPath))
	}
	slices.Sort(listed)
	found := slices.Sorted(maps.Keys(goMods(t)))
	if !slices.Equal(listed, found) {
		t.Errorf("go.work lists %q\nthere are %q", listed, found)
	}
}

// TestModules_BuildAlone: without go.work a nested module finds its siblings by replacements, which
// must lead to them.
func TestModules_BuildAlone(t *testing.T) {
	const root = "github.com/concord-go/concord"
	for dir, m := range goMods(t) {
		if want := path.Join(root, dir); m.Module.Path != want {
			t.Errorf("%s/go.mod is of module %s, must be %s", dir, m.Module.Path, want)
		}
		replaced := map[string]string{}
		for _, r := range m.Replace {
			replaced[r.Old.Path] = path.Join(dir, r.New.Path)
		}
		for _, r := range m.Require {
			below, ours := strings.CutPrefix(r.Path+"/", root+"/")
			if at := replaced[r.Path]; ours && at != path.Clean(below) {
				t.Errorf("%s/go.mod replaces %s by the directory %q", dir, r.Path, at)
			}
		}
	}
}

// TestModules_AgreeOnVersions: the workspace builds with the highest version that any module
// requires. Where a module requires a lower one, tests would run on another version than its users
// get.
func TestModules_AgreeOnVersions(t *testing.T) {
	mods := goMods(t)
	first := map[string]string{} // module that required it first, by dependency
	versions := map[string]string{}
	for _, dir := range slices.Sorted(maps.Keys(mods)) {
		m := mods[dir]
		if m.Go != mods["."].Go {
			t.Errorf("%s/go.mod says go %s, the root says go %s", dir, m.Go, mods["."].Go)
		}
		for _, r := range m.Require {
			first[r.Path] = cmp.Or(first[r.Path], dir)
			versions[r.Path] = cmp.Or(versions[r.Path], r.Version)
			if versions[r.Path] != r.Version {
				t.Errorf("%s/go.mod requires %s %s, %s/go.mod requires %s: run go work sync", dir,
					r.Path, r.Version, first[r.Path], versions[r.Path])
			}
		}
	}
	for _, shared := range []string{
		"github.com/asynkron/protoactor-go", "github.com/concord-go/concord",
		"github.com/stretchr/testify",
		"go.opentelemetry.io/otel", "google.golang.org/grpc", "google.golang.org/protobuf",
	} {
		if versions[shared] == "" {
			t.Errorf("no module requires %s: this test reads the wrong files", shared)
		}
	}
}

// goMods returns the modules of the workspace by directory, whether go.work lists them or not.
func goMods(t *testing.T) map[string]goMod {
	t.Helper()
	out := map[string]goMod{}
	err := filepath.WalkDir("../..", func(name string, d fs.DirEntry, err error) error {
		switch hidden := strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2; {
		case err != nil:
			return err
		case d.IsDir() && (hidden || d.Name() == "testdata" || d.Name() == "bin"):
			return filepath.SkipDir
		case d.Name() != "go.mod":
			return nil
		}
		dir, err := filepath.Rel("../..", filepath.Dir(name))
		if dir = filepath.ToSlash(dir); err == nil && !slices.Contains(apart, dir) {
			out[dir] = edited(t, "mod", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// edited returns the content of a go.mod or go.work as go reads it.
func edited(t *testing.T, kind, name string) (m goMod) {
	t.Helper()
	cmd := exec.Command("go", kind, "edit", "-json", name)
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s edit -json %s: %v", kind, name, err)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	return m
}
