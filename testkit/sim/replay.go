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

// Folder is where saved cases are, beside the test.
const Folder = "testdata/histories"

// Replay plays every case that was saved in a folder, and fails the test if an invariant is broken again,
// or if there is no case.
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

// PlayCase plays a case, and returns its story and how it fails; empty if it does not. It is for a test that
// shows that a case still notices a planted bug.
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

// save writes the shortened case, with where it came from.
func (f *Failure) save(folder, test string) (path string, err error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	found := fmt.Sprintf("as seed %d", f.Seed)
	if f.explored {
		found = "by exploration"
	}
	f.Short.Comment = append(f.Short.Comment, fmt.Sprintf("Found by %s %s at %s.", test, found, revision()))
	path = filepath.Join(folder, fmt.Sprintf("%s_%d.txt", strings.ReplaceAll(test, "/", "_"), f.Seed))
	return path, os.WriteFile(path, []byte(f.Short.String()), 0o644)
}

// revision names the commit the test was built from: as the build recorded it, or as git says of the
// directory. Tests are built without the former, unless told.
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

// command is how one seed of a test is played again, from the root of the module.
func command(test string, seed uint64) string {
	pkg := "."
	if info, ok := debug.ReadBuildInfo(); ok {
		pkg = "./" + strings.TrimPrefix(strings.TrimSuffix(info.Path, ".test"), info.Main.Path+"/")
	}
	return fmt.Sprintf("go test %s -run '^%s$' -seed %d -seeds 1", pkg, strings.ReplaceAll(test, "/", "$/^"), seed)
}
