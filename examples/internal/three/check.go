package three

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/concord-go/concord/internal/simnet"
)

// Check runs an example in virtual time, and fails the test unless it prints what the comment of its main.go promises
// behind the command, which is "go run ./examples/" and name.
func Check(t *testing.T, name string, example Example) {
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
	var out bytes.Buffer
	simnet.Bubble(t, func(t *testing.T) {
		if err := run(t.Context(), &out, example); err != nil {
			t.Error(err)
		}
	})
	if out.String() != want.String() {
		t.Errorf("printed\n%s\nwant\n%s", &out, &want)
	}
}
