package node

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Bounds of Config.MaxMessage, in bytes.
const (
	DefaultMaxMessage = 64 << 20
	minMessage        = 1 << 20
	maxMessage        = 1 << 30
)

// Config of the remoting of one member. The zero value listens on a free loopback port.
type Config struct {
	// Host to listen on. Default: 127.0.0.1.
	Host string `yaml:"host"`
	// Port to listen on. 0 takes a free one, which suits tests: a restart then has another address.
	Port int `yaml:"port"`
	// Advertised is the host:port under which others reach this member. Default: where it listens.
	// Needed when Host is a wildcard such as 0.0.0.0.
	Advertised string `yaml:"advertised"`
	// Roles of this member, for use with the function Roles. Letters, digits, "-", "_" and ".", at most
	// 63 bytes each.
	Roles []string `yaml:"roles"`
	// TLS, if set, lets only members with a certificate in; see TLSFiles. It is required beyond
	// loopback, unless SecretFile or PlaintextUnsafe is set: when Host or the host of Advertised is
	// something else than localhost, 127.0.0.0/8 or ::1. All members must have it, or none.
	TLS *TLS `yaml:"tls"`
	// SecretFile, if set, is a file with a secret of the cluster, from 16 to 1024 bytes in one line.
	// Members authenticate each message with it; they do not encrypt. A second line may hold the next
	// secret, or the former one: messages are taken with either, and sent with the first. It is
	// looked at like the files of TLS. Give each cluster a secret of its own. All members must have
	// it, or none.
	SecretFile string `yaml:"secret-file"`
	// PlaintextUnsafe allows to listen beyond loopback without TLS and secret. Those who can read
	// the traffic between members, or change it, can then pass for a member; others that reach the
	// port can send messages of users to any actor that is not kept from them with Public.
	PlaintextUnsafe bool `yaml:"plaintext-unsafe"`
	// Public names the actors that messages from other members reach, together with their children.
	// nil: all. Besides these, replies to futures arrive, and messages for virtual actors and for the
	// components of Concord. Replies to other actors of yours that ask do not, unless they are named.
	Public []string `yaml:"public"`
	// MaxMessage is the largest gRPC message accepted, in bytes; remoting packs up to 200 messages into
	// one, fewer if this is below the default of 64 MiB. Larger ones are lost together with the connection.
	// Each connection may take this much memory. All members must have the same.
	MaxMessage int `yaml:"max-message"`
}

// withDefaults fills in what is not set.
func (c Config) withDefaults() Config {
	if c.Host == "" {
		c.Host = "127.0.0.1"
	}
	if c.MaxMessage == 0 {
		c.MaxMessage = DefaultMaxMessage
	}
	return c
}

// Validate returns all problems at once; each matches ErrInvalid.
func (c Config) Validate() error {
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
	if c.Advertised != "" && !isAddress(c.Advertised) {
		bad("Advertised (%q) must be host:port with a port from 1 to 65535", c.Advertised)
	}
	if c.Advertised == "" && isWildcard(c.Host) {
		bad("Advertised must be set when Host (%q) is a wildcard: others cannot reach this member there", c.Host)
	}
	if beyond := c.beyondLoopback(); beyond != "" && c.TLS == nil && c.SecretFile == "" && !c.PlaintextUnsafe {
		bad("%s is not a loopback address, and anybody who reaches the port can send messages to "+
			"actors; set TLS or SecretFile, listen on loopback, or set PlaintextUnsafe if the network is closed", beyond)
	}
	if c.TLS != nil && (c.TLS.Cert == "" || c.TLS.Key == "" || len(c.TLS.Authorities) == 0) {
		bad("TLS needs Cert (%q), Key (%q) and at least one of Authorities (%q)", c.TLS.Cert, c.TLS.Key, c.TLS.Authorities)
	}
	seen := map[string]bool{}
	for _, r := range c.Roles {
		if err := checkRole(r); err != nil {
			errs = append(errs, err)
		}
		if seen[r] {
			bad("Roles: %q is there twice", r)
		}
		seen[r] = true
	}
	return errors.Join(errs...)
}

func checkRole(r string) error {
	ok := r != "" && len(r) <= 63 && strings.IndexFunc(r, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_.", c))
	}) < 0
	if ok {
		return nil
	}
	return fmt.Errorf("%w: role %q must have from 1 to 63 letters, digits, \"-\", \"_\" and \".\"", ErrInvalid, r)
}

func isAddress(s string) bool {
	host, port, err := net.SplitHostPort(s)
	if err != nil || host == "" {
		return false
	}
	n, err := strconv.Atoi(port)
	return err == nil && n > 0 && n <= 65535
}

// beyondLoopback names what is not a loopback address; "": everything is.
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

// isLoopback looks no names up: a name may mean something else tomorrow.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
