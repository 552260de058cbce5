package sim

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

// Folder is the directory of saved cases, relative to the test.
const Folder = "testdata/histories"

// Replay plays every case saved in a folder. It fails the test if a case breaks an invariant again,
// or if there are no cases.
func Replay(t *testing.T, folder string, history func(*World)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases in %s: %v", folder, err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if failure, story := PlayCase(text, history); failure != "" {
				t.Errorf("%s: %s\n%s", path, failure, story)
			}
		})
	}
}

// PlayCase plays a case, and returns its failure, or "" if it does not fail, and its story. It is
// for tests that show that a case still detects a planted bug.
func PlayCase(text []byte, history func(*World)) (failure, story string) {
	c, err := ParseCase(text)
	if err != nil {
		return err.Error(), ""
	}
	w := newWorld(0, c)
	w.trace = newTrace(true)
	w.play(history)
	return w.failure, strings.Join(w.trace.lines, "\n")
}

// save writes the shortened case with its origin.
func (f *Failure) save(folder, test string) (path string, err error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	found := fmt.Sprintf("as seed %d", f.Seed)
	if f.explored {
		found = "by exploration"
	}
	f.Short.Comment = append(f.Short.Comment,
		fmt.Sprintf("Found by %s %s at %s.", test, found, revision()))
	path = filepath.Join(folder, fmt.Sprintf("%s_%d.txt", strings.ReplaceAll(test, "/", "_"),
		f.Seed))
	return path, os.WriteFile(path, []byte(f.Short.String()), 0o644)
}

// revision returns the commit of the test: as recorded by the build, or else as reported by git for
// the directory. By default test builds record no commit.
func revision() string {
	var commit, dirty string
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				commit = s.Value
			case "vcs.modified":
				dirty = s.Value
			}
		}
	}
	if commit == "" {
		commit = git("rev-parse", "HEAD")
		if git("status", "--porcelain", "--untracked-files=no") != "" {
			dirty = "true"
		}
	}
	switch {
	case commit == "":
		return "an unknown commit"
	case dirty == "true":
		return "commit " + commit + " and local changes"
	}
	return "commit " + commit
}

func git(args ...string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// command returns the command that plays one seed of a test, to be run at the root of the module.
func command(test string, seed uint64) string {
	pkg := "."
	if info, ok := debug.ReadBuildInfo(); ok {
		pkg = "./" + strings.TrimPrefix(strings.TrimSuffix(info.Path, ".test"), info.Main.Path+"/")
	}
	return fmt.Sprintf("go test %s -run '^%s$' -seed %d -seeds 1", pkg,
		strings.ReplaceAll(test, "/", "$/^"), seed)
}
