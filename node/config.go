package node

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/internal/settings"
)

// Bounds of Config.MaxMessage, in bytes.
const (
	defaultMessage = 64 << 20
	minMessage     = 8 << 20
	maxMessage     = 1 << 30
)

// Bounds of Config.MaxRate.
const (
	minRate = 10_000
	maxRate = 1_000_000_000
)

// Config configures the remoting of one member. The zero value listens on a free loopback port.
type Config struct {
	// Host is the address to listen on. Default: 127.0.0.1.
	Host string `yaml:"host"`
	// Port is the port to listen on; 0 picks a free one. That suits tests: after a restart the
	// address is a different one.
	Port int `yaml:"port"`
	// Advertised is the host:port at which other members reach this one. Default: the address the
	// member listens on. Required when Host is a wildcard such as 0.0.0.0.
	Advertised string `yaml:"advertised"`
	// Roles are the roles of this member, for use with the function Roles. Each has at most 63
	// bytes: letters, digits, "-", "_" and ".".
	Roles []string `yaml:"roles"`
	// AppVersion is the version of the application that this member runs, for use with the function
	// AppVersion: numbers separated by dots, with an optional "v" before and an optional
	// pre-release after a "-", as in "1.12.0-rc.2"; at most 32 bytes. Versions have the order of
	// Semantic Versioning. Members without one count as older than all versions. Singletons can
	// prefer hosts of the newest version. Default: none.
	AppVersion string `yaml:"app-version"`
	// TLS, if set, admits only members with a certificate; see TLSFiles. When Host or the host of
	// Advertised is not a loopback address (localhost, 127.0.0.0/8 or ::1), TLS is required unless
	// SecretFile or PlaintextUnsafe is set. Either all members must set it, or none.
	TLS *TLS `yaml:"tls"`
	// SecretFile, if set, is a file with a secret of the cluster: one line of 16 to 1024 bytes.
	// Members authenticate each message with the secret; they do not encrypt. A second line may
	// hold the next secret or the previous one: messages are accepted with either secret and sent
	// with the first. The file is reloaded in the same way as the files of TLS. Give each cluster
	// its own secret. Either all members must set it, or none.
	SecretFile string `yaml:"secret-file"`
	// PlaintextUnsafe allows listening beyond loopback without TLS and without a secret. Anyone who
	// can read or change the traffic between members can then impersonate a member. Anyone else who
	// reaches the port can send user messages to the actors in Public.
	PlaintextUnsafe bool `yaml:"plaintext-unsafe"`
	// Public names the actors that processes outside the cluster can send to, together with their
	// children; by default they reach none. Members reach every actor.
	Public []string `yaml:"public"`
	// MaxRate is the number of messages that this member accepts from one peer in a second, where
	// each KiB counts as one more. A peer that sends faster is slowed down by the flow control of
	// its connection, and its messages wait there; nothing is dropped. It bounds what a flooding
	// peer takes of this member's processors. At least 10,000 and MaxMessage in KiB divided by 30,
	// so that no message waits for longer than 30 seconds. Default 0: no bound.
	MaxRate int `yaml:"max-rate"`
	// MaxMessage is the size in bytes of the largest gRPC message accepted. Default 64 MiB.
	// Remoting packs up to 200 messages into one gRPC message, but not more than 512 KiB of them,
	// unless a single one is larger. A message above MaxMessage is lost together with its
	// connection. Each connection may use this much memory. All members must have the same value.
	// From a process that is not a member of the cluster, at most 1 MiB and 50,000 protobuf fields
	// are accepted, whatever MaxMessage is.
	MaxMessage int `yaml:"max-message"`
}

// withDefaults returns c with unset fields filled in.
func (c Config) withDefaults() Config {
	if c.Host == "" {
		c.Host = "127.0.0.1"
	}
	if c.MaxMessage == 0 {
		c.MaxMessage = defaultMessage
	}
	return c
}

// validate returns all problems at once; each matches ErrInvalid.
func (c Config) validate() error {
	c = c.withDefaults()
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...))
	}
	if c.Port < 0 || c.Port > 65535 {
		bad("Port (%d) must be from 0 to 65535", c.Port)
	}
	if c.MaxMessage < minMessage || c.MaxMessage > maxMessage {
		bad("MaxMessage (%d) must be from %d to %d", c.MaxMessage, minMessage, maxMessage)
	}
	if c.MaxRate != 0 && (c.MaxRate < minRate || c.MaxRate > maxRate) {
		bad("MaxRate (%d) must be 0 or from %d to %d", c.MaxRate, minRate, maxRate)
	} else if least := c.MaxMessage >> 10 / 30; c.MaxRate != 0 && c.MaxRate < least {
		bad("MaxRate (%d) must be at least %d for a MaxMessage of %d", c.MaxRate, least,
			c.MaxMessage)
	}
	if c.Advertised != "" && !isAddress(c.Advertised) {
		bad("Advertised (%q) must be host:port with a port from 1 to 65535", c.Advertised)
	}
	if c.Advertised == "" && isWildcard(c.Host) {
		bad("Advertised must be set when Host (%q) is a wildcard: others cannot reach this member there",
			c.Host)
	}
	if beyond := c.beyondLoopback(); beyond != "" && c.TLS == nil && c.SecretFile == "" &&
		!c.PlaintextUnsafe {
		bad("%s is not a loopback address, and anyone who reaches the port can send messages to "+
			"actors; set TLS or SecretFile, listen on loopback, or set PlaintextUnsafe if the network is closed", beyond)
	}
	if c.TLS != nil && (c.TLS.Cert == "" || c.TLS.Key == "" || len(c.TLS.Authorities) == 0) {
		bad("TLS needs Cert (%q), Key (%q) and at least one of Authorities (%q)", c.TLS.Cert,
			c.TLS.Key, c.TLS.Authorities)
	}
	seen := map[string]bool{}
	for _, r := range c.Roles {
		if err := checkRole(r); err != nil {
			errs = append(errs, err)
		}
		if seen[r] {
			bad("Roles: %q is listed twice", r)
		}
		seen[r] = true
	}
	if err := checkAppVersion(c.AppVersion); c.AppVersion != "" && err != nil {
		errs = append(errs, err)
	}
	return settings.Join(errs...)
}

func checkAppVersion(v string) error {
	if err := membership.CheckVersion(v); err != nil {
		return fmt.Errorf("%w: AppVersion: %w", ErrInvalid, err)
	}
	return nil
}

func checkRole(r string) error {
	ok := r != "" && len(r) <= 63 && strings.IndexFunc(r, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			strings.ContainsRune("-_.", c))
	}) < 0
	if ok {
		return nil
	}
	return fmt.Errorf("%w: Roles: %q must have from 1 to 63 letters, digits, \"-\", \"_\" and \".\"",
		ErrInvalid, r)
}

func isAddress(s string) bool {
	host, port, err := net.SplitHostPort(s)
	if err != nil || host == "" {
		return false
	}
	n, err := strconv.Atoi(port)
	return err == nil && n > 0 && n <= 65535
}

// beyondLoopback describes the first host that is not a loopback address, or returns "" if all are.
func (c Config) beyondLoopback() string {
	if !isLoopback(c.Host) {
		return fmt.Sprintf("Host (%q)", c.Host)
	}
	if host, _, err := net.SplitHostPort(c.Advertised); err == nil && !isLoopback(host) {
		return fmt.Sprintf("Advertised (%q)", c.Advertised)
	}
	return ""
}

func isWildcard(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsUnspecified()
}

// isLoopback does not resolve names: a name may resolve to another address later.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
