//go:build unix

package clustertest_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/cluster"
	"go.uber.org/goleak"

	"github.com/concord-go/concord/testkit/clustertest"
)

const (
	dirVariable   = "CONCORD_CLUSTERTEST_DIR"
	faultVariable = "CONCORD_CLUSTERTEST_FAULT"
)

func TestMain(m *testing.M) {
	clustertest.Main(func(clustertest.Member) (cluster.ClusterProvider, error) {
		return newFiles(os.Getenv(dirVariable), os.Getenv(faultVariable)), nil
	})
	goleak.VerifyTestMain(m)
}

// The reference provider obeys all rules. TestPlanted runs it with a fault that breaks one of them.
func TestReference(t *testing.T) {
	dir := t.TempDir() + "/members"
	must(t, os.Mkdir(dir, 0o700))
	t.Setenv(dirVariable, dir)
	c := clustertest.Config{
		Server: &clustertest.Server{
			Name:  dir,
			Stop:  func(t testing.TB) { must(t, os.Rename(dir, dir+".away")) },
			Start: func(t testing.TB) { must(t, os.Rename(dir+".away", dir)) },
			Silence: func(t testing.TB) func() {
				return func() { must(t, os.WriteFile(dir+silentSuffix, nil, 0o600)) }
			},
			Outage: time.Second,
		},
		Pause: 2 * pause, KeptFor: 2 * time.Second,
	}
	for _, bound := range runsOut[os.Getenv(faultVariable)] {
		*bound(&c) = 4 * time.Second
	}
	clustertest.Run(t, c)
}

// runsOut lists, for each fault that prevents an event, the bounds that expire. They are short; all
// others leave room for a slow machine, on which the fault would not be reached.
var runsOut = map[string][]func(*clustertest.Config) *time.Duration{
	"not itself":        {listed},
	"not others":        {listed},
	"id of the address": {listed, dropped, left},
	"names by prefix":   {listed},
	"dead stay":         {dropped},
	"left stay":         {left},
	"goroutines":        {left},
	"open files":        {left},
}

func listed(c *clustertest.Config) *time.Duration  { return &c.ListedWithin }
func dropped(c *clustertest.Config) *time.Duration { return &c.DroppedWithin }
func left(c *clustertest.Config) *time.Duration    { return &c.LeftWithin }

// Each fault must break its rules, and the failure must name them. The suite runs in a separate
// process, where it may fail.
func TestPlanted(t *testing.T) {
	type planted struct{ fault, rule string }
	results := map[planted]chan string{}
	slots := make(chan struct{}, 8) // they mostly wait
	for fault, rules := range map[string][]string{
		"not itself":            {"P1"},
		"not others":            {"P2"},
		"no kinds":              {"P3"},
		"id of the address":     {"P4", "P7", "P8"},
		"dead stay":             {"P5"},
		"left stay":             {"P6"},
		"names by prefix":       {"P12"},
		"errors logged":         {"P13"},
		"goroutines":            {"P11"},
		"open files":            {"P11"},
		"pause not noticed":     {"P16"},
		"silence not noticed":   {"P17"},
		"empty without server":  {"P9"},
		"starts without server": {"P14"},
	} {
		for _, rule := range rules {
			result := make(chan string, 1)
			results[planted{fault, rule}] = result
			go func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				result <- suite(fault, rule)
			}()
		}
	}
	for p, result := range results {
		out := <-result
		if !strings.Contains(out, "--- FAIL") || !strings.Contains(out, ": "+p.rule+": ") {
			t.Errorf("fault %q does not break %s, or the failure does not name it:\n%s", p.fault,
				p.rule, out)
		}
	}
}

// suite returns the output of the check of a rule with a fault.
func suite(fault, rule string) string {
	cmd := exec.Command(os.Args[0], "-test.run", "^TestReference$/^"+rule+"$")
	cmd.Env = append(os.Environ(), faultVariable+"="+fault)
	out, err := cmd.CombinedOutput()
	return fmt.Sprintf("%s\n%v", out, err)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
