//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

const spacePrefix = "concord-peers-"

// newSpace makes a network namespace whose loopback interface is up. It takes root and the ip
// command of iproute2.
func newSpace(of string) (string, error) {
	name := fmt.Sprint(spacePrefix, os.Getpid(), "-", of)
	for _, args := range [][]string{{"netns", "add", name}, {"netns", "exec", name, "ip", "link",
		"set", "lo", "up"}} {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			removeSpace(name)
			return "", fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err,
				strings.TrimSpace(string(out)))
		}
	}
	return name, nil
}

func removeSpace(name string) {
	if name != "" {
		_ = exec.Command("ip", "netns", "del", name).Run()
	}
}

// removeOldSpaces removes the namespaces of runs that were killed.
func removeOldSpaces() {
	names, err := os.ReadDir("/run/netns")
	if err != nil {
		return
	}
	for _, n := range names {
		rest, ours := strings.CutPrefix(n.Name(), spacePrefix)
		pid, _, _ := strings.Cut(rest, "-")
		if _, err := strconv.Atoi(pid); !ours || err != nil {
			continue
		}
		if _, err := os.Stat("/proc/" + pid); os.IsNotExist(err) {
			removeSpace(n.Name())
		}
	}
}
