package hostile_test

import (
	"flag"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

var (
	whole = flag.Bool("whole", false, "all attacks, in all modes")
	fresh = flag.Bool("fresh", false,
		"new members for each attack, and go on after one that does harm")
	only = flag.String("attack", "", "those whose names match this regular expression")
)

func TestMain(m *testing.M) {
	if raw := os.Getenv(memberEnv); raw != "" {
		os.Exit(runMember(raw))
	}
	goleak.VerifyTestMain(m)
}

// TestHostile runs the attacks one after the other on one cluster in each mode.
func TestHostile(t *testing.T) {
	match := regexp.MustCompile(*only)
	modes := []string{plainMode}
	if *whole {
		modes = []string{plainMode, secretMode, tlsMode}
	}
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t, mode)
			made := 0
			for _, a := range attacks() {
				if !match.MatchString(a.name) || !*whole && !a.sample {
					continue
				}
				made++
				ok := t.Run(a.name, func(t *testing.T) {
					w := w
					if *fresh {
						w = newWorld(t, mode)
						defer w.staysUnharmed(t)
					}
					s := newIntruder(t, w)
					s.learn()
					a.do(s)
					w.unharmed(t)
				})
				if !ok && !*fresh {
					t.FailNow() // the cluster is not in the state that the next attack expects
				}
			}
			t.Logf("%d attacks", made)
			require.Positive(t, made)
			w.staysUnharmed(t)
		})
	}
}

// TestAttacks_AreMany checks the number of attacks that docs/guarantees.md names.
func TestAttacks_AreMany(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range attacks() {
		require.False(t, seen[a.name], a.name)
		seen[a.name] = true
	}
	require.GreaterOrEqual(t, len(seen), 30)
}
