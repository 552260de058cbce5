package main

import (
	"fmt"

	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/testkit/pki"
)

// certify gives every node a certificate for its address, and for no other.
func (k *shopkeeper) certify() error {
	ca, err := pki.NewAuthority("quickstart")
	if err != nil {
		return err
	}
	authority, err := ca.Write(k.dir)
	if err != nil {
		return err
	}
	for i := range k.nodes {
		address := fmt.Sprintf("127.0.0.1:%d", k.ports[nodeCount+i])
		cert, key, err := ca.WriteMember(k.dir, fmt.Sprint("node-", i+1), pki.Member{
			Hosts: []string{"127.0.0.1"}, Addresses: []string{address},
		})
		if err != nil {
			return err
		}
		k.nodes[i].tls = node.TLSFiles(cert, key, authority)
	}
	return nil
}
