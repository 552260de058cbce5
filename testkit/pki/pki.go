// Package pki creates certificates for tests and for trying out TLS:
//
//	ca, err := pki.NewAuthority("shop")
//	caFile, err := ca.Write(dir)
//	cert, key, err := ca.WriteMember(dir, "a", pki.Member{Hosts: []string{"127.0.0.1"}})
//	cfg := node.Config{Port: 7000, TLS: node.TLSFiles(cert, key, caFile)}
//
// In production, use a real certificate authority, and keep its key off the members.
//
// docs/security.md is the guide to TLS. Program examples/mtls uses certificates of such an
// authority.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// Authority issues certificates. It is safe for concurrent use.
type Authority struct {
	name string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority returns an authority that is valid from one hour ago for ten years.
func NewAuthority(name string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	t := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(10, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &Authority{name, cert, key}, err
}

// PEM returns the certificate of the authority.
func (a *Authority) PEM() []byte { return encode("CERTIFICATE", a.cert.Raw) }

// Write writes the certificate of the authority to a file in dir, named after the authority, and
// returns the file's path.
func (a *Authority) Write(dir string) (string, error) {
	file := filepath.Join(dir, a.name+"-ca.pem")
	return file, os.WriteFile(file, a.PEM(), 0o600)
}

// Member describes the certificate of a member. The zero value contains no names.
type Member struct {
	// Hosts are the DNS names and IP addresses that the member may use, with any port.
	Hosts []string
	// Addresses, each host:port, become URIs. If there are any, the member may use only these.
	// Their hosts must also be listed in Hosts.
	Addresses []string
	// From and To are the bounds of the validity period. Default: from one hour ago, for a day.
	From, To time.Time
	// Usages are the extended key usages. Default: server and client.
	Usages []x509.ExtKeyUsage
}

// Issue returns a new certificate and its key.
func (a *Authority) Issue(m Member) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, m.template(a.name), a.cert, private.Public(),
		a.key)
	if err != nil {
		return nil, nil, err
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return encode("CERTIFICATE", der), encode("PRIVATE KEY", raw), nil
}

func (m Member) template(name string) *x509.Certificate {
	t := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "member of " + name},
		NotBefore: m.From, NotAfter: m.To, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: m.Usages,
	}
	if t.NotBefore.IsZero() {
		t.NotBefore = time.Now().Add(-time.Hour)
	}
	if t.NotAfter.IsZero() {
		t.NotAfter = time.Now().AddDate(0, 0, 1)
	}
	if t.ExtKeyUsage == nil {
		t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	}
	for _, h := range m.Hosts {
		if ip := net.ParseIP(h); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, h)
		}
	}
	for _, a := range m.Addresses {
		t.URIs = append(t.URIs, &url.URL{Scheme: "concord", Host: a})
	}
	return t
}

// WriteMember issues a certificate, and writes it and its key to files in dir whose names begin
// with name. It replaces existing files, the key first. A member that reads the files in between
// finds that they do not match and reads them again.
func (a *Authority) WriteMember(dir, name string, m Member) (certFile, keyFile string, err error) {
	cert, key, err := a.Issue(m)
	if err != nil {
		return "", "", err
	}
	certFile, keyFile = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+"-key.pem")
	for _, f := range []struct {
		name string
		data []byte
	}{{keyFile, key}, {certFile, cert}} {
		if err := replace(f.name, f.data); err != nil {
			return "", "", err
		}
	}
	return certFile, keyFile, nil
}

// replace writes a file atomically.
func replace(name string, data []byte) error {
	next := name + ".next"
	if err := os.WriteFile(next, data, 0o600); err != nil {
		return err
	}
	return os.Rename(next, name)
}

func encode(what string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: what, Bytes: der})
}

func serial() *big.Int {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		panic(err) // crypto/rand never fails
	}
	return n
}
