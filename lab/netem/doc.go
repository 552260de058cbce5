// Package netem provides a faulty network for real processes on one machine. Each node has a
// network namespace with one TUN device. A relay in the test carries every packet between the nodes
// and can delay, lose, duplicate, reorder, corrupt, rate-limit or cut each direction independently.
//
//	n := netem.New(t, 3)
//	cmd := exec.Command("./server", "-listen", n.Addr(1)+":9000")
//	if err := n.Start(1, cmd); err != nil { … }
//	n.Set(0, 1, netem.Link{Delay: 20 * time.Millisecond, Loss: 0.05})
//	n.Set(1, 0, netem.Link{Cut: true}) // requests arrive, answers do not
//	n.Heal()
//
// It requires Linux, root, and the device /dev/net/tun, but no tools or other kernel modules. If
// these are missing, the test is skipped with a message; with CI=true in the environment it fails
// instead, so that a skipped test does not look green.
//
// It is not a simulation: time is real, and runs differ. A corrupted packet fails its checksum in
// the receiver's kernel, so TCP and UDP treat it as lost. A cut does not close TCP connections.
// Their packets are lost until the cut is healed, and TCP's retransmission timeouts add to the
// outage.
//
// docs/testing.md names the other parts of the testkit.
package netem
