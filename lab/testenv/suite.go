package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// suite is a package with the server that its tests need.
type suite struct {
	pkg    string
	server string
	flags  []string
}

// Suites of one server run one after the other, since some kill it, beside those of the others:
// they mostly wait, for expiries and disks. Suites with state of their own run with the race
// detector.
var suites = []suite{
	{"./coordination/kubernetes", "kubernetes", nil},
	{"./coordination/etcd", "etcd", []string{"-race"}},
	{"./coordination/zookeeper", "zookeeper", []string{"-race"}},
	{"./coordination/azureblob", "azure", nil},
	{"./coordination/postgres", "postgres", []string{"-race"}},
	{"./node/provider/etcd", "etcd", []string{"-race"}},
	{"./node/provider/zookeeper", "zookeeper", []string{"-race"}},
	{"./node/provider/kubernetes", "kubernetes", []string{"-race"}},
	{"./examples/bank", "etcd", []string{"-run", "OnEtcd$"}},
	{"./examples/bank", "kubernetes", []string{"-run", "OnKubernetes$"}},
	{"./examples/sql", "postgres", nil},
}

// test runs the suites of the started servers, each from the moment that its server is ready, and
// reports the failed ones at the end.
func (e *environment) test(ctx context.Context) error {
	var all sync.WaitGroup
	var failed atomic.Int32
	for server, ready := range e.ready {
		all.Go(func() {
			select {
			case <-ready:
			case <-ctx.Done():
				return
			}
			for _, s := range suites {
				if s.server == server && !e.testOne(ctx, s) {
					failed.Add(1)
				}
			}
		})
	}
	all.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if n := failed.Load(); n > 0 {
		return fmt.Errorf("%d of the packages failed", n)
	}
	return nil
}

// testOne prints the output of the tests in one piece when they have ended.
func (e *environment) testOne(ctx context.Context, s suite) bool {
	if ctx.Err() != nil {
		return false
	}
	begun := time.Now()
	args := slices.Concat([]string{"test", "-count=1", "-p", "1", "-timeout", "15m", "-tags",
		"stores"}, s.flags, []string{s.pkg})
	cmd := e.command(ctx, "go", args...)
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return false
	}
	e.say("%s\ntestenv: go %s: %v\n", strings.TrimSpace(string(out)), strings.Join(args, " "),
		time.Since(begun).Round(time.Second))
	return err == nil
}

// command returns a command that knows the addresses of the servers. It is killed with all its
// child processes.
func (e *environment) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	e.mu.Lock()
	defer e.mu.Unlock()
	cmd.Dir, cmd.Env = e.root, append(os.Environ(), e.mu.vars...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}
