package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// build builds a program of one of this module's packages, unless it was built from the same
// versions before. It runs with low priority, so that running tests are not slowed down.
func (e *environment) build(ctx context.Context, name, pkg string,
	flags ...string) (string, error) {
	program := filepath.Join(e.bin, name)
	stamp, err := versions(pkg, flags)
	if err != nil {
		return "", err
	}
	one := e.builder(name) // several servers may need the same program
	one.Lock()
	defer one.Unlock()
	if had, err := os.ReadFile(program + ".version"); err == nil && string(had) == stamp {
		if _, err := os.Stat(program); err == nil {
			return program, nil
		}
	}
	e.say("testenv: building %s (minutes, once)\n", name)
	args := slices.Concat([]string{"-n", "10", "go", "build", "-o", program}, flags, []string{pkg})
	err = again(ctx, func() error { // it may have to download modules
		cmd := exec.CommandContext(ctx, "nice", args...)
		// a workspace finds packages of etcd's in two modules
		cmd.Env = append(os.Environ(), "GOWORK=off")
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("building %s: %w\n%s", name, err, out)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return program, os.WriteFile(program+".version", []byte(stamp), 0o600)
}

func (e *environment) builder(program string) *sync.Mutex {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.mu.building[program] == nil {
		e.mu.building[program] = &sync.Mutex{}
	}
	return e.mu.building[program]
}

// again tries an operation that depends on package servers up to three times.
func again(ctx context.Context, do func() error) (err error) {
	for wait := 5 * time.Second; ; wait *= 3 {
		if err = do(); err == nil || wait > time.Minute/2 {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return err
		}
	}
}

// versions returns a hash of everything that a build depends on.
func versions(pkg string, flags []string) (string, error) {
	sum := sha256.New()
	for _, file := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		sum.Write(data)
	}
	fmt.Fprint(sum, runtime.Version(), pkg, flags)
	return fmt.Sprintf("%x\n", sum.Sum(nil)), nil
}

// spawn starts a server, which writes to its own log and is killed at the end. restart kills it and
// starts it again.
func (e *environment) spawn(name, program string, args ...string) (log string, restart func() error,
	err error) {
	log = filepath.Join(e.temp, name+".log")
	start := func() (*exec.Cmd, error) {
		f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		cmd := exec.Command(program, args...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = e.temp, f, f
		return cmd, cmd.Start()
	}
	cmd, err := start()
	if err != nil {
		return "", nil, err
	}
	kill := func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	e.atEnd(kill)
	return log, func() error {
		kill()
		again, err := start()
		if err == nil {
			cmd = again
		}
		return err
	}, nil
}

// free returns a port that was unused a moment ago and that no other server of this environment
// gets. It is below the ports that systems assign to clients, one of which could get it while a
// server is restarted, and below those that tests use for their own servers, from 26000 on.
func (e *environment) free() (port string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for range 100 {
		port = strconv.Itoa(20000 + rand.IntN(6000))
		if slices.Contains(e.mu.ports, port) {
			continue
		}
		var l net.Listener
		if l, err = net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			e.mu.ports = append(e.mu.ports, port)
			return port, l.Close()
		}
	}
	return "", fmt.Errorf("no free port: %w", err)
}

// ready waits until a request is answered with the given status. If that does not happen, the error
// contains the end of the log.
func ready(ctx context.Context, client *http.Client, log string, status int,
	request func(context.Context) (*http.Request, error)) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for last := errors.New("not asked"); ; {
		r, err := request(ctx)
		if err != nil {
			return err
		}
		answer, err := client.Do(r)
		if err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == status {
				return nil
			}
			err = errors.New(answer.Status)
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w\n%s", last, tail(log))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func tail(path string) string {
	data, _ := os.ReadFile(path)
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}
