package zookeeper

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/concord-go/concord/coordination"
)

// Config is the configuration of a store. Zero fields take their defaults.
type Config struct {
	// Servers are addresses, each host:port. Required.
	Servers []string `yaml:"servers"`
	// Path of the node below which leases are kept; created if it does not exist. At most 1024
	// bytes. Default "/concord/leases".
	Path string `yaml:"path"`
	// SessionTimeout is the timeout that the client requests, from 1s to 576h; by default servers
	// grant between 2 and 20 of their ticks. TTLs may be up to 3/4 of the granted timeout. Raising
	// it makes locks of other programs wait longer for a dead holder. Default 40s.
	SessionTimeout time.Duration `yaml:"session-timeout"`
	// ACL of the nodes that the store creates. Default: everybody may do everything.
	ACL []zk.ACL `yaml:"-"`
	// AuthScheme and Auth, such as "digest" and "user:password", are the credentials of the
	// session. Default: none.
	AuthScheme string `yaml:"auth-scheme"`
	Auth       string `yaml:"auth"`
	// Dial connects to a server; set it for TLS. Default net.DialTimeout.
	Dial zk.Dialer `yaml:"-"`
}

const (
	maxPath    = 1024
	maxTimeout = 576 * time.Hour // ZooKeeper counts milliseconds in 32 bits
)

func (c Config) withDefaults() Config {
	if c.Path == "" {
		c.Path = "/concord/leases"
	}
	if c.SessionTimeout == 0 {
		c.SessionTimeout = 40 * time.Second
	}
	if len(c.ACL) == 0 {
		c.ACL = zk.WorldACL(zk.PermAll)
	}
	if c.Dial == nil {
		c.Dial = net.DialTimeout
	}
	return c
}

// validate reports every problem at once. Each wraps coordination.ErrInvalid.
func (c Config) validate() error {
	c = c.withDefaults()
	var errs []error
	wrong := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("zookeeper: %w: %s", coordination.ErrInvalid,
			fmt.Sprintf(format, args...)))
	}
	if len(c.Servers) == 0 {
		wrong("Servers is empty")
	}
	for _, s := range c.Servers {
		if _, _, err := net.SplitHostPort(s); err != nil {
			wrong("Servers: %.80q is not host:port", s)
		}
	}
	if len(c.Path) > maxPath {
		wrong("Path of %d bytes, at most %d", len(c.Path), maxPath)
	} else if !validPath(c.Path) {
		wrong("Path %.80q is not the absolute path of a node", c.Path)
	}
	if c.SessionTimeout < time.Second || c.SessionTimeout > maxTimeout {
		wrong("SessionTimeout (%v) must be from %v to %v", c.SessionTimeout, time.Second,
			maxTimeout)
	}
	if (c.AuthScheme == "") != (c.Auth == "") {
		wrong("AuthScheme and Auth belong together")
	}
	return errors.Join(errs...)
}

func validPath(path string) bool {
	rest, absolute := strings.CutPrefix(path, "/")
	if !absolute {
		return false
	}
	for part := range strings.SplitSeq(rest, "/") {
		if part == "" || part == "." || part == ".." ||
			strings.ContainsFunc(part, func(r rune) bool {
				return r < ' ' || r >= 0x7f
			}) {
			return false
		}
	}
	return true
}

// newInstance returns an identifier that distinguishes the nodes of this store from those of
// others.
func newInstance() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("%016x", binary.BigEndian.Uint64(b[:]))
}
