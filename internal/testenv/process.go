package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// build makes a program of one of this module's packages, unless it is there, made from the same versions.
func (e *environment) build(ctx context.Context, name, pkg string, flags ...string) (string, error) {
	program := filepath.Join(e.bin, name)
	stamp, err := versions(pkg, flags)
	if err != nil {
		return "", err
	}
	if had, err := os.ReadFile(program + ".version"); err == nil && string(had) == stamp {
		if _, err := os.Stat(program); err == nil {
			return program, nil
		}
	}
	fmt.Fprintln(os.Stderr, "testenv: building", name, "(minutes, once)")
	args := append([]string{"build", "-o", program}, append(flags, pkg)...)
	if out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", name, err, out)
	}
	return program, os.WriteFile(program+".version", []byte(stamp), 0o600)
}

// versions stands for all that a build depends on.
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

// spawn starts a server, which writes to a log of its own; it is killed at the end.
func (e *environment) spawn(name, program string, args ...string) (log string, err error) {
	log = filepath.Join(e.temp, name+".log")
	f, err := os.Create(log)
	if err != nil {
		return "", err
	}
	defer f.Close()
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = e.temp, f, f
	if err := cmd.Start(); err != nil {
		return "", err
	}
	e.stop = append(e.stop, func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return log, nil
}

// free returns a port that nobody listened on a moment ago.
func free() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}

// ready waits until a request is answered with 200, and shows the end of the log if it is not.
func ready(ctx context.Context, client *http.Client, log string, request func(context.Context) (*http.Request, error)) error {
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
			if answer.StatusCode == http.StatusOK {
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
