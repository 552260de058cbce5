//go:build linux

package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of processor times in /proc.
const tick = 10 * time.Millisecond

// usage is what a cluster and the machine have used so far.
type usage struct {
	at   time.Time
	own  time.Duration // processor time of the processes of the cluster
	busy time.Duration // processor time of the machine, with time taken by other virtual machines
	sent uint64        // bytes that the first process has written
	net  uint64        // bytes on the interface of the cluster's network namespace, with headers
	load float64
}

// look reads the usage of the processes of a cluster.
func look(pids []int) (u usage, err error) {
	u.at = time.Now()
	for _, pid := range pids {
		own, err := processorTime(pid)
		if err != nil {
			return u, err
		}
		u.own += own
	}
	if u.busy, err = busyTime(); err != nil {
		return u, err
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pids[0]))
	if err != nil {
		return u, err
	}
	for line := range strings.Lines(string(text)) {
		if n, ok := strings.CutPrefix(line, "wchar: "); ok {
			u.sent, err = strconv.ParseUint(strings.TrimSpace(n), 10, 64)
		}
	}
	if err != nil {
		return u, err
	}
	if u.net, err = interfaceBytes(pids[0]); err != nil {
		return u, err
	}
	if text, err = os.ReadFile("/proc/loadavg"); err != nil {
		return u, err
	}
	_, err = fmt.Sscan(string(text), &u.load)
	return u, err
}

// processorTime returns the user and system time of all threads of a process.
func processorTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The second field is the name in parentheses, which may contain spaces; utime is the 14th.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat: %d fields", pid, len(fields))
	}
	var user, system int64
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		return 0, fmt.Errorf("/proc/%d/stat: %w", pid, err)
	}
	return time.Duration(user+system) * tick, nil
}

// busyTime returns the time that the processors were not idle.
func busyTime() (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	var user, nice, system, idle, wait, irq, soft, steal int64
	if _, err := fmt.Sscanf(string(text), "cpu %d %d %d %d %d %d %d %d", &user, &nice, &system,
		&idle, &wait, &irq, &soft, &steal); err != nil {
		return 0, fmt.Errorf("/proc/stat: %w", err)
	}
	return time.Duration(user+nice+system+steal) * tick, nil
}

// interfaceBytes returns the bytes sent on the loopback interface of the namespace of a process.
func interfaceBytes(pid int) (uint64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/dev", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if counters, ok := strings.CutPrefix(strings.TrimSpace(line), "lo:"); ok {
			if fields := strings.Fields(counters); len(fields) > 8 {
				return strconv.ParseUint(fields[8], 10, 64)
			}
		}
	}
	return 0, fmt.Errorf("/proc/%d/net/dev: no interface lo", pid)
}

// machineName describes processors and kernel.
func machineName() string {
	model := "unknown"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if _, name, ok := strings.Cut(line, ":"); ok && strings.HasPrefix(line, "model name") {
				model = strings.TrimSpace(name)
				break
			}
		}
	}
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return fmt.Sprintf("%d × %s, Linux %s", runtime.NumCPU(), model,
		strings.TrimSpace(string(kernel)))
}
