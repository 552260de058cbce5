package three

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/simnet"
)

// Check runs an example in virtual time. It fails the test unless the output equals the lines below
// the command in the comment of main.go; the command is "go run ./examples/" and name.
func Check(t *testing.T, name string, example Example) {
	t.Helper()
	check(t, name, func(ctx context.Context, out io.Writer) error { return run(ctx, out, example) })
}

// CheckWith is like Check for an example whose members have configurations.
func CheckWith(t *testing.T, name string, config func(i int) distributeddata.Config,
	example Example) {
	t.Helper()
	check(t, name, func(ctx context.Context, out io.Writer) error {
		return Run(ctx, out, config, example)
	})
}

// CheckWithLeases is like Check for an example with leases. A store on a server cannot run in
// virtual time.
func CheckWithLeases(t *testing.T, name string, leases Leases, setup func(Member) error,
	example Example) {
	t.Helper()
	check(t, name, func(ctx context.Context, out io.Writer) error {
		return RunWithLeases(ctx, out, leases, setup, example)
	})
}

// CheckRun runs a function of a test on three members in virtual time, and fails the test with its
// error.
func CheckRun(t *testing.T, test Example) {
	t.Helper()
	played(t, func(ctx context.Context, out io.Writer) error { return run(ctx, out, test) })
}

// CheckLines is like CheckWithLeases for a command with arguments.
func CheckLines(t *testing.T, command string,
	run func(ctx context.Context, out io.Writer) error) {
	t.Helper()
	check(t, command, run)
}

func check(t *testing.T, name string, run func(ctx context.Context, out io.Writer) error) {
	t.Helper()
	Compare(t, name, played(t, run))
}

// played returns the output of run in virtual time.
func played(t *testing.T, run func(ctx context.Context, out io.Writer) error) string {
	t.Helper()
	var out bytes.Buffer
	simnet.Bubble(t, func(t *testing.T) {
		if err := run(t.Context(), &out); err != nil {
			t.Error(err)
		}
	})
	return out.String()
}

// Compare fails the test of an example unless printed is the output promised in main.go.
func Compare(t *testing.T, name, printed string) {
	t.Helper()
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(source), "//\tgo run ./examples/"+name+"\n//\n")
	text, _, _ := strings.Cut(after, "\npackage main")
	var want strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		line, ok := strings.CutPrefix(line, "//\t")
		if !ok {
			break
		}
		want.WriteString(line + "\n")
	}
	if printed != want.String() {
		t.Errorf("printed\n%s\nwant\n%s", printed, &want)
	}
}
