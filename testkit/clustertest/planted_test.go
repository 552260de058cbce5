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

// The reference obeys all rules, and what is planted breaks one: see TestPlanted.
func TestReference(t *testing.T) {
	dir := t.TempDir() + "/members"
	must(t, os.Mkdir(dir, 0o700))
	t.Setenv(dirVariable, dir)
	c := clustertest.Config{Server: &clustertest.Server{
		Name:   dir,
		Stop:   func(t testing.TB) { must(t, os.Rename(dir, dir+".away")) },
		Start:  func(t testing.TB) { must(t, os.Rename(dir+".away", dir)) },
		Outage: 2 * ttl,
	}}
	c.DroppedWithin, c.Pause = 8*time.Second, 2*ttl
	if os.Getenv(faultVariable) != "" { // what is missing need not be waited for as long
		c.ListedWithin, c.DroppedWithin, c.LeftWithin = 4*time.Second, 4*time.Second, 3*time.Second
	}
	clustertest.Run(t, c)
}

// Each fault must break its rules, and be told by their names. The suite runs in a process of its own, where
// it may fail.
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
		"empty without server":  {"P9"},
		"starts without server": {"P14"},
	} {
		for _, rule := range rules {
			result := make(chan string, 1)
			results[planted{fault, rule}] = result
			go func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				out := suite(fault, rule)
				for range 2 { // a busy machine may hide a fault of time
					if !found(out, rule) {
						out = suite(fault, rule)
					}
				}
				result <- out
			}()
		}
	}
	for p, result := range results {
		out := <-result
		if !found(out, p.rule) {
			t.Errorf("fault %q does not break %s, or the failure does not name it:\n%s", p.fault, p.rule, out)
		}
	}
}

// found reports whether a check failed, by the name of the rule.
func found(out, rule string) bool {
	return strings.Contains(out, "--- FAIL") && strings.Contains(out, ": "+rule+": ")
}

// suite returns what the check of a rule says with a fault.
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
