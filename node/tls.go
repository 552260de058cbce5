package node

// TLS is the identity of a member, and whom it trusts: PEM files. Every connection uses TLS 1.3, and
// both ends show a certificate of one of the authorities.
//
// A certificate speaks for the hosts that it names as DNS names or IP addresses, at every port. If
// it also has URIs concord://host:port, it speaks for those addresses only, which tells members apart
// that share a host. The address of a member is Config.Advertised, or where it listens. A stream of a
// peer that claims another address than its certificate names is refused, and so are messages that
// name another peer than that of their stream. The certificate needs both extended key usages, for
// servers and clients, or none.
//
// The files are looked at before handshakes, at most once a second, so a certificate is renewed by
// replacing its files; connections that exist go on with the one they began with. Files that cannot
// be used are logged, and those read before stay in use. To replace an authority, let all members
// trust both the old and the new one, then give them new certificates, then drop the old one.
type TLS struct {
	// Cert is the certificate of the member, with those of intermediate authorities behind it.
	Cert string `yaml:"cert"`
	// Key is the key of Cert. Only the user of the process should be able to read it.
	Key string `yaml:"key"`
	// Authorities are files with one or more certificates of authorities.
	Authorities []string `yaml:"authorities"`
}

// TLSFiles returns the TLS of a member from the files of its certificate, its key, and the
// authorities that it trusts: two, while one replaces the other.
//
//	node.Config{Host: "10.0.0.1", Port: 7000, TLS: node.TLSFiles("member.pem", "member-key.pem", "ca.pem")}
func TLSFiles(cert, key string, authorities ...string) *TLS {
	return &TLS{Cert: cert, Key: key, Authorities: authorities}
}
