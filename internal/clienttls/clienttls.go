// Package clienttls reads the TLS settings of the clients of stores and cluster providers from PEM files.
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

// Files are PEM files. The zero value means that the client does not use TLS.
type Files struct {
	// CA has the authorities that servers must have a certificate of.
	CA string `yaml:"ca"`
	// Cert and Key are the certificate that the client shows, and its key. Both or none.
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
}

// Validate reads nothing. ErrIncomplete is returned for a certificate without key, or without CA.
func (f Files) Validate() error {
	if (f.Cert == "") != (f.Key == "") || f.Cert != "" && f.CA == "" {
		return fmt.Errorf("%w: CA (%q), Cert (%q), Key (%q)", ErrIncomplete, f.CA, f.Cert, f.Key)
	}
	return nil
}

// ErrIncomplete is returned by Validate.
var ErrIncomplete = errors.New("TLS needs CA, and Cert and Key both or not at all")

// Config returns nil without TLS.
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

// Dialer returns what connects with TLS; nil without TLS.
func (f Files) Dialer() (func(network, address string, timeout time.Duration) (net.Conn, error), error) {
	c, err := f.Config()
	if c == nil {
		return nil, err
	}
	return func(network, address string, timeout time.Duration) (net.Conn, error) {
		return tls.DialWithDialer(&net.Dialer{Timeout: timeout}, network, address, c)
	}, nil
}
