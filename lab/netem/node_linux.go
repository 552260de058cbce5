package netem

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

const (
	device = "tun0"
	tunDev = "/dev/net/tun"
	mtu    = 1500
)

func possible() error {
	if os.Geteuid() != 0 {
		return errors.New("this process is not root")
	}
	f, err := os.OpenFile(tunDev, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// node is a network namespace, kept open by a thread that runs in it, and the device that connects
// it to the relay.
type node struct {
	addr  netip.Addr
	tun   *os.File
	calls chan call
	ended chan struct{}
}

type call struct {
	f    func() error
	done chan error
}

func newNode(i int) (*node, error) {
	n := &node{addr: netip.AddrFrom4([4]byte{10, 77, 0, byte(i + 1)}), calls: make(chan call),
		ended: make(chan struct{})}
	ready := make(chan error)
	go n.live(ready)
	return n, <-ready
}

// live owns a thread that enters a new namespace. The thread never leaves the namespace, so it
// exits with the goroutine.
func (n *node) live(ready chan<- error) {
	defer close(n.ended)
	runtime.LockOSThread()
	err := n.enter()
	ready <- err
	if err != nil {
		return
	}
	for c := range n.calls {
		c.done <- c.f()
	}
}

func (n *node) do(f func() error) error {
	c := call{f, make(chan error)}
	n.calls <- c
	return <-c.done
}

func (n *node) enter() error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("new network namespace: %w", err)
	}
	fd, err := unix.Open(tunDev, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", tunDev, err)
	}
	if err := n.configure(fd); err != nil {
		return errors.Join(err, unix.Close(fd))
	}
	n.tun = os.NewFile(uintptr(fd), tunDev) // non-blocking, so Close interrupts a Read
	return nil
}

// configure creates the device and brings it up, like "ip addr add" and "ip link set up".
func (n *node) configure(fd int) error {
	control, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(control) }()
	addr := n.addr.As4()
	for _, step := range []struct {
		name, device string
		fd           int
		request      uint
		fill         func(*unix.Ifreq) error
	}{
		{"make the device", device, fd, unix.TUNSETIFF, flags(unix.IFF_TUN | unix.IFF_NO_PI)},
		{"set its address", device, control, unix.SIOCSIFADDR, func(r *unix.Ifreq) error {
			return r.SetInet4Addr(addr[:])
		}},
		{"set its mask", device, control, unix.SIOCSIFNETMASK, func(r *unix.Ifreq) error {
			return r.SetInet4Addr([]byte{255, 255, 255, 0})
		}},
		{"set its MTU", device, control, unix.SIOCSIFMTU, func(r *unix.Ifreq) error {
			r.SetUint32(mtu)
			return nil
		}},
		{"bring it up", device, control, unix.SIOCSIFFLAGS, flags(unix.IFF_UP | unix.IFF_RUNNING)},
		{"bring up loopback", "lo", control, unix.SIOCSIFFLAGS,
			flags(unix.IFF_UP | unix.IFF_RUNNING)},
	} {
		r, err := unix.NewIfreq(step.device)
		if err == nil {
			err = step.fill(r)
		}
		if err == nil {
			err = unix.IoctlIfreq(step.fd, step.request, r)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

func flags(f uint16) func(*unix.Ifreq) error {
	return func(r *unix.Ifreq) error { r.SetUint16(f); return nil }
}

// deliver writes a packet to the namespace. Packets that the device rejects are lost, as on any
// network.
func (n *node) deliver(packet []byte) { _, _ = n.tun.Write(packet) }

func (n *node) close() {
	close(n.calls)
	<-n.ended
	_ = n.tun.Close()
}
