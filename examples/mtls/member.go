package main

import (
	"bufio"
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/node/provider/automanaged"
)

// memberEnv holds the configuration of a member process.
const memberEnv = "CONCORD_MTLS_MEMBER"

type memberConfig struct {
	Port, Health int
	Healths      []string // of all members
	Cert, Key    string
	Authorities  string
}

// starts counts the starts of all members. Members learn the sum only from each other's messages.
var starts = distributeddata.NewKey("starts", crdt.GCounter{})

// runMember is the main function of a member: it counts its start, and prints the sum of all
// starts, until its standard input ends.
func runMember() {
	var cfg memberConfig
	if err := json.Unmarshal([]byte(os.Getenv(memberEnv)), &cfg); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // until the parent exits
		stop()
	}()
	err := node.Run(ctx, node.RunConfig{
		Cluster: "mtls",
		Remote: node.Config{Port: cfg.Port, TLS: node.TLSFiles(cfg.Cert, cfg.Key,
			cfg.Authorities)},
		Provider: automanaged.New(automanaged.Config{
			Port: cfg.Health, Hosts: cfg.Healths, Refresh: 200 * time.Millisecond,
			DropAfter: 20 * time.Second,
		}),
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{
			Level: slog.LevelError})),
	}, func(n *node.Node) error {
		dd, err := distributeddata.New(n.System, distributeddata.Config{MinMembers: 2})
		if err != nil {
			return err
		}
		n.Go(func(ctx context.Context) error { return count(ctx, dd) })
		return nil
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(node.ExitCode(err))
}

// count adds one and prints the sum known to this member.
func count(ctx context.Context, dd *distributeddata.Replicator) error {
	if err := dd.Ready(ctx); err != nil {
		return err
	}
	_, err := starts.Update(ctx, dd, func(w *crdt.Writer, c *crdt.GCounter) error {
		c.Add(w, 1)
		return nil
	}, distributeddata.Local)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		if c, err := starts.Get(ctx, dd); err == nil {
			fmt.Println(c.Value())
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return nil
}

// members holds the processes and the files of all.
type members struct {
	dir       string
	addresses []string
	configs   []memberConfig
	running   [size]*process
	roots     *x509.CertPool
}

// process is one member.
type process struct {
	cmd  *exec.Cmd
	in   io.Closer
	done chan struct{}
	mu   sync.Mutex
	sum  string // the sum printed last
}

func name(i int) string { return fmt.Sprintf("member-%d", i+1) }

func newCluster(dir string) (*members, error) {
	c := &members{dir: dir}
	ports, err := freePorts(2 * size)
	if err != nil {
		return nil, err
	}
	var healths []string
	for i := range size {
		c.addresses = append(c.addresses, fmt.Sprintf("127.0.0.1:%d", ports[i]))
		healths = append(healths, fmt.Sprintf("127.0.0.1:%d", ports[size+i]))
	}
	for i := range size {
		file := filepath.Join(dir, name(i))
		c.configs = append(c.configs, memberConfig{
			Port: ports[i], Health: ports[size+i], Healths: healths,
			Cert: file + ".pem", Key: file + "-key.pem", Authorities: c.authorities(),
		})
	}
	return c, nil
}

// freePorts returns n unused ports. They lie below the range that the system uses for outgoing
// connections, so that a restarted member finds its ports free.
func freePorts(n int) (ports []int, err error) {
	const from, to = 20_000, 22_000
	for port := from + os.Getpid()%(to-from-100); len(ports) < n && port < to; port++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		_ = l.Close()
		ports = append(ports, port)
	}
	if len(ports) < n {
		return nil, fmt.Errorf("no %d free ports between %d and %d", n, from, to)
	}
	return ports, nil
}

func (c *members) start(ctx context.Context, i int) error {
	raw, err := json.Marshal(c.configs[i])
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	p := &process{cmd: exec.CommandContext(ctx, self), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), memberEnv+"="+string(raw))
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go p.read(out)
	c.running[i] = p
	return nil
}

func (p *process) read(out io.Reader) {
	defer close(p.done)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		p.mu.Lock()
		p.sum = strings.TrimSpace(lines.Text())
		p.mu.Unlock()
	}
}

// stop stops a member gracefully.
func (p *process) stop() {
	_ = p.in.Close()
	<-p.done
	_ = p.cmd.Wait()
}

func (c *members) restart(ctx context.Context, i int) error {
	c.running[i].stop()
	return c.start(ctx, i)
}

func (c *members) stop() {
	for _, p := range c.running {
		if p != nil {
			p.stop()
		}
	}
}

// agree waits until every member has counted want starts.
func (c *members) agree(ctx context.Context, want int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		all := true
		for _, p := range c.running {
			p.mu.Lock()
			all = all && p.sum == fmt.Sprint(want)
			p.mu.Unlock()
		}
		if all {
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the members do not agree on %d starts: %w", want, context.Cause(ctx))
		}
	}
}
