package guard

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"errors"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/extensions"
)

// extensionID is allocated once per process, since the registry has room for a hundred.
var extensionID = extensions.NextExtensionID()

// attached makes a guard known to the components of its actor system.
type attached struct{ guard *Guard }

// ExtensionID implements extensions.Extension.
func (attached) ExtensionID() extensions.ExtensionID { return extensionID }

// Of returns the guard of an actor system, or nil if it has none, or is not bound yet.
func Of(system *actor.ActorSystem) *Guard {
	a, _ := system.Extensions.Get(extensionID).(attached)
	return a.guard
}

// A provider whose members ask each other directly proves them in the way of the guard. Its methods
// work for nil, which has neither TLS nor a secret.

// TLS returns the configurations of a server and a client of this member, or nil without TLS. Both
// accept every certificate of the authorities; Speaks tells for which address it is valid.
func (g *Guard) TLS() (server, client *tls.Config) {
	if g == nil || g.keeper == nil {
		return nil, nil
	}
	k := g.keeper
	server = &tls.Config{MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return (&tlsCredentials{k}).config(), nil
		}}
	client = &tls.Config{MinVersion: tls.VersionTLS13,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &k.identity().cert, nil
		},
		InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 {
				return errors.New("no certificate")
			}
			between := x509.NewCertPool()
			for _, c := range s.PeerCertificates[1:] {
				between.AddCert(c)
			}
			_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: k.identity().roots,
				Intermediates: between})
			return err
		}}
	return server, client
}

// HasSecret reports whether the members share a secret.
func (g *Guard) HasSecret() bool { return g != nil && g.secret != nil }

// Sign returns a signature of texts for a purpose, made with the secret, or "" without one.
func (g *Guard) Sign(purpose string, texts ...string) string {
	if !g.HasSecret() {
		return ""
	}
	return sign(g.secret.secrets()[0], purpose, texts)
}

// Signed reports whether a signature is that of the texts. Without a secret it returns true.
func (g *Guard) Signed(signature, purpose string, texts ...string) bool {
	if !g.HasSecret() {
		return true
	}
	for _, secret := range g.secret.secrets() {
		if hmac.Equal([]byte(signature), []byte(sign(secret, purpose, texts))) {
			return true
		}
	}
	return false
}

func sign(secret []byte, purpose string, texts []string) string {
	key, err := hkdf.Key(sha256.New, secret, nil, "concord/2 "+purpose, sha256.Size)
	if err != nil {
		panic(err) // only for an invalid length, which is a constant
	}
	mac := hmac.New(sha256.New, key)
	for _, t := range texts {
		_, _ = mac.Write(binary.BigEndian.AppendUint32(nil, uint32(len(t))))
		_, _ = mac.Write([]byte(t))
	}
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
