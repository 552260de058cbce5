//go:build linux

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// takeOver is how long a cluster is without its singleton after the process of the host was killed.
// Each system has one timeout that the user chooses: the lease's time to live here, stable-after of
// the split brain resolver in Pekko. 0 is the default.
type takeOver struct{ timeout time.Duration }

var takeOvers = []takeOver{{3 * time.Second}, {0}}

func (t takeOver) String() string {
	return fmt.Sprintf("op=takeover/seconds=%g", t.timeout.Seconds())
}

// rounds is how often it is measured of n: with the defaults it takes most of a minute.
func (t takeOver) rounds(n int) int {
	if t.timeout == 0 {
		return 1
	}
	return n
}

// measure starts a cluster of a system, kills the host, and waits for the next one.
func (t takeOver) measure(of, space, pekko string) (figure, error) {
	var more []string
	if of == "concord" {
		dir, err := os.MkdirTemp("", "concord-peers-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		more = []string{"-leases", dir, "-ttl", t.timeout.String()}
	} else {
		more = []string{"singleton", strconv.Itoa(int(t.timeout.Seconds()))}
	}
	c, err := startCluster(of, space, pekko, "", more...)
	if err != nil {
		return nil, err
	}
	defer c.close()
	host, _, err := c.host(-1, startTimeout)
	if err != nil {
		return nil, err
	}
	time.Sleep(settleTime) // the lease has been renewed, and heartbeats have come
	killed := time.Now()
	if err := c.members[host].cmd.Process.Kill(); err != nil {
		return nil, err
	}
	_, at, err := c.host(host, takeOverTimeout)
	if err != nil {
		return nil, err
	}
	return figure{"s-to-host": at.Sub(killed).Seconds()}, nil
}

const (
	settleTime      = 5 * time.Second
	takeOverTimeout = 3 * time.Minute
)

// host waits until a member other than the given one hosts the singleton, and returns when it
// began.
func (c *cluster) host(other int, timeout time.Duration) (index int, at time.Time, err error) {
	for deadline := time.Now().Add(timeout); time.Now().Before(deadline); time.Sleep(
		10 * time.Millisecond) {
		for i, p := range c.members {
			if i == other {
				continue
			}
			select {
			case line := <-p.lines:
				p.hosts = strings.TrimPrefix(line, "hosts at=")
			default:
			}
			if p.hosts != "" {
				n, err := strconv.ParseInt(p.hosts, 10, 64)
				return i, time.Unix(0, n), err
			}
		}
	}
	return 0, at, fmt.Errorf("%s: no host within %v\n%v", c.of, timeout,
		c.members[(other+1)%clusterSize].errors.String())
}
