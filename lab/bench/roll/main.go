// Command roll replaces the members of a cluster one after the other while clients use it, and
// counts what that costs them.
//
// Five members host entities and a singleton, and hold volatile and durable data. Clients in a
// sixth process send a thousand requests a second: to entities, to the singleton, and writes at a
// majority. A round replaces each member by one of the other build, as Kubernetes does with a
// StatefulSet: SIGTERM, wait for the end, start the other build under the same name, wait for its
// /readyz. The builds are this work tree and another commit, in turn.
//
//	go run ./lab/bench/roll -rounds 4 -from HEAD~1
//
// With -freeze, in each round one member is stopped by SIGSTOP while another one is replaced. With
// -kill, in each round one member is ended by SIGKILL. Then requests may fail, and are not sent
// again if they may have been handled, and a member may not be able to stop in order.
//
// A client sends a request once more if the first answer was ErrUndelivered. It exits with 1 if a
// request failed, or something that was acknowledged is lost or was done twice.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/concord-go/concord/lab/bench/internal/measure"
)

var (
	rounds  = flag.Int("rounds", 2, "`rounds`, each of which replaces all members")
	within  = flag.Duration("within", time.Hour, "`time` after which no round begins")
	from    = flag.String("from", "HEAD~1", "`commit` of the other build; empty: this work tree")
	rate    = flag.Int("rate", 1000, "requests a second")
	quiet   = flag.Duration("quiet", 10*time.Second, "`time` undisturbed, before and after")
	version = flag.Bool("app-version", false, "the builds announce versions of the application")
	freeze  = flag.Duration("freeze", 0, "`time` for which a member is stopped in each round")
	kill    = flag.Bool("kill", false, "end a member by SIGKILL in each round")
	show    = flag.Bool("v", false, "show the logs of the members, of level INFO too")
)

func main() {
	if text := os.Getenv(memberEnv); text != "" {
		if err := runMember(text); err != nil {
			log.Fatal(err)
		}
		return
	}
	flag.Parse()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// build is a program of the members.
type build struct{ path, name, version string }

// builds returns this program, and that of the other commit.
func builds(dir string) ([2]build, error) {
	self, err := os.Executable()
	all := [2]build{{self, "this work tree", ""}, {self, "this work tree", ""}}
	if *version {
		all[0].version, all[1].version = "2.0.0", "1.0.0"
	}
	if err != nil || *from == "" {
		return all, err
	}
	tree := filepath.Join(dir, "tree")
	if err := command("", "git", "worktree", "add", "--quiet", "--detach", tree,
		*from); err != nil {
		return all, err
	}
	defer func() { _ = command("", "git", "worktree", "remove", "--force", tree) }()
	source := filepath.Join(tree, "bench", "roll")
	if _, err := os.Stat(source); errors.Is(err, os.ErrNotExist) { // a commit before this program
		if err := os.CopyFS(source, os.DirFS(filepath.Join("bench", "roll"))); err != nil {
			return all, err
		}
	}
	all[1].path, all[1].name = filepath.Join(dir, "other"), *from
	return all, command(tree, "go", "build", "-o", all[1].path, "./lab/bench/roll")
}

func command(dir, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return nil
}

// cluster is the members, and how long the replacements took.
type cluster struct {
	specs       []spec
	procs       [members]*process
	rounds      int // that have begun
	stops       []time.Duration
	starts      []time.Duration
	replacement []time.Duration
	unordered   []string // stops that failed, while another member was at fault
	log         []string // when members were signalled, had ended and were ready
}

// process is one member process.
type process struct {
	cmd  *exec.Cmd
	in   io.Closer
	logs bytes.Buffer
	gone chan error
}

func run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "roll")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Mkdir(filepath.Join(dir, "handled"), 0o700); err != nil {
		return err
	}
	both, err := builds(dir)
	if err != nil {
		return err
	}
	c := &cluster{}
	if c.specs, err = specs(dir); err != nil {
		return err
	}
	defer c.end()
	for i := range members {
		if err := c.start(i, both[1]); err != nil {
			return err
		}
	}
	client := &member{spec: c.specs[members], ready: make(chan struct{})}
	client.Version = both[0].version
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- client.run(ctx) }()
	defer func() {
		stop()
		err = errors.Join(err, <-ended)
	}()
	for i := range members {
		if err := c.ready(i); err != nil {
			return err
		}
	}
	select {
	case <-client.ready:
	case err := <-ended:
		ended <- nil
		return err
	}
	if err := client.dd.Ready(ctx); err != nil {
		return err
	}
	return c.roll(ctx, client, both)
}

