package node

// TLS is the identity of a member and the authorities that it trusts, as PEM files. Every
// connection uses TLS 1.3, and both ends present a certificate of one of the authorities.
//
// A certificate is valid for the hosts that it names as DNS names or IP addresses, at every port.
// If it also has URIs concord://host:port, it is valid for those addresses only, which
// distinguishes members that share a host. The address of a member is Config.Advertised, or the
// address it listens on. A stream is rejected if its peer claims an address that its certificate
// does not name, and so are messages that name another peer than that of their stream. The
// certificate needs both extended key usages, server and client, or none.
//
// The files are checked for changes before handshakes, at most once a second, so a certificate is
// renewed by replacing its files; existing connections keep the certificate they began with. If the
// files cannot be used, or the certificate is not valid for the address of the member, the error is
// logged and the ones read before stay in use. To replace an authority, let all members trust both
// the old and the new one, then give them new certificates, then drop the old one.
type TLS struct {
	// Cert is the certificate of the member, followed by those of intermediate authorities.
	Cert string `yaml:"cert"`
	// Key is the private key of Cert. Only the user of the process should be able to read it.
	Key string `yaml:"key"`
	// Authorities are files with one or more certificates of authorities.
	Authorities []string `yaml:"authorities"`
}

// TLSFiles returns the TLS of a member from the files of its certificate, its key, and the
// authorities that it trusts; name two authorities while one replaces the other.
//
//	node.Config{Host: "10.0.0.1", Port: 7000, TLS: node.TLSFiles("member.pem", "member-key.pem", "ca.pem")}
func TLSFiles(cert, key string, authorities ...string) *TLS {
	return &TLS{Cert: cert, Key: key, Authorities: authorities}
}
