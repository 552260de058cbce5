//go:build unix

package datatest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/file"
	"github.com/concord-go/concord/distributeddata"
)

// openRecords returns the membership record that the processes of one machine share.
func (m *member) openRecords() (distributeddata.Membership, error) {
	store, err := file.Open(m.Record)
	if err != nil {
		return nil, err
	}
	doc, err := coordination.NewDocument(store, "members")
	return barred{doc, m.Barred}, err
}

// barred is a membership record that a process can read and, while a file exists, not replace.
type barred struct {
	distributeddata.Membership
	file string
}

var errBarred = errors.New("the driver lets this process replace no record")

// Swap implements distributeddata.Membership.
func (b barred) Swap(ctx context.Context, old string, next []byte) (string, bool, error) {
	if _, err := os.Stat(b.file); b.file != "" && err == nil {
		return "", false, errBarred
	}
	return b.Membership.Swap(ctx, old, next)
}

// TestReal_TheLastOfARecordLeaves lets the only counted member of a membership record leave while
// another one waits for a place, and clients go on writing until the process ends. With
// write-behind, none of the writes has to be on a disk before. The member that waited then has
// every acknowledged write, and so has the disk of the one that left, which is read alone.
func TestReal_TheLastOfARecordLeaves(t *testing.T) {
	dir := t.TempDir()
	gate := filepath.Join(dir, "barred")
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	member := func(name string) spec {
		return spec{Host: "127.0.0.1", Member: name, Engine: "bbolt",
			Data: filepath.Join(dir, name), WriteBehind: time.Minute,
			Record: filepath.Join(dir, "records")}
	}
	c := &members{t: t, specs: []spec{member("last")}}
	c.begin()
	const last = 0
	load := startLoad(t, c.running())
	wrote := func() {
		before := load.written()
		c.eventually(func() string { return load.since(before) })
	}
	wrote()
	second := member("waits")
	second.Barred = gate
	waits := c.place(second)
	c.launch(waits)
	c.tell()
	c.eventually(func() string { // both see each other
		for i, p := range c.live {
			a, err := p.call(command{Do: "status", Within: patience})
			if err != nil || a.Status.Members != 2 {
				return "member " + c.specs[i].Member + " sees no other"
			}
		}
		return ""
	})
	thaw := freeze(t, c.live[waits])
	wrote()
	left := c.live[last]
	c.do(last, command{Do: "leave"})
	for range 20 { // it cannot end while the other one lacks what it wrote
		wrote()
	}
	thaw()
	<-left.Gone()
	load.end()
	if code := left.ExitCode(); code != 0 {
		t.Errorf("the last member ended with status %d: %s", code, left.Stderr())
	}
	c.live[last] = nil
	c.check(last, left)
	c.tell()

	if err := os.Remove(gate); err != nil {
		t.Fatal(err)
	}
	c.await(waits)
	load.whole(c.running())

	c.kill(waits)
	c.launch(last)
	c.tell()
	c.eventually(func() string { return load.missedBy(c.live[last], distributeddata.Local) })
	c.restart(waits)
	c.await(last)
	load.whole(c.running())
	t.Logf("%v", load)
}

// freeze stops a process until thaw is called, or the test ends.
func freeze(t *testing.T, p *process) (thaw func()) {
	t.Helper()
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	thaw = func() { _ = p.Signal(syscall.SIGCONT) } // an error says that it has ended
	t.Cleanup(thaw)
	return thaw
}
