package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/concord-go/concord/internal/ports"
	"github.com/concord-go/concord/node"
)

// TestOutput_IsAsPromised runs the command twice on one disk. The output of each run must match the
// comment of the command.
func TestOutput_IsAsPromised(t *testing.T) {
	at := ports.Free(t, 2)
	t.Setenv("DATA", t.TempDir())
	t.Setenv("PORT", fmt.Sprint(at[0]))
	t.Setenv("HEALTH", fmt.Sprint(at[1]))
	first := promised(t, "DATA=/tmp/shop go run ./examples/configured examples/configured/concord.yaml")
	second := strings.NewReplacer("token 1", "token 2", "visits: 1", "visits: 2").Replace(first)
	for _, want := range []string{first, second} {
		var out strings.Builder
		if err := run(t.Context(), &out, "concord.yaml"); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
		}
	}
}

func TestOutput_OfAFileThatIsNotRight(t *testing.T) {
	t.Setenv("DATA", t.TempDir())
	t.Setenv("PORT", "70000")
	want := promised(t, "DATA=/tmp/shop PORT=70000 go run ./examples/configured examples/configured/concord.yaml")
	want = strings.ReplaceAll(strings.TrimSpace(want), "examples/configured/", "")
	if err := run(t.Context(), &strings.Builder{}, "concord.yaml"); err == nil ||
		err.Error() != want || node.ExitCode(err) != 2 {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

// promised returns the output that the comment of the command shows for a command line.
func promised(t *testing.T, command string) string {
	t.Helper()
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(source), "//\t"+command+"\n//\n//\t")
	if !ok {
		t.Fatalf("the comment does not have %q", command)
	}
	text, _, _ := strings.Cut(after, "\n//\n")
	text, _, _ = strings.Cut(text, "\npackage ")
	return strings.ReplaceAll(text, "\n//\t", "\n") + "\n"
}