// specs returns the specs of all members; the last one is the clients'.
func specs(dir string) (all []spec, err error) {
	ports, err := measure.Ports(3 * (members + 1))
	if err != nil {
		return nil, err
	}
	var hosts []string
	for i := range members + 1 {
		hosts = append(hosts, fmt.Sprint("127.0.0.1:", ports[3*i+1]))
	}
	level := slog.LevelWarn
	if *show {
		level = slog.LevelInfo
	}
	for i := range members + 1 {
		all = append(all, spec{Name: fmt.Sprint("n", i), Port: ports[3*i], Listing: ports[3*i+1],
			Probe: ports[3*i+2], Hosts: hosts, Dir: dir, Client: i == members, Level: level})
	}
	return all, nil
}

// roll runs the clients undisturbed, during the rounds, and undisturbed again, and prints a table.
func (c *cluster) roll(ctx context.Context, client *member, both [2]build) error {
	warm := startLoad(client, "warm", *rate) // shards and the singleton find their first homes
	time.Sleep(5 * time.Second)
	warm.end()
	l := startLoad(client, "measured", *rate)
	l.written = warm.written
	time.Sleep(*quiet)
	l.rolling.Store(true)
	err := c.replaceAll(both)
	l.rolling.Store(false)
	if err == nil {
		time.Sleep(*quiet)
	}
	l.end()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	records, err := c.records(client.Dir, both[(c.rounds+1)%2])
	if err != nil {
		return err
	}
	return c.report(ctx, l, records, both)
}

// replaceAll replaces all members in each round.
func (c *cluster) replaceAll(both [2]build) error {
	end := time.Now().Add(*within)
	for round := range *rounds {
		if time.Now().After(end) {
			break
		}
		c.rounds++
		for i := members - 1; i >= 0; i-- {
			thaw := func() error { return nil }
			if i == members/2 && *freeze > 0 { // those of the old and the new build in turn
				thaw = c.freeze(round % 2 * (members - 1))
			}
			sig := syscall.SIGTERM
			if *kill && i == round%members {
				sig = syscall.SIGKILL
			}
			if err := errors.Join(c.replace(i, both[round%2], sig), thaw()); err != nil {
				return err
			}
		}
	}
	return nil
}

// mostToStop is how long a member may take to stop. Then it writes its goroutines and ends.
const mostToStop = 20 * time.Second

// replace replaces a member in the way of a StatefulSet, or by a signal that kills it.
func (c *cluster) replace(i int, by build, sig syscall.Signal) error {
	begun := time.Now()
	p := c.procs[i]
	if err := p.cmd.Process.Signal(sig); err != nil {
		return err
	}
	limit := time.AfterFunc(mostToStop, func() { _ = p.cmd.Process.Signal(syscall.SIGQUIT) })
	err := <-p.gone
	p.gone <- nil // for end
	ordered := limit.Stop()
	if err != nil && sig != syscall.SIGKILL {
		err = fmt.Errorf("%s ended with %w:\n%s", c.specs[i].Name, err, &p.logs)
		if !ordered || *freeze == 0 && !*kill {
			return err
		}
		c.unordered = append(c.unordered, err.Error())
	}
	stopped := time.Now()
	if err := c.start(i, by); err != nil {
		return err
	}
	if err := c.ready(i); err != nil {
		return err
	}
	c.log = append(c.log, fmt.Sprintf("%s: %v %s, ended %s, ready %s", c.specs[i].Name,
		sig, clock(begun), clock(stopped), clock(time.Now())))
	c.stops = append(c.stops, stopped.Sub(begun))
	c.starts = append(c.starts, time.Since(stopped))
	c.replacement = append(c.replacement, time.Since(begun))
	return nil
}

