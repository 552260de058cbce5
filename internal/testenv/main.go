// Testenv runs a command beside the real servers that lease stores are tested on: it builds or installs
// them, starts them on free ports of the loopback, tells the command by environment variables where they
// are, and stops them.
//
//	cd internal/testenv && go run . -- go test -tags stores ./coordination/...
//
// It is a module of its own, so that no user of Concord gets a server as a dependency. Programs that are
// built are kept in bin/testenv. Nothing is skipped: a server that cannot be had is an error.
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

// environment is what servers add to and the command gets.
type environment struct {
	root string // of the repository
	bin  string // for programs that are built
	temp string // for data; removed at the end

	building, installing sync.Mutex // one at a time

	mu struct {
		sync.Mutex
		vars  []string
		ports []string // that are taken
		stop  []func()
	}
}

type server struct {
	name  string
	start func(context.Context, *environment) error
}

// servers are started at one time.
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
	err := run(ctx, strings.FieldsFunc(*only, func(r rune) bool { return r == ',' }), flag.Args())
	cancel()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		os.Exit(exit.ExitCode())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testenv:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only, command []string) error {
	if len(command) == 0 {
		return errors.New("no command: go run . -- go test …")
	}
	e, err := newEnvironment()
	if err != nil {
		return err
	}
	defer e.close()
	if err := start(ctx, e, only); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.Env = e.root, append(os.Environ(), e.mu.vars...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}

// start starts servers and waits until all are ready. The first one that fails ends the others.
func start(ctx context.Context, e *environment, only []string) error {
	for _, name := range only {
		if !slices.ContainsFunc(servers, func(s server) bool { return s.name == name }) {
			return fmt.Errorf("-only %s: there is no such server", name)
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for _, s := range servers {
		if len(only) > 0 && !slices.Contains(only, s.name) {
			continue
		}
		all.Go(func() {
			begun := time.Now()
			if err := s.start(ctx, e); err != nil {
				cancel(fmt.Errorf("%s: %w", s.name, err))
				return
			}
			fmt.Fprintf(os.Stderr, "testenv: %s is ready after %v\n", s.name, time.Since(begun).Round(time.Second))
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

func newEnvironment() (*environment, error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(root, "internal/testenv/go.mod")); err != nil {
		return nil, fmt.Errorf("to be run in internal/testenv: %w", err)
	}
	temp, err := os.MkdirTemp("", "concord-testenv-")
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(temp, 0o755); err != nil { // PostgreSQL runs as another user
		return nil, err
	}
	return &environment{root: root, bin: filepath.Join(root, "bin", "testenv"), temp: temp}, nil
}

// close stops what was started, last first.
func (e *environment) close() {
	for _, stop := range slices.Backward(e.mu.stop) {
		stop()
	}
	_ = os.RemoveAll(e.temp)
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
