//go:build !linux

package netem

import (
	"errors"
	"net/netip"
	"os"
)

func possible() error { return errors.New("this is not Linux") }

type node struct {
	addr netip.Addr
	tun  *os.File
}

func newNode(int) (*node, error)    { return nil, possible() }
func (*node) do(func() error) error { return possible() }
func (*node) deliver([]byte)        {}
func (*node) close()                {}
