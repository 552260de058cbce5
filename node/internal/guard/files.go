package guard

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"
)

// Files are PEM files: the certificate of a member, followed by intermediate ones if needed, its
// key, and the authorities that it trusts.
type Files struct {
	Cert, Key   string
	Authorities []string
}

func (f Files) names() []string { return append([]string{f.Cert, f.Key}, f.Authorities...) }

// identity is the content of the files at one moment. It is immutable.
type identity struct {
	cert  tls.Certificate
	roots *x509.CertPool
}

// keeper holds the identity of a member, and reloads it when a file has changed.
type keeper struct {
	files   Files
	process *Process

	looked looked // guards the following
	infos  []os.FileInfo
	now    *identity
	self   string // the address of this member; "" until it is known
}

func newKeeper(f Files, p *Process) (*keeper, error) {
	if f.Cert == "" || f.Key == "" || len(f.Authorities) == 0 {
		return nil, errors.New("a certificate, its key and at least one authority are needed")
	}
	k := &keeper{files: f, process: p}
	infos, err := stat(f.names())
	if err != nil {
		return nil, err
	}
	id, err := f.read()
	if err != nil {
		return nil, err
	}
	k.infos, k.now, k.looked.at = infos, id, time.Now()
	return k, nil
}

// identity returns the current content of the files. While the files cannot be used, for instance
// after a certificate is replaced and before its key is, it returns the previous content. A
// certificate that is not valid for this member is not used either.
func (k *keeper) identity() *identity {
	k.looked.mu.Lock()
	defer k.looked.mu.Unlock()
	if !k.looked.dueLocked(time.Now()) {
		return k.now
	}
	infos, err := stat(k.files.names())
	if err == nil && same(infos, k.infos) {
		return k.now
	}
	var id *identity
	if err == nil {
		id, err = k.files.read()
	}
	if err == nil && k.self != "" {
		err = Speaks(id.cert.Leaf, k.self)
	}
	if err != nil {
		k.process.logger().Warn("TLS files cannot be used; the previous ones stay in use",
			slog.Any("error", err))
		return k.now
	}
	k.infos, k.now = infos, id
	k.process.logger().Info("TLS files read again", slog.String("names", names(id.cert.Leaf)),
		slog.Time("expires", id.cert.Leaf.NotAfter))
	return k.now
}

func stat(files []string) (out []os.FileInfo, err error) {
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			return nil, err
		}
		out = append(out, info)
	}
	return out, nil
}

func same(a, b []os.FileInfo) bool {
	for i := range a {
		if !os.SameFile(a[i], b[i]) || a[i].Size() != b[i].Size() ||
			!a[i].ModTime().Equal(b[i].ModTime()) {
			return false
		}
	}
	return true
}

// read loads the files. It checks that the certificate can be used at both ends, so that a mistake
// is found at the start rather than by a peer.
func (f Files) read() (*identity, error) {
	cert, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("%s, %s: %w", f.Cert, f.Key, err)
	}
	roots := x509.NewCertPool()
	for _, name := range f.Authorities {
		pem, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: holds no certificate", name)
		}
	}
	between := x509.NewCertPool()
	for _, der := range cert.Certificate[1:] {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Cert, err)
		}
		between.AddCert(c)
	}
	for _, use := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		_, err := cert.Leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between,
			KeyUsages: []x509.ExtKeyUsage{use}})
		if err != nil {
			return nil, fmt.Errorf(
				"%s: a member uses its certificate as a server and as a client: %w", f.Cert, err)
		}
	}
	return &identity{cert, roots}, nil
}

// check returns an error if the certificate is not valid for address, the one of this member.
func (k *keeper) check(address string) error {
	if err := Speaks(k.identity().cert.Leaf, address); err != nil {
		return fmt.Errorf("%s: %w", k.files.Cert, err)
	}
	k.looked.mu.Lock()
	defer k.looked.mu.Unlock()
	k.self = address
	return nil
}

// scheme is the scheme of the URIs that name a member in its certificate.
const scheme = "concord"

// Speaks returns nil if a certificate is valid for a member at address, host:port. If it has URIs
// concord://host:port, it is valid for those addresses only; otherwise for every port of the hosts
// that it names.
func Speaks(c *x509.Certificate, address string) error {
	exact := false
	for _, u := range c.URIs {
		if u.Scheme == scheme {
			exact = true
			if u.Host == address {
				return nil
			}
		}
	}
	host, _, err := net.SplitHostPort(address)
	if err == nil && !exact && c.VerifyHostname(host) == nil {
		return nil
	}
	return fmt.Errorf("the certificate is not valid for %.255q, only for: %s", address, names(c))
}

func names(c *x509.Certificate) string {
	var out []string
	for _, u := range c.URIs {
		out = append(out, u.String())
	}
	for _, ip := range c.IPAddresses {
		out = append(out, ip.String())
	}
	return strings.Join(append(out, c.DNSNames...), ", ")
}
