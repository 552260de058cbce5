// Command mtls creates an authority and certificates, runs three members that communicate only over
// TLS, shows that strangers are rejected, and replaces the authority while the members run.
//
//	go run ./examples/mtls
//
//	certificates for 3 members in /tmp/concord-mtls-1234
//	3 starts, counted together
//	a stranger without a certificate: refused
//	a stranger with a certificate of another authority: refused
//	member 2 with a certificate for member 3: refused
//	both authorities are trusted, the members have certificates of the new one
//	member 1 was started again: 4 starts, counted together
//	a stranger with a certificate of the old authority: refused
//
// It exits with 0 if all checks hold. The members are processes of this program.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/concord-go/concord/testkit/pki"
)

const size = 3

func main() {
	if os.Getenv(memberEnv) != "" {
		runMember()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dir, err := os.MkdirTemp("", "concord-mtls-")
	if err == nil {
		err = errors.Join(show(ctx, os.Stdout, dir), os.RemoveAll(dir))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// show runs the whole example, with files in dir.
func show(ctx context.Context, out io.Writer, dir string) error {
	before, err := pki.NewAuthority("before")
	if err != nil {
		return err
	}
	after, err := pki.NewAuthority("after")
	if err != nil {
		return err
	}
	c, err := newCluster(dir)
	if err != nil {
		return err
	}
	defer c.stop()
	if err := errors.Join(c.trust(before), c.issue(before)); err != nil {
		return err
	}
	fmt.Fprintf(out, "certificates for %d members in %s\n", size, dir)
	for i := range size {
		if err := c.start(ctx, i); err != nil {
			return err
		}
	}
	if err := c.agree(ctx, size); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d starts, counted together\n", size)
	if err := strangers(ctx, out, c, before, after); err != nil {
		return err
	}

	// The order matters: first all members trust both authorities, then all get new certificates,
	// then the old authority is removed.
	if err := errors.Join(c.trust(before, after), wait(ctx), c.issue(after),
		wait(ctx)); err != nil {
		return err
	}
	fmt.Fprintln(out, "both authorities are trusted, the members have certificates of the new one")
	if err := errors.Join(c.trust(after), wait(ctx), c.restart(ctx, 0),
		c.agree(ctx, size+1)); err != nil {
		return err
	}
	fmt.Fprintf(out, "member 1 was started again: %d starts, counted together\n", size+1)
	cert, err := certificate(before, pki.Member{Hosts: []string{"127.0.0.1"}})
	if err != nil {
		return err
	}
	return refused(ctx, out, c, "a stranger with a certificate of the old authority", cert,
		c.addresses[2])
}

// wait waits until the members reload their files, which they do at most once a second on a new
// connection.
func wait(ctx context.Context) error {
	select {
	case <-time.After(1100 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// strangers checks that member 1 rejects strangers.
func strangers(ctx context.Context, out io.Writer, c *members, right, wrong *pki.Authority) error {
	anywhere := pki.Member{Hosts: []string{"127.0.0.1"}}
	foreign, err := certificate(wrong, anywhere)
	if err != nil {
		return err
	}
	// Each certificate names one address, so that of member 3 is not valid for member 2.
	third, err := certificate(right, pki.Member{Hosts: anywhere.Hosts, Addresses: c.addresses[2:]})
	if err != nil {
		return err
	}
	return errors.Join(
		refused(ctx, out, c, "a stranger without a certificate", nil, c.addresses[1]),
		refused(ctx, out, c, "a stranger with a certificate of another authority", foreign,
			c.addresses[1]),
		refused(ctx, out, c, "member 2 with a certificate for member 3", third, c.addresses[1]),
	)
}

func certificate(a *pki.Authority, m pki.Member) (*tls.Certificate, error) {
	cert, key, err := a.Issue(m)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	return &pair, err
}

// refused connects to member 1 and claims to be at address. It returns an error if member 1 accepts
// it.
func refused(ctx context.Context, out io.Writer, c *members, who string, cert *tls.Certificate,
	address string) error {
	cfg := &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: c.roots}
	cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if cert == nil {
			return &tls.Certificate{}, nil
		}
		return cert, nil
	}
	conn, err := grpc.NewClient(c.addresses[0], grpc.WithTransportCredentials(
		credentials.NewTLS(cfg)))
	if err != nil {
		return err
	}
	defer conn.Close()
	stream, err := remote.NewRemotingClient(conn).Receive(ctx)
	if err == nil {
		_ = stream.Send(&remote.RemoteMessage{MessageType: &remote.RemoteMessage_ConnectRequest{
			ConnectRequest: &remote.ConnectRequest{
				ConnectionType: &remote.ConnectRequest_ServerConnection{
					ServerConnection: &remote.ServerConnection{Address: address}},
			}}}) // the answer contains the error
		_, err = stream.Recv()
	}
	if err == nil {
		return fmt.Errorf("%s: was not refused", who)
	}
	fmt.Fprintf(out, "%s: refused\n", who)
	return ctx.Err()
}

// trust writes the authorities file of all members.
func (c *members) trust(all ...*pki.Authority) error {
	var pem []byte
	c.roots = x509.NewCertPool()
	for _, a := range all {
		pem = append(pem, a.PEM()...)
		c.roots.AppendCertsFromPEM(a.PEM())
	}
	next := c.authorities() + ".next"
	if err := os.WriteFile(next, pem, 0o600); err != nil {
		return err
	}
	return os.Rename(next, c.authorities())
}

func (c *members) authorities() string { return filepath.Join(c.dir, "authorities.pem") }

// issue gives every member a certificate for its own address.
func (c *members) issue(a *pki.Authority) error {
	for i, address := range c.addresses {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return err
		}
		_, _, err = a.WriteMember(c.dir, name(i),
			pki.Member{Hosts: []string{host}, Addresses: []string{address}})
		if err != nil {
			return err
		}
	}
	return nil
}
