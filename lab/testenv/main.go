// Testenv runs the tests of lease stores, or a command, with the real servers that they need. It
// builds or installs the servers, starts them on free loopback ports, exports their addresses in
// environment variables, and stops them.
//
//	cd lab/testenv && go run .
//	cd lab/testenv && go run . -only etcd -- go test -tags stores ./coordination/etcd -run Live -v
//
// It is a separate module, so that users of Concord get no server as a dependency. Built programs
// are kept in bin/testenv. Nothing is skipped: it is an error if a server is unavailable.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// environment is the environment that servers extend and the command runs in.
type environment struct {
	root string // of the repository
	bin  string // for built programs
	temp string // for data; removed at the end

	ready map[string]chan struct{} // by server; closed when it is ready

	installing sync.Mutex // one at a time

	mu struct {
		sync.Mutex
		building map[string]*sync.Mutex // by program
		vars     []string
		ports    []string // ports in use
		stop     []func()
	}
}

type server struct {
	name  string
	start func(context.Context, *environment) error
}

// servers are started concurrently.
var servers = []server{
	{"etcd", startEtcd},
	{"postgres", startPostgres},
	{"kubernetes", startKubernetes},
	{"azure", startAzure},
	{"zookeeper", startZooKeeper},
}

func main() {
	only := flag.String("only", "", "comma-separated servers to start; default all")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, strings.FieldsFunc(*only, func(r rune) bool {
		return r == ','
	}), flag.Args())
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "testenv:", err)
		code = 1
	}
	os.Exit(code)
}

// run returns the exit code of the command.
func run(ctx context.Context, only, command []string) (code int, err error) {
	e, err := newEnvironment()
	if err != nil {
		return 0, err
	}
	defer e.close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	started, err := e.start(ctx, cancel, only)
	if err != nil {
		return 0, err
	}
	defer func() { cancel(nil); started.Wait() }() // before the servers are closed
	if len(command) == 0 {
		return 0, e.test(ctx)
	}
	started.Wait()
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.Env = e.root, append(os.Environ(), e.mu.vars...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// start starts servers concurrently. The first failure ends everything.
func (e *environment) start(ctx context.Context, cancel context.CancelCauseFunc,
	only []string) (*sync.WaitGroup, error) {
	for _, name := range only {
		if !slices.ContainsFunc(servers, func(s server) bool { return s.name == name }) {
			return nil, fmt.Errorf("-only %s: there is no such server", name)
		}
	}
	var all sync.WaitGroup
	for _, s := range servers {
		if len(only) > 0 && !slices.Contains(only, s.name) {
			continue
		}
		ready := make(chan struct{})
		e.ready[s.name] = ready
		all.Go(func() {
			begun := time.Now()
			if err := s.start(ctx, e); err != nil {
				cancel(fmt.Errorf("%s cannot be started: %w", s.name, err))
				return
			}
			e.say("testenv: %s is ready after %v\n", s.name, time.Since(begun).Round(time.Second))
			close(ready)
		})
	}
	return &all, nil
}

func newEnvironment() (*environment, error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(root, "lab/testenv/go.mod")); err != nil {
		return nil, fmt.Errorf("to be run in lab/testenv: %w", err)
	}
	temp, err := os.MkdirTemp("", "concord-testenv-")
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(temp, 0o755); err != nil { // PostgreSQL runs as another user
		return nil, err
	}
	e := &environment{root: root, bin: filepath.Join(root, "bin", "testenv"), temp: temp,
		ready: map[string]chan struct{}{}}
	e.mu.building = map[string]*sync.Mutex{}
	return e, nil
}

// close stops everything in reverse order of starting.
func (e *environment) close() {
	for _, stop := range slices.Backward(e.mu.stop) {
		stop()
	}
	_ = os.RemoveAll(e.temp)
}

// say prints one message at a time.
func (e *environment) say(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	fmt.Fprintf(os.Stderr, format, args...)
}

func (e *environment) set(name, value string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.vars = append(e.mu.vars, name+"="+value)
}

func (e *environment) atEnd(stop func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.stop = append(e.mu.stop, stop)
}
