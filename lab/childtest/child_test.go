package childtest

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/concord-go/concord/internal/child"
)

// TestMain echoes its input if it runs in a process started by a test, until it is told to stop.
func TestMain(m *testing.M) {
	if os.Getenv("CONCORD_CHILD") == "" {
		os.Exit(m.Run())
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		if in.Text() == "end" {
			fmt.Fprintln(os.Stderr, "ends")
			os.Exit(7)
		}
		fmt.Println(in.Text())
	}
	os.Exit(8)
}

func start(t *testing.T) (*child.Process, <-chan string) {
	lines := make(chan string, 10)
	return child.Start(t, []string{"CONCORD_CHILD=yes"}, func(line []byte) {
		lines <- strings.TrimSpace(string(line))
	}), lines
}

func TestStart_HearsAndIsHeard(t *testing.T) {
	p, lines := start(t)
	for _, text := range []string{"one", "two"} {
		if err := p.Say(text); err != nil {
			t.Fatal(err)
		}
		if got := <-lines; got != text {
			t.Errorf("heard %q, want %q", got, text)
		}
	}
	if p.Ended() {
		t.Error("it has ended")
	}
	_ = p.Say("end")
	if code := p.ExitCode(); code != 7 || !strings.Contains(p.Stderr(), "ends") {
		t.Errorf("exit status %d, standard error %q", code, p.Stderr())
	}
	p.Kill()
}

func TestHangup_EndsTheInput(t *testing.T) {
	p, _ := start(t)
	p.Hangup()
	if code := p.ExitCode(); code != 8 {
		t.Errorf("exit status %d", code)
	}
}

func TestKill_ReturnsWhenTheProcessHasEnded(t *testing.T) {
	p, _ := start(t)
	p.Kill()
	if code := p.ExitCode(); code != -1 || !p.Ended() {
		t.Errorf("exit status %d, ended: %v", code, p.Ended())
	}
}
