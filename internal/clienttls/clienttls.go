// Package clienttls reads the TLS settings of the clients of stores and cluster providers from PEM
// files.
package clienttls

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// Files are the names of PEM files. The zero value means that the client does not use TLS.
type Files struct {
	// CA contains the authorities that must have signed the certificates of servers.
	CA string `yaml:"ca"`
	// Cert and Key are the certificate of the client and its key. Set both or neither.
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
}

// Validate reads no files. It returns ErrIncomplete for a certificate without key, or without CA.
func (f Files) Validate() error {
	if (f.Cert == "") != (f.Key == "") || f.Cert != "" && f.CA == "" {
		return fmt.Errorf("%w: CA (%q), Cert (%q), Key (%q)", ErrIncomplete, f.CA, f.Cert, f.Key)
	}
	return nil
}

// ErrIncomplete is returned by Validate.
var ErrIncomplete = errors.New("TLS needs CA, and Cert and Key both or not at all")

// Config returns the TLS configuration, or nil without TLS.
func (f Files) Config() (*tls.Config, error) {
	if err := f.Validate(); err != nil || f.CA == "" {
		return nil, err
	}
	pem, err := os.ReadFile(f.CA)
	if err != nil {
		return nil, err
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
	if !c.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: no certificate in PEM", f.CA)
	}
	if f.Cert != "" {
		pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// Dialer returns a function that connects with TLS, or nil without TLS.
func (f Files) Dialer() (func(network, address string, timeout time.Duration) (net.Conn,
	error), error) {
	c, err := f.Config()
	if c == nil {
		return nil, err
	}
	return func(network, address string, timeout time.Duration) (net.Conn, error) {
		return tls.DialWithDialer(&net.Dialer{Timeout: timeout}, network, address, c)
	}, nil
}
