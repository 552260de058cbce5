package members

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/file"
	"github.com/concord-go/concord/internal/child"
	"github.com/concord-go/concord/internal/ports"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/node/provider/automanaged"
	"github.com/concord-go/concord/testkit/pki"
)

const mistakeEnv = "CONCORD_NODE_MISTAKE"

// mistaken configures a member of TestMistakes.
type mistaken struct {
	Port, Health int
	Hosts        []string
	TLS          *node.TLS
	Waits        time.Duration // at the start, for another member
	Store        string        // the directory of leases; empty: none
}

// runMistaken is the main function of such a member. It prints its log and the error of node.Run.
func runMistaken() {
	var m mistaken
	if err := json.Unmarshal([]byte(os.Getenv(mistakeEnv)), &m); err != nil {
		panic(err)
	}
	var open func() (coordination.Store, error)
	var session coordination.Config
	if m.Store != "" {
		open = func() (coordination.Store, error) { return file.Open(m.Store) }
		session.TTL = 3 * time.Second
	}
	err := node.Run(context.Background(), node.RunConfig{
		Store: open, Session: session, Cluster: "mistaken", Remote: node.Config{Port: m.Port, TLS: m.TLS}, MinMembers: 2,
		Provider:     automanaged.New(automanaged.Config{Port: m.Health, Hosts: m.Hosts}),
		StartTimeout: m.Waits,
		Logger: slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
			Level: slog.LevelWarn})),
	}, func(n *node.Node) error {
		n.Go(func(ctx context.Context) error {
			fmt.Println("up")
			<-ctx.Done()
			return nil
		})
		return nil
	})
	fmt.Println("exit:", err)
	os.Exit(node.ExitCode(err))
}

// output collects the lines of a process.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) hear(line []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, _ = o.text.Write(line)
}

// await waits until a line contains all parts.
func (o *output) await(t *testing.T, parts ...string) {
	t.Helper()
	require.Eventually(t, func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
	lines:
		for line := range strings.Lines(o.text.String()) {
			for _, p := range parts {
				if !strings.Contains(line, p) {
					continue lines
				}
			}
			return true
		}
		return false
	}, patience, 20*time.Millisecond, "%q", parts)
}

// Two members that know each other, and one with a mistake in its configuration, as processes: each
// side says what is wrong, with the address, and the exit error says it again.
func TestMistakes_AreNamedAtBothSides(t *testing.T) {
	t.Parallel()
	ca, err := pki.NewAuthority("mistaken")
	require.NoError(t, err)
	dir := t.TempDir()
	authority, err := ca.Write(dir)
	require.NoError(t, err)
	cert, key, err := ca.WriteMember(dir, "a", pki.Member{Hosts: []string{"127.0.0.1"}})
	require.NoError(t, err)
	at := func(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
	for name, c := range map[string]struct {
		change func(all []mistaken) // the last one has the mistake
		there  []string             // of a line of the others
		here   []string             // of a line of the last one
		exits  []string             // of its exit error
	}{
		"one without TLS": {
			func(all []mistaken) {
				for i := range 2 {
					all[i].TLS = node.TLSFiles(cert, key, authority)
				}
			},
			[]string{"host does not answer as a member", "it does not use TLS, and this member does"},
			[]string{"host does not answer as a member", "it uses TLS, and this member does not"},
			[]string{"member not started: not ready", "it uses TLS, and this member does not"},
		},
		"another lease store": {
			func(all []mistaken) {
				for i := range all {
					all[i].Store = filepath.Join(dir, "leases")
				}
				all[2].Store = filepath.Join(dir, "others")
			},
			[]string{"level=WARN", "a member names another lease store", "address=127.0.0.1:",
				"concord.majority/mistaken", "start it with the store of the others"},
			nil,
			[]string{"invalid configuration: Store: member 127.0.0.1:",
				`holds the lease "concord.majority/mistaken"`, "they name different stores"},
		},
		"hosts with the port of remoting": {
			func(all []mistaken) { all[2].Hosts = []string{at(all[0].Port), at(all[1].Port)} },
			nil,
			[]string{"host does not answer as a member", "is it the port of remoting?"},
			[]string{
				"member not started: not ready", "2 members needed", "is it the port of remoting?",
			},
		},
		"a host that does not resolve": {
			func(all []mistaken) { all[2].Hosts = []string{"nobody.invalid:1"} },
			nil, nil,
			[]string{"member not started: not ready", "2 members needed", "nobody.invalid:1"},
		},
		"a host that does not answer": {
			func(all []mistaken) { all[2].Hosts = []string{"127.0.0.1:1"} },
			nil, nil,
			[]string{"member not started: not ready", "127.0.0.1:1", "check that the member runs, and its port for health requests"},
		},
		"not listed by the others": {
			func(all []mistaken) {
				for i := range 2 {
					all[i].Hosts = all[i].Hosts[:2]
				}
			},
			[]string{"a member asks this one, and is not listed here", "add its host to the hosts"},
			[]string{"a member does not list this one", "add this member to its hosts"},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			free := ports.Free(t, 6)
			all := make([]mistaken, 3)
			for i := range all {
				all[i] = mistaken{Port: free[i], Health: free[3+i], Waits: patience,
					Hosts: []string{at(free[3]), at(free[4]), at(free[5])}}
			}
			all[2].Waits = 8 * time.Second
			c.change(all)
			out := make([]output, 3)
			start := func(i int) {
				spec, err := json.Marshal(all[i])
				require.NoError(t, err)
				child.Start(t, []string{runEnv + "=mistake", mistakeEnv + "=" + string(spec)},
					out[i].hear)
			}
			start(0)
			start(1)
			out[0].await(t, "up")
			out[1].await(t, "up")
			start(2)
			out[0].await(t, c.there...)
			out[1].await(t, c.there...)
			out[2].await(t, c.here...)
			if len(c.exits) > 0 {
				out[2].await(t, append([]string{"exit: node: "}, c.exits...)...)
			}
		})
	}
}
