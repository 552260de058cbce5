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
	"syscall"
)

// environment is what servers add to and the command gets.
type environment struct {
	root string // of the repository
	bin  string // for programs that are built
	temp string // for data; removed at the end
	vars []string
	stop []func()
}

// servers are started in this order: the API server needs etcd.
var servers = []struct {
	name  string
	start func(context.Context, *environment) error
}{
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
	started := 0
	for _, s := range servers {
		if len(only) > 0 && !slices.Contains(only, s.name) {
			continue
		}
		fmt.Fprintln(os.Stderr, "testenv: starting", s.name)
		if err := s.start(ctx, e); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		started++
	}
	if started < len(only) {
		return fmt.Errorf("-only %s names an unknown server", strings.Join(only, ","))
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.Env = e.root, append(os.Environ(), e.vars...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
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
	for _, stop := range slices.Backward(e.stop) {
		stop()
	}
	_ = os.RemoveAll(e.temp)
}

func (e *environment) set(name, value string) { e.vars = append(e.vars, name+"="+value) }
