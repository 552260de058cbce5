package pki_test

import (
	"crypto/x509"
	"fmt"

	"github.com/concord-go/concord/testkit/pki"
)

// An authority of a test issues the certificate of a member.
func Example() {
	authority, err := pki.NewAuthority("shop")
	if err != nil {
		fmt.Println(err)
		return
	}
	cert, key, err := authority.Issue(pki.Member{Hosts: []string{"127.0.0.1"}})
	known := x509.NewCertPool()
	fmt.Println(len(cert) > 0, len(key) > 0, err, known.AppendCertsFromPEM(authority.PEM()))
	// Output: true true <nil> true
}