// freeze stops a member. The returned function waits until it runs again and is ready.
func (c *cluster) freeze(i int) (thaw func() error) {
	p := c.procs[i].cmd.Process
	end := time.Now().Add(*freeze)
	err := p.Signal(syscall.SIGSTOP)
	return func() error {
		time.Sleep(time.Until(end))
		err = errors.Join(err, p.Signal(syscall.SIGCONT))
		time.Sleep(time.Second) // in which it notices, if it was dropped meanwhile
		return errors.Join(err, c.ready(i))
	}
}

func (c *cluster) start(i int, b build) error {
	s := c.specs[i]
	s.Version = b.version
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	p := &process{cmd: exec.Command(b.path), gone: make(chan error, 1)}
	p.cmd.Env = append(os.Environ(), memberEnv+"="+string(text))
	p.cmd.Stderr = &p.logs
	if *show {
		p.cmd.Stderr = os.Stderr
	}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	c.procs[i] = p
	go func() { p.gone <- p.cmd.Wait() }()
	return nil
}

// ready waits for the /readyz of a member.
func (c *cluster) ready(i int) error {
	last := ""
	end := time.Now().Add(time.Minute)
	for ; time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		res, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/readyz", c.specs[i].Probe))
		if err != nil {
			last = err.Error()
			continue
		}
		text, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode == http.StatusOK {
			return nil
		}
		last = string(text)
	}
	return fmt.Errorf("%s was not ready after a minute: %s", c.specs[i].Name, last)
}

// records restarts each member, so that none handles requests any more, and counts how often each
// request was handled.
func (c *cluster) records(dir string, last build) (map[string]int, error) {
	for i := range members {
		if err := c.replace(i, last, syscall.SIGTERM); err != nil {
			return nil, err
		}
	}
	names, err := filepath.Glob(filepath.Join(dir, "handled", "*"))
	if err != nil {
		return nil, err
	}
	times := map[string]int{}
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		in := bufio.NewScanner(f)
		for in.Scan() {
			times[in.Text()]++
		}
		if err := errors.Join(in.Err(), f.Close()); err != nil {
			return nil, err
		}
	}
	return times, nil
}

// end kills what still runs.
func (c *cluster) end() {
	for _, p := range c.procs {
		if p != nil {
			_ = errors.Join(p.cmd.Process.Kill(), <-p.gone)
		}
	}
}

func (c *cluster) report(ctx context.Context, l *load, records map[string]int,
	both [2]build) error {
	lost, twice, err := l.lost(ctx, records)
	if err != nil {
		return err
	}
	n := c.rounds * members
	fmt.Printf("%d members replaced, of %s and %s in turn, at %d requests a second\n", n,
		both[1].name, both[0].name, *rate)
	bad := int64(0)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "requests to\tnumber\tretried\tfailed\tlost\ttwice\t"+
		"p50\tp99\tundisturbed p99\tmax\t")
	for kind, name := range kinds {
		t, still := &l.phases[1][kind], &l.phases[0][kind]
		bad += lost[kind] + twice[kind]
		if *freeze == 0 && !*kill {
			bad += int64(t.failed + still.failed)
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%v\t%v\t%v\t%v\t\n", name,
			len(t.took)+len(still.took), t.retried+still.retried, t.failed+still.failed,
			lost[kind], twice[kind], brief(t.percentile(50)), brief(t.percentile(99)),
			brief(still.percentile(99)), brief(t.percentile(100)))
	}
	_ = w.Flush()
	for _, row := range []struct {
		name string
		all  []time.Duration
	}{{"a stop", c.stops}, {"a start", c.starts}, {"a replacement", c.replacement}} {
		all := slices.Sorted(slices.Values(row.all[:n]))
		if n > 0 {
			fmt.Printf("%s took %v at the median and %v at most\n", row.name, brief(all[n/2]),
				brief(all[n-1]))
		}
	}
	for _, text := range c.unordered {
		fmt.Println(text)
	}
	for text, times := range l.errors {
		fmt.Printf("%d × %s\n", times, text)
	}
	if bad > 0 {
		for _, f := range l.failed[:min(len(l.failed), 100)] {
			fmt.Printf("%s to %s at %s was handled %d times\n", f.id, f.at, clock(f.begun),
				records[f.id])
		}
		for _, line := range c.log[:n] {
			fmt.Println(line)
		}
		return errors.New("a request failed, was lost, or was handled twice")
	}
	return nil
}

func clock(t time.Time) string { return t.Format("05.000") }

func brief(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }
