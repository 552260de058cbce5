// Package netem is a bad network for real processes on one machine: a network namespace for each node,
// with one TUN device in it, and a relay in the test that carries every packet between them and may
// delay, lose, double, reorder, corrupt, slow down or cut, for each direction apart.
//
//	n := netem.New(t, 3)
//	cmd := exec.Command("./server", "-listen", n.Addr(1)+":9000")
//	if err := n.Start(1, cmd); err != nil { … }
//	n.Set(0, 1, netem.Link{Delay: 20 * time.Millisecond, Loss: 0.05})
//	n.Set(1, 0, netem.Link{Cut: true}) // requests arrive, answers do not
//	n.Heal()
//
// It needs Linux and root, and the device /dev/net/tun; no tool and no kernel module beyond. Where it
// cannot run the test is skipped and says so; with CI=true in the environment it fails instead, so that
// nobody takes a skipped test for a green one.
//
// What it is not: a simulation. Time is real, and runs differ. A corrupted packet fails its checksum in
// the receiver's kernel, so TCP and UDP show it as a loss. A cut does not end TCP connections; their
// packets are lost until it is healed, and TCP's own pauses come on top.
package netem
