package clustertest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"

	"github.com/concord-go/concord/node"
)

// childEnv holds the order of a process started by Run.
const childEnv = "CONCORD_CLUSTERTEST"

// order describes the member that a child runs.
type order struct {
	Member Member
	Begin  time.Duration // bounds the start, so that the child reports the failure
}

// Commands read by a child, one per line.
const (
	cmdStart = "start"
	cmdStop  = "stop"
	cmdCount = "count"
)

// Reports of a child, each one line of JSON.
const (
	evStarted = "started"
	evFailed  = "failed"
	evStopped = "stopped"
	evCounted = "counted"
	evListed  = "listed"
	evError   = "error logged"
)

// limit bounds one command of a child.
const limit = 2 * time.Minute

// marker distinguishes reports from other output on the standard output.
const marker = "clustertest: "

type report struct {
	Event   string
	Text    string   `json:",omitempty"`
	Members []listed `json:",omitempty"`
	// What remains, if requested.
	Goroutines []string `json:",omitempty"` // stacks
	Files      int      `json:",omitempty"` // -1 if unknown
}

type listed struct {
	ID, Address string
	Kinds       []string
}

// role is a kind that the member announces, used as its role.
func (m Member) role() string { return fmt.Sprintf("clustertest-%d", m.Index) }

// Main must be called first in TestMain. In a process started by Run, it runs a member with the
// providers returned by provide, and does not return. Otherwise it returns at once.
func Main(provide func(Member) (cluster.ClusterProvider, error)) {
	arg := os.Getenv(childEnv)
	if arg == "" {
		return
	}
	c := &inside{provide: provide}
	if err := json.Unmarshal([]byte(arg), &c.order); err != nil {
		fmt.Fprintln(os.Stderr, "clustertest:", err)
		os.Exit(2)
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		switch lines.Text() {
		case cmdStart:
			c.start()
		case cmdStop:
			c.stop()
		case cmdCount:
			stacks, files := remains()
			c.say(report{Event: evCounted, Goroutines: stacks, Files: files})
		}
	}
	os.Exit(0) // the parent has closed its end of the pipe, or has exited
}

// inside is a member in its process.
type inside struct {
	order   order
	provide func(Member) (cluster.ClusterProvider, error)
	cluster *cluster.Cluster // of the current incarnation

	mu sync.Mutex // one line at a time
}

func (c *inside) say(r report) {
	line, err := json.Marshal(r)
	if err != nil {
		line = fmt.Appendf(nil, `{"Event":%q,"Text":%q}`, evFailed, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Printf("\n%s%s\n", marker, line)
}

// start begins an incarnation.
func (c *inside) start() {
	ctx, cancel := context.WithTimeout(context.Background(), c.order.Begin)
	defer cancel()
	err := c.live(ctx)
	if err == nil {
		c.say(report{Event: evStarted})
		return
	}
	if c.cluster != nil {
		ctx, cancel := context.WithTimeout(context.Background(), limit/2)
		defer cancel()
		_ = node.Shutdown(ctx, c.cluster) // returns nothing beyond the error of the start
		c.cluster = nil
	}
	c.say(report{Event: evFailed, Text: err.Error()})
}

func (c *inside) live(ctx context.Context) error {
	provider, err := c.provide(c.order.Member)
	if err != nil {
		return err
	}
	rc, err := node.Remote(node.Config{Host: c.order.Member.Host, Port: c.order.Member.Port})
	if err != nil {
		return err
	}
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(&logs{Handler: slog.NewTextHandler(os.Stderr, nil), to: c})
	}))
	system.EventStream.Subscribe(func(e any) {
		if t, ok := e.(*cluster.ClusterTopology); ok {
			c.say(report{Event: evListed, Members: membersOf(t)})
		}
	})
	c.cluster = cluster.New(system,
		node.Cluster(c.order.Member.Cluster, provider, rc, node.Roles(c.order.Member.role())))
	return node.Start(ctx, c.cluster)
}

func membersOf(t *cluster.ClusterTopology) (out []listed) {
	for _, m := range t.Members {
		kinds := slices.Clone(m.Kinds)
		slices.Sort(kinds)
		out = append(out, listed{ID: m.Id, Address: m.Address(), Kinds: kinds})
	}
	return out
}

// stop ends an incarnation.
func (c *inside) stop() {
	if c.cluster == nil {
		c.say(report{Event: evStopped, Text: "not started"})
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	r := report{Event: evStopped}
	if err := node.Shutdown(ctx, c.cluster); err != nil {
		r.Text = err.Error()
	}
	c.cluster = nil
	c.say(r)
}

// Counts are taken once they are unchanged for steady, or after settling.
const (
	settling = 5 * time.Second
	steady   = time.Second
)

// remains returns the stacks of all goroutines except the current one, and the number of open
// files.
func remains() (stacks []string, files int) {
	stacks, files = goroutines(), openFiles()
	began := time.Now()
	for since := began; time.Since(since) < steady && time.Since(began) < settling; time.Sleep(
		steady / 20) {
		nowStacks, nowFiles := goroutines(), openFiles()
		if len(nowStacks) != len(stacks) || nowFiles != files {
			since = time.Now()
		}
		stacks, files = nowStacks, nowFiles
	}
	return stacks, files
}

// passing lists functions of goroutines that Proto.Actor leaves running for a minute.
var passing = []string{"protoactor-go/actor.NewThrottle"}

func goroutines() (out []string) {
	buf := make([]byte, 1<<20)
	all := string(buf[:runtime.Stack(buf, true)])
	for i, stack := range strings.Split(all, "\n\n") {
		ends := slices.ContainsFunc(passing, func(f string) bool {
			return strings.Contains(stack, f)
		})
		if i > 0 && !ends {
			out = append(out, stack)
		}
	}
	return out
}

// openFiles returns the number of open files, or -1 if it is unknown.
func openFiles() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	return len(entries)
}

// logs reports log lines at Error, except those of remoting, which logs every closed connection as
// an error, including the ones it closes itself.
type logs struct {
	slog.Handler
	to *inside
}

func (l *logs) Handle(ctx context.Context, r slog.Record) error {
	source := runtime.FuncForPC(r.PC)
	if r.Level >= slog.LevelError &&
		(source == nil || !strings.Contains(source.Name(), "protoactor-go/remote.")) {
		var text strings.Builder
		text.WriteString(r.Message)
		r.Attrs(func(a slog.Attr) bool {
			fmt.Fprintf(&text, " %s=%v", a.Key, a.Value)
			return true
		})
		l.to.say(report{Event: evError, Text: text.String()})
	}
	return l.Handler.Handle(ctx, r)
}

func (l *logs) WithAttrs(a []slog.Attr) slog.Handler { return &logs{l.Handler.WithAttrs(a), l.to} }

func (l *logs) WithGroup(name string) slog.Handler { return &logs{l.Handler.WithGroup(name), l.to} }
